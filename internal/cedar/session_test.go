package cedar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	familyInfo = `[Integrity="YES";Encryption="YES";ShortVersion="25.14.1";CryptoMethods="BLOWFISH";CryptoMethodsList="AES.BLOWFISH.3DES";]`
	claimPart  = "<127.0.0.1:9618?sock=startd_1_43af>#1770000000#3"
)

func TestClaimID(t *testing.T) {
	for _, c := range []struct {
		name, id string
		want     ClaimID
	}{
		{"family", "family:abc#" + familyInfo + vectorKey, ClaimID{Public: "family:abc", SessionID: "family:abc", Info: familyInfo, Key: vectorKey}},
		{"claim", claimPart + "#[A=1;]key", ClaimID{Public: claimPart, SessionID: claimPart, Info: "[A=1;]", Key: "key"}},
		{"bracket in the policy", `a#[X="]";]key`, ClaimID{Public: "a", SessionID: "a", Info: `[X="]";]`, Key: "key"}},
		{"no session", claimPart + "#4711", ClaimID{Public: claimPart, Key: "4711"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseClaimID(c.id)
			must(t, err)
			if got != c.want {
				t.Errorf("got %#v", [4]string{got.Public, got.SessionID, got.Info, got.Key})
			}
			if got.Secret() != c.id || !got.Matches(c.id) || got.Matches(c.id+"x") {
				t.Error("it does not match itself")
			}
		})
	}
	if got := (ClaimID{Public: claimPart}).Startd(); got != "<127.0.0.1:9618?sock=startd_1_43af>" {
		t.Error(got)
	}
	for _, id := range []string{"", "#", "a#", "#b", "secret", "a#[]", "a#[x]"} {
		_, err := ParseClaimID(id)
		if err == nil {
			t.Errorf("%q is a claim id", id)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the id: %v", err)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	const secret = "cafe0123cafe0123"
	id := "family:abc#" + familyInfo + secret
	session, err := ImportSession(id, "condor@family", Daemon)
	must(t, err)
	claim, err := ParseClaimID(id)
	must(t, err)
	holder := struct {
		S *Session
		s *Session
		C ClaimID
	}{session, session, claim}
	stream, _ := recorder(nil)
	must(t, stream.setKey(session.key.bytes()))
	stream.PutString(secret)
	var all strings.Builder
	check := func(how string, v any, text string) {
		t.Helper()
		all.WriteString(text)
		for _, s := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprint(session.key.bytes()), fmt.Sprintf("%x", session.key.bytes())} {
			if strings.Contains(text, s) {
				t.Errorf("%s of %T prints a secret: %s", how, v, text)
			}
		}
	}
	for _, v := range []any{session, *session, claim, &claim, holder, &holder, []any{session, claim}, stream} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			check(verb, v, fmt.Sprintf(verb, v))
		}
		text, err := json.Marshal(v)
		must(t, err)
		check("json", v, string(text))
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		check("slog", v, out.String())
	}
	text := all.String()
	if !strings.Contains(text, "family:abc") {
		t.Error("not even the id was printed")
	}
}

func TestImportSession(t *testing.T) {
	s, err := ImportSession(`abc#[Integrity="YES";Encryption="YES";ShortVersion="25.14.1";CryptoMethods="BLOWFISH";ValidCommands="60000,60008,60002";`+
		`CryptoMethodsList="AES.BLOWFISH.3DES";SessionExpires=1900000000;]`+vectorKey, "condor@parent", Administrator, Daemon)
	must(t, err)
	if s.PeerVersion != "$CondorVersion: 25.14.1 ExportedSessionInfo $" {
		t.Error(s.PeerVersion)
	}
	if diff := cmp.Diff([]int{60000, 60008, 60002}, s.ValidCommands); diff != "" {
		t.Error(diff)
	}
	if s.Expires.Unix() != 1900000000 {
		t.Error(s.Expires)
	}
	want, err := deriveKey(vectorKey)
	must(t, err)
	if !bytes.Equal(s.key.bytes(), want) {
		t.Error("another key")
	}
	for _, c := range []struct {
		name, id string
		want     error
	}{
		{"legacy only", `abc#[CryptoMethods="BLOWFISH";]key`, ErrNotAES},
		{"legacy list", `abc#[CryptoMethods="AES";CryptoMethodsList="BLOWFISH.3DES";]key`, ErrNotAES},
		{"no session", "abc#key", nil},
		{"not a policy", "abc#[x]key", nil},
	} {
		_, err := ImportSession(c.id, "u@d")
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && strings.Contains(err.Error(), "key") && strings.Contains(err.Error(), "]key") {
			t.Errorf("%s: the error shows the secret: %v", c.name, err)
		}
	}
}

func TestMintAndExport(t *testing.T) {
	a, err := MintSession("u@d", Read)
	must(t, err)
	b, err := ImportSession(a.Export("25.14.1"), "x@y", Read)
	must(t, err)
	if b.ID != a.ID || len(a.ID) != 48 || !bytes.Equal(a.key.bytes(), b.key.bytes()) || b.PeerVersion == "" {
		t.Error("the exported session is another one")
	}
	c, err := MintSession("u@d", Read)
	must(t, err)
	if c.ID == a.ID {
		t.Error("two sessions of one id")
	}
}

func TestSessions(t *testing.T) {
	now := time.Unix(1000, 0)
	table := NewSessions()
	table.now = func() time.Time { return now }
	s, err := MintSession("u@d", Read)
	must(t, err)
	s.Expires = time.Unix(1010, 0)
	must(t, table.Add(s))
	if err := table.Add(s); !errors.Is(err, ErrSessionExists) {
		t.Errorf("added twice: %v", err)
	}
	if got, ok := table.Lookup(s.ID); !ok || got != s {
		t.Error("not found")
	}
	now = time.Unix(1010, 0)
	if _, ok := table.Lookup(s.ID); ok {
		t.Error("found after it expired")
	}
	must(t, table.Add(s))
	table.Replace(s)
	table.Remove(s.ID)
	if len(table.all) != 0 {
		t.Error("not removed")
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		have []Level
		want []Level
		not  []Level
	}{
		{nil, []Level{Allow}, []Level{Read, Write, Daemon}},
		{[]Level{Read}, []Level{Allow, Read}, []Level{Write, Daemon, Administrator}},
		{[]Level{Daemon}, []Level{Daemon, Write, Read}, []Level{Administrator, Negotiator, Config}},
		{[]Level{Administrator}, []Level{Administrator, Write, Read}, []Level{Daemon}},
		{[]Level{Negotiator}, []Level{Negotiator, Read}, []Level{Write}},
		{[]Level{AdvertiseMaster, ClientLevel}, []Level{AdvertiseMaster, ClientLevel, Read}, []Level{AdvertiseStartd, Write}},
		{[]Level{-1, 77}, []Level{Allow}, []Level{-1, 77, Read}},
	} {
		set := LevelsOf(c.have...)
		for _, l := range c.want {
			if !set.Has(l) {
				t.Errorf("%v lacks %v", set, l)
			}
		}
		for _, l := range c.not {
			if set.Has(l) {
				t.Errorf("%v has %v", set, l)
			}
		}
	}
	if got := LevelsOf(Daemon).String(); got != "ALLOW,READ,WRITE,DAEMON" {
		t.Error(got)
	}
}

func TestPortableNumbers(t *testing.T) {
	for native, portable := range map[syscall.Errno]int64{
		syscall.EPERM: 1, syscall.ENOENT: 2, syscall.EAGAIN: 11, syscall.ENOTBLK: 15, syscall.ENOTTY: 25, syscall.ETXTBSY: 43,
		syscall.EFBIG: 27, syscall.ERANGE: 34, syscall.EDEADLK: 36, syscall.ENAMETOOLONG: 38, syscall.ENOLCK: 39, syscall.ENOSYS: 40,
		syscall.ENOTEMPTY: 41, syscall.EILSEQ: 42, syscall.ETIMEDOUT: 110, syscall.EDQUOT: 122,
	} {
		if got := EncodeErrno(native); got != portable {
			t.Errorf("%v is sent as %d", native, got)
		}
		if got := DecodeErrno(portable); got != native {
			t.Errorf("%d is taken as %v", portable, got)
		}
	}
	for _, n := range []int64{0, -1, 4096, 1 << 40} {
		if got := DecodeErrno(n); got != syscall.EIO {
			t.Errorf("%d is taken as %v", n, got)
		}
	}
	flags := syscall.O_RDWR | syscall.O_CREAT | syscall.O_TRUNC | syscall.O_EXCL | syscall.O_NOCTTY | syscall.O_APPEND
	if got := EncodeOpenFlags(flags | syscall.O_CLOEXEC); got != 0x1f02 {
		t.Errorf("%#x", got)
	}
	if got := DecodeOpenFlags(0x1f02 | 1<<40); got != flags {
		t.Errorf("%#x", got)
	}
	if EncodeOpenFlags(syscall.O_WRONLY) != 1 || DecodeOpenFlags(1) != syscall.O_WRONLY || DecodeOpenFlags(0) != syscall.O_RDONLY {
		t.Error("access modes")
	}
}
