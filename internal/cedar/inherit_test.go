package cedar

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptions as the startd of HTCondor 25.14 writes them, the secrets
// replaced.
const (
	updateSocket = "15*3*0*0*0*0***0*<127.0.0.1:18585>*0*0*0*0*0*0*0*"
	callSocket   = "10*3*20*1*24*62*submit-side@matchsession*$CondorVersion:_25.14.1_2026-10-16_PackageID:_25.14.1+dfsg-1_$*0*<127.0.0.1:29497>*" +
		"64*3*1*0100000002000000000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F*" +
		"0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF*1*1*1*1*64*" +
		"11111111111111111111111111111111111111111111111111111111111111112222222222222222222222222222222222222222222222222222222222222222*0*"
	endpointSocket = "SharedPort:cookie/slot1_1_63_239c_4*13*6*0*0*0*0***1**0*0*0*0*0*0*0*"
)

func TestParseSerialized(t *testing.T) {
	d, err := parseSerialized(updateSocket)
	must(t, err)
	if d.fd != 15 || d.state != stateConnect || d.timeout != 0 || d.user != "" || d.key != nil || d.peer != "<127.0.0.1:18585>" {
		t.Errorf("%+v", d)
	}
	d, err = parseSerialized(callSocket)
	must(t, err)
	if d.fd != 10 || d.timeout != 20*time.Second || d.user != "submit-side@matchsession" || d.sent != 1 || d.received != 2 ||
		!d.sendDone || !d.recvDone || d.sendIV[1] != 1 || d.recvIV[0] != 0x10 || d.key[1] != 0x23 || d.digests[0] != 0x11 || d.digests[63] != 0x22 {
		t.Errorf("%+v", d)
	}
	if want := "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $"; d.version != want {
		t.Error(d.version)
	}
	_, rest, _ := strings.Cut(endpointSocket, "*")
	d, err = parseSerialized(rest)
	must(t, err)
	if d.fd != 13 || d.state != stateSpecial || d.special != specialListening {
		t.Errorf("%+v", d)
	}
}

func TestAdoptRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"no number":          "x" + updateSocket[2:],
		"cut":                callSocket[:200],
		"cut key":            strings.Replace(callSocket, "CDEF*1*", "*1*", 1),
		"negative number":    "-1" + updateSocket[2:],
		"huge number":        "99999999999999999999" + updateSocket[2:],
		"standard stream":    "2" + updateSocket[2:],
		"closed descriptor":  "1000000" + updateSocket[2:],
		"legacy cipher":      strings.Replace(callSocket, "*64*3*1*", "*64*1*1*", 1),
		"unknown cipher":     strings.Replace(callSocket, "*64*3*1*", "*64*9*1*", 1),
		"message digests":    strings.TrimSuffix(updateSocket, "0*") + "32*",
		"listening":          "13*6*0*0*0*0***1**0*0*0*0*0*0*0*",
		"not connected":      "15*1*0*0*0*0***0**0*0*0*0*0*0*0*",
		"wrong user length":  "15*3*0*0*4*0***0**0*0*0*0*0*0*0*",
		"short digests":      "15*3*0*0*0*0***0**0*0*0*0*0*3*112233*0*",
		"enormous":           updateSocket + strings.Repeat("x", maxSerialized),
		"a shared port item": endpointSocket,
	} {
		s, err := Adopt(text)
		if err == nil {
			t.Errorf("%s: adopted as %v", name, s)
		} else if strings.Contains(err.Error(), "456789AB") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

// handDown gives the stream's socket the number that a child would find.
func handDown(t *testing.T, s *Stream) string {
	t.Helper()
	f, err := s.Conn().(*net.TCPConn).File()
	must(t, err)
	fd, err := unix.Dup(int(f.Fd()))
	must(t, err)
	text, err := s.Serialize(fd)
	must(t, err)
	must(t, f.Close())
	must(t, s.Close())
	return text
}

func TestAdoptMidStream(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		b.user, b.peerVersion = "submit-side@matchsession", "$CondorVersion: 25.14.1 x $"
		b.SetTimeout(7 * time.Second)
		say := func(from, to *Stream, text string) {
			t.Helper()
			from.PutString(text)
			must(t, from.EndMessage())
			wantString(t, to, text)
			must(t, to.EndOfMessage())
		}
		say(a, b, "one")
		say(b, a, "two")
		say(a, b, "three")
		for range 2 {
			text := handDown(t, b)
			if got := strings.Count(text, " "); got != 0 {
				t.Errorf("%d blanks in %q", got, text)
			}
			adopted, err := Adopt(text)
			must(t, err)
			t.Cleanup(func() { adopted.Close() })
			if adopted.User() != b.User() || adopted.PeerVersion() != b.PeerVersion() || adopted.Peer() != b.Peer() || adopted.Encrypted() != b.Encrypted() ||
				adopted.deadline.timeout != 7*time.Second {
				t.Errorf("adopted as %q %q %q", adopted.User(), adopted.PeerVersion(), adopted.Peer())
			}
			b = adopted
			say(a, b, "four")
			say(b, a, "five")
		}
	})
}

// TestAdoptBeforeFirstPacket adopts a stream that has a key but has not used
// it in one direction: its first packet still proves the handshake.
func TestAdoptBeforeFirstPacket(t *testing.T) {
	a, b := pair(t)
	for _, s := range [][2]*Stream{{a, b}, {b, a}} {
		s[0].PutString("hello")
		must(t, s[0].EndMessage())
		wantString(t, s[1], "hello")
		must(t, s[1].EndOfMessage())
	}
	encrypt(t, a, b)
	a.PutInt(1)
	must(t, a.EndMessage())
	wantInt(t, b, 1)
	must(t, b.EndOfMessage())
	b, err := Adopt(handDown(t, b))
	must(t, err)
	defer b.Close()
	b.PutInt(2)
	must(t, b.EndMessage())
	wantInt(t, a, 2)
}

func TestAdoptInOtherProcess(t *testing.T) {
	modes(t, func(t *testing.T, a, b *Stream) {
		b.PutInt(1)
		must(t, b.EndMessage())
		wantInt(t, a, 1)
		must(t, a.EndOfMessage())
		wait := startPeer(t, "echo", 0, b)
		for _, text := range []string{"x", strings.Repeat("y", 100000)} {
			a.PutString(text)
			must(t, a.EndMessage())
			wantString(t, a, text)
			must(t, a.EndOfMessage())
		}
		must(t, a.Close())
		wait()
	})
}

func TestSerializeRefuses(t *testing.T) {
	a, b := pair(t)
	a.PutInt(1)
	if _, err := a.Serialize(3); err == nil {
		t.Error("a stream with unsent values was handed down")
	}
	must(t, a.EndMessage())
	must(t, b.Wait())
	if _, err := b.Serialize(3); err == nil {
		t.Error("a stream with unread bytes was handed down")
	}
}

func TestListenInherited(t *testing.T) {
	inherit := func(t *testing.T, l interface{ File() (*os.File, error) }) int {
		f, err := l.File()
		must(t, err)
		defer f.Close()
		fd, err := unix.Dup(int(f.Fd()))
		must(t, err)
		return fd
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "slot1_1_1_ab_1")
	ux, err := net.Listen("unix", path)
	must(t, err)
	defer ux.Close()
	const listening = "*6*0*0*0*0***1**0*0*0*0*0*0*0*"
	number := func(fd int) string { return itoa(fd) + listening }

	l, id, err := ListenInherited(number(inherit(t, tcp.(*net.TCPListener))))
	must(t, err)
	if id != "" || l.Addr().String() != tcp.Addr().String() {
		t.Error(id, l.Addr())
	}
	must(t, l.Close())

	l, id, err = ListenInherited("SharedPort:" + path + "*" + number(inherit(t, ux.(*net.UnixListener))))
	must(t, err)
	if id != "slot1_1_1_ab_1" {
		t.Error(id)
	}
	must(t, l.Close())
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the parent was removed: %v", err)
	}

	for name, text := range map[string]string{
		"connected":          updateSocket,
		"no endpoint":        "SharedPort:x",
		"strange name":       "SharedPort:a/..*" + number(13),
		"closed":             number(1000000),
		"TCP as shared port": "SharedPort:c/x*" + number(inherit(t, tcp.(*net.TCPListener))),
		"shared port as TCP": number(inherit(t, ux.(*net.UnixListener))),
	} {
		if l, _, err := ListenInherited(text); err == nil {
			t.Errorf("%s: listening on %v", name, l.Addr())
		}
	}
}
