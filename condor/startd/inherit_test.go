package startd

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/condor/config"
	"podstarter/internal/cedar"
)

var quiet = slog.New(slog.DiscardHandler)

// pair connects two ends over loopback.
func pair(t testing.TB) (mine, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if mine, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mine.Close(); theirs.Close() })
	return mine, theirs
}

// hand hands down a socket as a parent does: as a descriptor.
func hand(t testing.TB, s interface {
	File() (*os.File, error)
	Close() error
}) int {
	t.Helper()
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	return fd
}

const (
	parent    = "<127.0.0.1:9618?addrs=127.0.0.1-9618+[--1]-9618&alias=localhost&noUDP&sock=startd_1_43af>"
	policy    = `[Integrity="YES";Encryption="YES";ShortVersion="25.14.1";CryptoMethods="BLOWFISH";ValidCommands="60000,60008";CryptoMethodsList="AES.BLOWFISH.3DES";]`
	parentKey = "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
	familyKey = "6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f"
	cookie    = "c00c1ec00c1ec00c1ec00c1ec00c1ec00c1ec00c1ec00c1ec00c1ec00c1e0000"
	syscallID = "24*62*submit-side@matchsession*$CondorVersion:_25.14.1_2026-10-16_PackageID:_25.14.1+dfsg-1_$*0*<127.0.0.1:9545>"
	streamKey = "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"
)

// captured returns the recorded environment of a starter of 25.14.1 with real
// sockets in it, and the startd's and the shadow's ends.
func captured(t testing.TB) (env []string, startd, shadow net.Conn) {
	t.Helper()
	update, startd := pair(t)
	syscall, shadow := pair(t)
	endpoint, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + cookie + "/" + filepath.Base(t.TempDir()), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"PATH=/bin", "CONDOR_PARENT_ID=host:81:1795210559",
		fmt.Sprintf("CONDOR_INHERIT=81 %s 1 %d*3*0*0*0*0***0*<127.0.0.1:21059>*0*0*0*0*0*0*0*"+
			" 1 %d*3*20*1*%s*64*3*1*0100000002000000%s%s*%s*1*1*1*1*64*%s*0*"+
			" 0 SharedPort:%s/slot1_1_81_d25c_3*%d*6*0*0*0*0***1**0*0*0*0*0*0*0* 0",
			parent, hand(t, update.(*net.TCPConn)), hand(t, syscall.(*net.TCPConn)), syscallID,
			strings.Repeat("A1", 16), strings.Repeat("B2", 16), streamKey, strings.Repeat("0F", 64), cookie, hand(t, endpoint)),
		"CONDOR_PRIVATE_INHERIT= SessionKey:0123456789abcdef0123456789abcdef0123456789abcdef#" + policy + parentKey +
			" FamilySessionKey:family:0123456789abcdef0123456789abcdef0123456789abcdef#" + policy + familyKey,
		"CONDOR_PRIVATE_SHARED_PORT_COOKIE=" + cookie, "_CONDOR_EXECUTE=/exec",
	}, startd, shadow
}

func inherit(t testing.TB) (h *Inheritance, startd, shadow net.Conn) {
	t.Helper()
	env, startd, shadow := captured(t)
	h, err := Inherit(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h, startd, shadow
}

func TestInherit(t *testing.T) {
	h, _, _ := inherit(t)
	got := map[string]any{
		"pid": h.ParentPID, "parent": h.Parent.String(), "id": h.ParentID, "endpoint": h.EndpointID, "version": h.Version(),
		"update encrypted": h.Update.Encrypted(), "syscall encrypted": h.Syscall.Encrypted(), "user": h.Syscall.User(), "shadow": h.Syscall.PeerVersion(),
		"parent session": h.ParentSession.ID, "parent user": h.ParentSession.User, "parent addr": h.ParentSession.Addr, "commands": h.ParentSession.ValidCommands,
		"family session": h.FamilySession.ID, "family user": h.FamilySession.User, "family may": h.FamilySession.Levels.Has(cedar.Daemon),
	}
	want := map[string]any{
		"pid": 81, "parent": parent, "id": "host:81:1795210559", "endpoint": "slot1_1_81_d25c_3", "version": "$CondorVersion: 25.14.1 ExportedSessionInfo $",
		"update encrypted": false, "syscall encrypted": true, "user": "submit-side@matchsession",
		"shadow":         "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $",
		"parent session": "0123456789abcdef0123456789abcdef0123456789abcdef", "parent user": "condor@parent", "parent addr": parent, "commands": []int{60000, 60008},
		"family session": "family:0123456789abcdef0123456789abcdef0123456789abcdef", "family user": "condor@family", "family may": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("inherited", "h", h)
	for _, shown := range []string{log.String(), fmt.Sprintf("%v %+v", h.ParentSession, h.FamilySession)} {
		if strings.Contains(shown, parentKey[:8]) || strings.Contains(shown, familyKey[:8]) || strings.Contains(shown, streamKey[:8]) {
			t.Errorf("a secret is shown: %s", shown)
		}
	}
}

// TestInheritPlain: a startd with USE_SHARED_PORT = False hands down a port of
// the starter's own, TCP and UDP.
func TestInheritPlain(t *testing.T) {
	update, _ := pair(t)
	syscall, _ := pair(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	u, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	udp := hand(t, u)
	h, err := Inherit([]string{fmt.Sprintf("CONDOR_INHERIT=81 <127.0.0.1:9618?alias=localhost> 1 %d*3*0*0*0*0***0*<127.0.0.1:1>*0*0*0*0*0*0*0* 1 %d*3*0*0*0*0***0*<127.0.0.1:1>*0*0*0*0*0*0*0* 0 1 %d*2*0*0*0*0***1**0*0*0*0*0*0*0* 2 %d*2*0*0 0",
		hand(t, update.(*net.TCPConn)), hand(t, syscall.(*net.TCPConn)), hand(t, l.(*net.TCPListener)), udp)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	if want, got := fmt.Sprintf("<127.0.0.1:%d?addrs=127.0.0.1-%[1]d&alias=localhost&noUDP>", port), h.OwnAddress(config.FromMap(nil)).String(); got != want {
		t.Errorf("own address %s, want %s", got, want)
	}
	if _, err := unix.FcntlInt(uintptr(udp), unix.F_GETFD, 0); err == nil {
		t.Error("the UDP socket is still open")
	}
	if h.ParentSession != nil || h.Version() != "" {
		t.Errorf("%+v", h)
	}
}

func TestInheritErrors(t *testing.T) {
	good, _, _ := captured(t)
	text, _ := strings.CutPrefix(good[2], "CONDOR_INHERIT=")
	for name, tt := range map[string]struct {
		env  []string
		want string
	}{
		"by hand":          {[]string{"PATH=/bin"}, "started by condor_startd"},
		"no pid":           {[]string{"CONDOR_INHERIT=x"}, "process id of the parent"},
		"odd pid":          {[]string{"CONDOR_INHERIT=-1 <1.2.3.4:5> 0 0"}, "process id of the parent"},
		"no parent":        {[]string{"CONDOR_INHERIT=81"}, "address of the parent"},
		"no sockets":       {[]string{"CONDOR_INHERIT=81 <1.2.3.4:5> 0 0"}, "0 connections are handed down"},
		"cut":              {[]string{"CONDOR_INHERIT=81 <1.2.3.4:5>"}, "the list has no end"},
		"unknown kind":     {[]string{"CONDOR_INHERIT=81 <1.2.3.4:5> 7 x"}, "unknown kind"},
		"standard output":  {[]string{"CONDOR_INHERIT=81 <1.2.3.4:5> 1 1*3*0*0*0*0***0*<127.0.0.1:1>*0*0*0*0*0*0*0* 0 0"}, "standard stream"},
		"no such fd":       {[]string{"CONDOR_INHERIT=81 <1.2.3.4:5> 1 99999*3*0*0*0*0***0*<127.0.0.1:1>*0*0*0*0*0*0*0* 0 0"}, "not an open socket"},
		"UDP fd is odd":    {[]string{"CONDOR_INHERIT=81 <1.2.3.4:5> 2 1*3 0 0"}, "not a number above 2"},
		"UDP fd is closed": {[]string{"CONDOR_INHERIT=81 <1.2.3.4:5> 2 99999*3 0 0"}, "is not a socket"},
		"huge":             {[]string{"CONDOR_INHERIT=" + strings.Repeat("x", maxInherit+1)}, "at most"},
		"bad key":          {[]string{good[2], "CONDOR_PRIVATE_INHERIT=SessionKey:secret"}, "SessionKey"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Inherit(tt.env)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if h != nil {
				t.Error("a result besides the error")
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), streamKey[:8])) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
	// The sockets have been taken: the descriptors are closed.
	if _, err := Inherit([]string{"CONDOR_INHERIT=" + text}); err == nil {
		t.Error("closed descriptors were inherited again")
	}
}

// TestInheritFromSchedd: a schedd hands down a command socket and no connections.
func TestInheritFromSchedd(t *testing.T) {
	listener := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("1 %d*2*0*0*0*0***1**0*0*0*0*0*0*0*", fd)
	}
	h, err := InheritFromSchedd([]string{"CONDOR_INHERIT=17 <127.0.0.1:9618> 0 " + listener() + " 0"})
	if err != nil {
		t.Fatal(err)
	}
	h.Listener.Close()
	if h.Update != nil || h.Syscall != nil || h.ParentPID != 17 {
		t.Errorf("got %+v", h)
	}
	for name, text := range map[string]string{
		"nothing": "", "no socket": "CONDOR_INHERIT=17 <127.0.0.1:9618> 0 0", "a connection": "CONDOR_INHERIT=17 <127.0.0.1:9618> " + listener() + " 0 " + listener() + " 0",
	} {
		if h, err := InheritFromSchedd([]string{text}); err == nil {
			t.Errorf("%s: got %+v", name, h)
		}
	}
}

func TestScrubEnv(t *testing.T) {
	env := []string{"PATH=/bin", "CONDOR_INHERIT=x", "CONDOR_PRIVATE_INHERIT=x", "CONDOR_PRIVATE_NEW=x", "CONDOR_INHERITED=kept", "CONDOR_CONFIG=/c", "_CONDOR_EXECUTE=/e"}
	want := []string{"PATH=/bin", "CONDOR_INHERITED=kept", "CONDOR_CONFIG=/c", "_CONDOR_EXECUTE=/e"}
	if diff := cmp.Diff(want, ScrubEnv(env)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left := strings.Join(want, " ")
	for _, name := range SecretVariables() {
		if strings.Contains(left, name+"=") {
			t.Errorf("%s is secret but not scrubbed", name)
		}
	}
}

func TestOwnAddress(t *testing.T) {
	h, _, _ := inherit(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "shared_port_ad")
	k := config.FromMap(map[string]string{"SHARED_PORT_DAEMON_AD_FILE": file})
	fallback := "<127.0.0.1:9618?addrs=127.0.0.1-9618+[--1]-9618&alias=localhost&noUDP&sock=slot1_1_81_d25c_3>"
	for name, tt := range map[string]struct{ content, want string }{
		"there":         {"MyType = \"SharedPort\"\nMyAddress = \"<10.0.0.1:9618?CCBID=1.2.3.4:9618%3faddrs%3d1.2.3.4-9618#5&noUDP>\"\n", "<10.0.0.1:9618?CCBID=1.2.3.4:9618%3faddrs%3d1.2.3.4-9618#5&noUDP&sock=slot1_1_81_d25c_3>"},
		"not yet":       {"", fallback},
		"no address":    {"MyType = \"SharedPort\"\n", fallback},
		"nonsense":      {"((((", fallback},
		"bad address":   {"MyAddress = \"<\"\n", fallback},
		"not listening": {"MyAddress = \"<10.0.0.1:0?sock=x>\"\n", fallback},
		"too large":     {strings.Repeat("A = 1\n", maxAdFile/6+1), fallback},
	} {
		t.Run(name, func(t *testing.T) {
			os.Remove(file)
			if tt.content != "" {
				if err := os.WriteFile(file, []byte(tt.content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := h.OwnAddress(k).String(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	// A broker that lost the shared port gives it another id.
	own := h.OwnAddress(k)
	for _, id := range []string{"5", "6", ""} {
		want := "<10.0.0.1:9618?CCBID=1.2.3.4:9618#" + id + "&noUDP&sock=slot1_1_81_d25c_3>"
		if id == "" {
			os.Remove(file) // while the shared port is started again
			want = "<10.0.0.1:9618?CCBID=1.2.3.4:9618#6&noUDP&sock=slot1_1_81_d25c_3>"
		} else if err := os.WriteFile(file, []byte("MyAddress = \"<10.0.0.1:9618?CCBID=1.2.3.4:9618#"+id+"&noUDP>\"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := own.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.OwnAddress(k).String(); got != fallback { // and does not wait
		t.Errorf("a pipe: %s", got)
	}
}

func TestNetwork(t *testing.T) {
	for name, tt := range map[string]struct {
		knobs map[string]string
		want  cedar.Network
	}{
		"no tool":          {nil, cedar.Network{Prefer: cedar.IPv4}},
		"both":             {map[string]string{"ENABLE_IPV4": "auto", "ENABLE_IPV6": "auto", "IPV4_ADDRESS": "10.0.0.1", "IPV6_ADDRESS": "fd00::1"}, cedar.Network{Prefer: cedar.IPv4}},
		"no IPv4 here":     {map[string]string{"ENABLE_IPV4": "auto", "ENABLE_IPV6": "auto", "IPV6_ADDRESS": "fd00::1"}, cedar.Network{NoIPv4: true, Prefer: cedar.IPv4}},
		"no IPv6 here":     {map[string]string{"ENABLE_IPV4": "true", "ENABLE_IPV6": "true", "IPV4_ADDRESS": "10.0.0.1"}, cedar.Network{NoIPv6: true, Prefer: cedar.IPv4}},
		"the site's wish":  {map[string]string{"ENABLE_IPV4": "False", "IPV4_ADDRESS": "10.0.0.1", "IPV6_ADDRESS": "fd00::1"}, cedar.Network{NoIPv4: true, Prefer: cedar.IPv4}},
		"IPv6 first":       {map[string]string{"PREFER_OUTBOUND_IPV4": "false"}, cedar.Network{Prefer: cedar.IPv6}},
		"the peer's order": {map[string]string{"IGNORE_TARGET_PROTOCOL_PREFERENCE": "false"}, cedar.Network{}},
		"slow":             {map[string]string{"TIMEOUT_MULTIPLIER": "3"}, cedar.Network{Prefer: cedar.IPv4, Slow: 3}},
		"slow starters":    {map[string]string{"TIMEOUT_MULTIPLIER": "3", "STARTER_TIMEOUT_MULTIPLIER": "4"}, cedar.Network{Prefer: cedar.IPv4, Slow: 4}},
		"absurdly slow":    {map[string]string{"TIMEOUT_MULTIPLIER": "9223372036854775807"}, cedar.Network{Prefer: cedar.IPv4, Slow: mostSlow}},
		"no number":        {map[string]string{"TIMEOUT_MULTIPLIER": "-7", "STARTER_TIMEOUT_MULTIPLIER": "much"}, cedar.Network{Prefer: cedar.IPv4}},
		"bound":            {map[string]string{"BIND_ALL_INTERFACES": "False", "IPV4_ADDRESS": "10.0.0.1", "IPV6_ADDRESS": "fd00::1"}, cedar.Network{Prefer: cedar.IPv4, FromIPv4: "10.0.0.1", FromIPv6: "fd00::1"}},
		"not bound":        {map[string]string{"BIND_ALL_INTERFACES": "True", "IPV4_ADDRESS": "10.0.0.1", "IPV6_ADDRESS": "fd00::1"}, cedar.Network{Prefer: cedar.IPv4}},
		"private":          {map[string]string{"PRIVATE_NETWORK_NAME": "here"}, cedar.Network{Private: "here", Prefer: cedar.IPv4}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Network(config.FromMap(tt.knobs))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestInheritedStreamGoesOn sends on both connections and compares what arrives
// with a peer that knows the state.
func TestInheritedStreamGoesOn(t *testing.T) {
	h, _, shadow := inherit(t)
	h.Syscall.PutInt(-63)
	if err := h.Syscall.EndMessage(); err != nil {
		t.Fatal(err)
	}
	// The second packet on this connection: no IV is sent again.
	b := make([]byte, 5+8+16)
	if _, err := io.ReadFull(shadow, b); err != nil || b[0] != 1 || b[4] != 24 {
		t.Errorf("% x, %v", b, err)
	}
}

func FuzzInherit(f *testing.F) {
	f.Add("81 "+parent+" 1 12*3*0*0*0*0***0*<127.0.0.1:21059>*0*0*0*0*0*0*0* 1 8*3*20*1*"+syscallID+"*64*3*1*00*00*1*1*1*1*64*00*0* 0 SharedPort:x/slot1*14*6*0*0*0*0***1**0*0*0*0*0*0*0* 0",
		" SessionKey:a#"+policy+parentKey+" FamilySessionKey:b#[]c")
	f.Add("81 "+parent+" 2 3*x 0 1 4*2*0*0*0*0***1**0*0*0*0*0*0*0* 0", "SessionKey:")
	f.Fuzz(func(t *testing.T, inherited, private string) {
		h, err := Inherit([]string{"CONDOR_INHERIT=" + inherited, "CONDOR_PRIVATE_INHERIT=" + private})
		if err == nil {
			h.close()
		}
		h = &Inheritance{}
		if h.sessions(private) == nil {
			_ = h.Version()
		}
	})
}
