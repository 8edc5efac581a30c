package cedar

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/classads"
)

// TestHostileHandshakes sends what no client sends.
func TestHostileHandshakes(t *testing.T) {
	w := newWorld(t, false)
	addr := strings.Trim(w.addr, "<>")
	resume := func(lines ...string) []byte {
		s, out := recorder(nil)
		s.PutInt(DCAuthenticate)
		s.putLiterals(lines)
		_ = s.EndMessage()
		return out.Bytes()
	}
	var many []string
	for i := range maxAuthLines + 1 {
		many = append(many, "A"+itoa(i)+" = 1")
	}
	for name, input := range map[string][]byte{
		"http":              []byte("GET / HTTP/1.0\r\n\r\n"),
		"tls":               {0x16, 3, 1, 2, 0, 1},
		"too many lines":    resume(many...),
		"no lines":          resume(),
		"new session":       resume("Command = 1500", `NewSession = "YES"`),
		"command as text":   resume(`Command = "1500"`, `UseSession = "YES"`),
		"session is number": resume("Command = 1500", `UseSession = "YES"`, "Sid = 5"),
		"legacy cipher":     resume("Command = 1500", `UseSession = "YES"`, "Sid = "+classads.QuoteOld(w.daemon.ID), `CryptoMethods = "BLOWFISH"`),
		"huge message":      append(header(0, 60000), make([]byte, 60000)...),
		"expression":        resume(`Command = strcat("a", "b")`, `UseSession = "YES"`),
		"line without name": resume("= 1"),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			must(t, err)
			defer c.Close()
			_, _ = c.Write(input)
			if name == "huge message" || name == "tls" {
				_, _ = c.Write(header(0, 60000))
				_, _ = c.Write(make([]byte, 60000))
			}
			got, err := io.ReadAll(c)
			if len(got) > 0 || err != nil && !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("answered with %q, %v", got, err)
			}
		})
	}
	t.Run("wrong key", func(t *testing.T) {
		other, err := MintSession("x@y", Daemon)
		must(t, err)
		fake := &Session{ID: w.daemon.ID, key: other.key}
		s, err := w.client().Command(t.Context(), w.addr, testCommand, fake)
		must(t, err)
		defer s.Close()
		s.PutString("x")
		must(t, s.EndMessage())
		if err := s.Wait(); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("got %v", err)
		}
		select {
		case got := <-w.received:
			t.Errorf("the handler got %q", got)
		default:
		}
	})
}

// TestHostilePasses sends to the unix socket what a shared port never sends.
func TestHostilePasses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ux, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	l := SharedPortListener(ux)
	defer l.Close()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	pass := func(message []byte, files ...*os.File) {
		t.Helper()
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		must(t, err)
		defer c.Close()
		_, _ = c.Write(message)
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		if fds != nil {
			_, _, _ = c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
		}
		// It closes when it is done.
		_, _ = io.ReadAll(c)
	}
	file, err := os.Open(os.DevNull)
	must(t, err)
	defer file.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	listener, err := tcp.(*net.TCPListener).File()
	must(t, err)
	defer listener.Close()
	a, b := connPair(t)
	good, err := a.(*net.TCPConn).File()
	must(t, err)
	defer good.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	local := os.NewFile(uintptr(pair[0]), "local")
	defer local.Close()
	defer unix.Close(pair[1])

	pass([]byte("GET / HTTP/1.0"))
	pass(passMessage[:], file)
	pass(passMessage[:], listener)
	pass(passMessage[:], local)
	pass(passMessage[:], good, good)
	wrong := passMessage
	wrong[12] = 75
	pass(wrong[:], good)
	pass(append(passMessage[:12:12], passMessage[12], 0)) // a byte without a descriptor
	select {
	case c := <-accepted:
		t.Errorf("accepted %v", c.RemoteAddr())
	default:
	}
	pass(passMessage[:], good)
	c := <-accepted
	defer c.Close()
	_, err = b.Write([]byte("x"))
	must(t, err)
	var x [1]byte
	_, err = io.ReadFull(c, x[:])
	must(t, err)
	raw, err := c.(*net.TCPConn).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("the passed connection survives exec: %d, %v", flags, err)
		}
	}))
	must(t, l.Close())
	if _, open := <-accepted; open {
		t.Error("another connection")
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
}

// TestSharedPortRefuses keeps a user out, and lets the slow ones not block it.
func TestSharedPortRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ux, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	l := SharedPortListener(ux).(*SharedPort)
	defer l.Close()
	asked := make(chan uint32, 2*passLimit)
	refuse := make(chan bool, 2*passLimit)
	l.Refuse = func(uid uint32) bool {
		asked <- uid
		return <-refuse
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	dial := func(refused bool) net.Conn {
		t.Helper()
		refuse <- refused
		c, err := net.Dial("unix", path)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		if uid := <-asked; int(uid) != os.Getuid() {
			t.Errorf("asked about user %d", uid)
		}
		return c
	}
	if _, err := dial(true).Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a refused user: %v", err)
	}
	first := dial(false)
	for range passLimit {
		dial(false)
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the slowest of too many: %v", err)
	}
	a, _ := connPair(t)
	refuse <- false
	must(t, PassConn(t.Context(), path, a.(*net.TCPConn)))
	(<-accepted).Close()
}
