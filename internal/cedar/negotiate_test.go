package cedar

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// negotiator is a server that answers an offer of a session with a policy, and then with a
// result. It exchanges keys if its policy has a %key. What it reads afterwards is sent to got.
func negotiator(t *testing.T, policy, result []string, got chan<- string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		defer close(got)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		s := NewStream(conn)
		s.SetTimeout(5 * time.Second)
		command, err := s.GetInt()
		if err != nil || command != DCAuthenticate {
			t.Errorf("command %d, %v", command, err)
			return
		}
		offer, err := s.getHandshake()
		if err != nil {
			t.Error(err)
			return
		}
		for name, want := range map[string]string{"NewSession": "YES", "Enact": "NO", "Authentication": "NEVER", "AuthenticationNew": "NEVER", "CryptoMethods": "AES", "RemoteVersion": ownVersion} {
			if offer.str(name) != want {
				t.Errorf("the offer has %s = %q", name, offer.str(name))
			}
		}
		if policy == nil {
			return
		}
		key, err := ecdh.P256().GenerateKey(rand.Reader)
		if err != nil {
			t.Error(err)
			return
		}
		text := base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())
		exchanges := false
		lines := append([]string(nil), policy...)
		for i := range lines {
			exchanges = exchanges || strings.Contains(lines[i], "%key")
			lines[i] = strings.ReplaceAll(lines[i], "%key", text)
		}
		if err := s.answer(lines...); err != nil || result == nil {
			return
		}
		if exchanges {
			public, err := base64.StdEncoding.DecodeString(offer.str("ECDHPublicKey"))
			if err != nil {
				t.Error(err)
				return
			}
			theirs, err := ecdh.P256().NewPublicKey(public)
			if err != nil {
				t.Error(err)
				return
			}
			secret, _ := key.ECDH(theirs)
			derived, _ := deriveKey(string(secret))
			if err := s.setKey(derived); err != nil {
				t.Error(err)
				return
			}
		}
		if err := s.answer(result...); err != nil {
			return
		}
		if v, err := s.GetString(); err == nil {
			got <- v
		}
	}()
	return "<" + l.Addr().String() + ">"
}

func TestNegotiate(t *testing.T) {
	const version = `RemoteVersion = "$CondorVersion: 25.14.1 x $"`
	good := []string{version, `Authentication = "NO"`, `Encryption = "YES"`, `CryptoMethods = "AES"`, `ECDHPublicKey = "%key"`}
	authorized := []string{`ReturnCode = "AUTHORIZED"`, `Sid = "a:1"`}
	for name, c := range map[string]struct {
		policy, result []string
		encrypted      bool
		wrong          error
		words          string
	}{
		"with a key":             {policy: good, result: authorized, encrypted: true},
		"key though not wanted":  {policy: []string{version, `Encryption = "NO"`, `CryptoMethods = "AES"`, `ECDHPublicKey = "%key"`}, result: authorized, encrypted: true},
		"as 23.9 does":           {policy: []string{version, `Authentication = "NO"`, `Encryption = "NO"`, `Integrity = "NO"`}, result: authorized},
		"as before 8.3.6":        {policy: good, result: []string{`Sid = "a:1"`}, encrypted: true},
		"closed at once":         {wrong: ErrNoAnswer},
		"wants authentication":   {policy: []string{version, `Authentication = "YES"`}, wrong: ErrNotNegotiated},
		"encrypts, has no key":   {policy: []string{version, `Encryption = "YES"`}, wrong: ErrNotNegotiated, words: "Encryption"},
		"protects, has no key":   {policy: []string{version, `Integrity = "YES"`}, wrong: ErrNotNegotiated, words: "Integrity"},
		"not AES":                {policy: []string{version, `CryptoMethods = "BLOWFISH"`, `ECDHPublicKey = "%key"`}, wrong: ErrNotAES},
		"no base64":              {policy: []string{version, `CryptoMethods = "AES"`, `ECDHPublicKey = "*"`}, words: "public key"},
		"no point of the curve":  {policy: []string{version, `CryptoMethods = "AES"`, `ECDHPublicKey = "AAAA"`}, words: "public key"},
		"denied":                 {policy: good, result: []string{`ReturnCode = "DENIED"`}, wrong: ErrDenied, words: "DENIED"},
		"another word":           {policy: good, result: []string{`ReturnCode = "SID_NOT_FOUND"`}, wrong: ErrDenied, words: "SID_NOT_FOUND"},
		"ends before the result": {policy: good, words: "agree on a session"},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			addr := negotiator(t, c.policy, c.result, got)
			client := &Client{Version: ownVersion, Own: "<127.0.0.1:9>", Name: "STARTER", Timeout: 5 * time.Second}
			s, err := client.Start(t.Context(), Command{Addr: addr, Number: CCBRequest, Negotiate: true})
			if c.wrong != nil || c.words != "" {
				if err == nil || c.wrong != nil && !errors.Is(err, c.wrong) || !strings.Contains(err.Error(), c.words) {
					t.Errorf("%v", err)
				}
				return
			}
			must(t, err)
			defer s.Close()
			if s.Encrypted() != c.encrypted {
				t.Errorf("encrypted: %t", s.Encrypted())
			}
			if v := s.PeerVersion(); v != "$CondorVersion: 25.14.1 x $" {
				t.Errorf("version %q", v)
			}
			s.PutString("payload")
			must(t, s.EndMessage())
			if v := <-got; v != "payload" {
				t.Errorf("got %q", v)
			}
		})
	}
}

// TestReverse: a daemon with brokers is reached through them.
func TestReverse(t *testing.T) {
	for name, c := range map[string]struct {
		params    string
		reverse   error
		listening bool
		want      []string // who was asked
		words     []string
	}{
		"no broker":          {listening: true, want: []string{"direct"}},
		"a broker":           {params: "?CCBID=1.1.1.1:9618#3", listening: true, want: []string{"reverse"}},
		"in our own network": {params: "?CCBID=1.1.1.1:9618#3&PrivNet=here", listening: true, want: []string{"direct"}},
		"in another network": {params: "?CCBID=1.1.1.1:9618#3&PrivNet=there", want: []string{"reverse"}},
		"brokers are down":   {params: "?CCBID=1.1.1.1:9618#3", reverse: errors.New("brokers are down"), want: []string{"reverse"}, words: []string{"brokers are down"}},
		"not there":          {want: []string{"direct"}, words: []string{"refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			client := &Client{Version: ownVersion, Network: Network{Private: "here"}, Timeout: time.Second}
			pipe := func() (net.Conn, error) {
				return &fakeConn{in: bytes.NewReader(nil), out: io.Discard}, nil
			}
			client.Dialer = func(context.Context, string, string) (net.Conn, error) {
				asked = append(asked, "direct")
				if !c.listening {
					return nil, errors.New("connection refused")
				}
				return pipe()
			}
			client.Reverse = func(_ context.Context, to Sinful, timeout time.Duration) (net.Conn, error) {
				asked = append(asked, "reverse")
				if to.CCBID() != "1.1.1.1:9618#3" || timeout != time.Second {
					t.Errorf("asked for %s, %v", to, timeout)
				}
				if c.reverse != nil {
					return nil, c.reverse
				}
				return pipe()
			}
			s, err := client.Command(t.Context(), "<127.0.0.1:1"+c.params+">", 1, nil)
			if diff := cmp.Diff(c.want, asked); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (c.words != nil) {
				t.Errorf("%v", err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is missing: %v", w, err)
				}
			}
			if err == nil && !strings.HasPrefix(s.Peer(), "<127.0.0.1:1") {
				t.Errorf("peer %s", s.Peer())
			}
		})
	}
}

// FuzzNegotiate lets a server answer whatever it likes to the offer of a session.
func FuzzNegotiate(f *testing.F) {
	answer := func(lines ...string) []byte {
		var b bytes.Buffer
		s := NewStream(&fakeConn{in: bytes.NewReader(nil), out: &b})
		if err := errors.Join(s.answer(lines...), s.Flush()); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	plain := answer(`Authentication = "NO"`, `Encryption = "NO"`)
	f.Add(append(plain, answer(`ReturnCode = "AUTHORIZED"`)...))
	f.Add(append(plain, answer(`ReturnCode = "DENIED"`)...))
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(answer(`CryptoMethods = "AES"`, `ECDHPublicKey = "`+base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())+`"`))
	f.Fuzz(func(t *testing.T, input []byte) {
		client := &Client{Version: ownVersion, Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &fakeConn{in: bytes.NewReader(input), out: io.Discard}, nil
		}}
		s, err := client.Start(t.Context(), Command{Addr: "<127.0.0.1:9618>", Number: CCBRequest, Negotiate: true})
		var failed *CommandError
		if err != nil && !errors.As(err, &failed) {
			t.Errorf("%T %v", err, err)
		}
		if err == nil && s.Encrypted() {
			t.Error("whoever answers this has the key")
		}
	})
}
