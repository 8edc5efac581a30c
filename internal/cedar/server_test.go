package cedar

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

const ownVersion = "$CondorVersion: 25.14.1 2026-10-16 test $"

// world is a server with sessions, behind a TCP port or a shared port.
type world struct {
	server   *Server
	addr     string // of the server
	daemon   *Session
	reader   *Session
	received chan string
	kept     chan *Stream
}

const (
	testCommand = 1500 // DAEMON, string -> int
	testKeep    = 1502 // READ, keeps the stream
	testRaw     = 1600 // ALLOW
)

// newWorld starts a server. With shared, it sits behind a shared port.
func newWorld(t *testing.T, shared bool) *world {
	t.Helper()
	w := &world{received: make(chan string, 10), kept: make(chan *Stream, 1)}
	var err error
	w.daemon, err = MintSession("condor@family", Daemon)
	must(t, err)
	w.reader, err = MintSession("user@example.org", Read)
	must(t, err)
	table := NewSessions()
	must(t, table.Add(w.daemon))
	must(t, table.Add(w.reader))
	w.server = &Server{Sessions: table, Version: ownVersion, Log: slog.New(slog.DiscardHandler)}
	w.server.Handle(testCommand, Daemon, func(_ context.Context, c *Call) error {
		v, err := c.Stream.GetString()
		if err := errors.Join(err, c.Stream.EndOfMessage()); err != nil {
			return err
		}
		w.received <- c.User + " " + v
		c.Stream.PutInt(1)
		return nil // the server ends the message
	})
	w.server.Handle(testKeep, Read, func(_ context.Context, c *Call) error {
		w.kept <- c.Keep()
		return nil
	})
	w.server.Handle(testRaw, Allow, func(_ context.Context, c *Call) error {
		v, err := c.Stream.GetString()
		w.received <- c.User + " " + v
		return errors.Join(err, c.Stream.EndOfMessage())
	})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var l net.Listener = tcp
	w.addr = "<" + tcp.Addr().String() + ">"
	if shared {
		var random [8]byte
		_, err := rand.Read(random[:])
		must(t, err)
		name := "@" + hex.EncodeToString(random[:]) + "/slot1_1_63_239c_4"
		ux, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		must(t, err)
		l = SharedPortListener(ux)
		w.addr = "<" + tcp.Addr().String() + "?noUDP&sock=slot1_1_63_239c_4>"
		go sharedPort(t, tcp, name)
		t.Cleanup(func() { tcp.Close() })
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

// sharedPort does what condor_shared_port does: it reads one message, byte by
// byte so as to take no more, and passes the connection on.
func sharedPort(t *testing.T, l net.Listener, target string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var h [headerSize]byte
			if _, err := io.ReadFull(c, h[:]); err != nil {
				return
			}
			payload := make([]byte, h[4])
			if _, err := io.ReadFull(c, payload); err != nil {
				return
			}
			s, _ := recorder(append(h[:], payload...))
			cmd, err := s.GetInt()
			id, err2 := s.GetString()
			name, err3 := s.GetString()
			deadline, err4 := s.GetInt()
			more, err5 := s.GetInt()
			if err := errors.Join(err, err2, err3, err4, err5, s.EndOfMessage()); err != nil {
				t.Errorf("shared port: %v", err)
				return
			}
			if cmd != SharedPortConnect || id != "slot1_1_63_239c_4" || name == "" || deadline < 1 || more != 0 {
				t.Errorf("shared port: %d %q %q %d %d", cmd, id, name, deadline, more)
				return
			}
			if err := PassConn(context.Background(), target, c.(*net.TCPConn)); err != nil {
				t.Errorf("shared port: %v", err)
			}
		}()
	}
}

func (w *world) client() *Client {
	return &Client{Version: ownVersion, Own: "<127.0.0.1:9618?sock=slot1_1>", Name: "STARTER", Timeout: 10 * time.Second}
}

// worlds runs a test behind a TCP port and behind a shared port.
func worlds(t *testing.T, f func(t *testing.T, w *world)) {
	for _, shared := range []bool{false, true} {
		name := "tcp"
		if shared {
			name = "shared port"
		}
		t.Run(name, func(t *testing.T) { f(t, newWorld(t, shared)) })
	}
}

func TestCommand(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for _, quiet := range []bool{false, true} {
			s, err := w.client().Start(t.Context(), Command{Addr: w.addr, Number: testCommand, Session: w.daemon, NoResponse: quiet})
			must(t, err)
			if !s.Encrypted() || !quiet && s.PeerVersion() != ownVersion {
				t.Error("no session")
			}
			s.PutString("reason")
			must(t, s.EndMessage())
			if got := <-w.received; got != "condor@family reason" {
				t.Error(got)
			}
			wantInt(t, s, 1)
			must(t, s.EndOfMessage())
			if _, err := s.GetInt(); !errors.Is(err, io.EOF) {
				t.Errorf("the connection goes on: %v", err)
			}
			s.Close()
		}
	})
}

func TestBuiltinCommands(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		ask := func(cmd Command) *Stream {
			t.Helper()
			cmd.Addr = w.addr
			s, err := w.client().Start(t.Context(), cmd)
			must(t, err)
			t.Cleanup(func() { s.Close() })
			must(t, s.EndMessage())
			return s
		}
		var first []byte
		for _, session := range []*Session{nil, w.reader, w.daemon} {
			s := ask(Command{Number: DCQueryInstance, Session: session})
			id, err := s.GetBytes(16)
			must(t, err)
			must(t, s.EndOfMessage())
			if first == nil {
				first = id
			}
			if !bytes.Equal(first, id) {
				t.Errorf("another instance: %s, %s", first, id)
			}
			s = ask(Command{Number: DCNop, Session: session})
			if err := s.Wait(); !errors.Is(err, io.EOF) {
				t.Errorf("DC_NOP was answered: %v", err)
			}
		}
		for _, c := range []struct {
			session *Session
			auth    int
			want    bool
		}{{w.reader, DCNopRead, true}, {w.reader, testCommand, false}, {w.daemon, DCNopWrite, true}} {
			s := ask(Command{Number: DCSecQuery, Auth: c.auth, Session: c.session})
			ad, err := s.GetAd()
			must(t, err)
			if got, err := ad.GetBool("AuthorizationSucceeded"); err != nil || got != c.want {
				t.Errorf("%v for %d: %v, %v", c.session, c.auth, got, err)
			}
		}
	})
}

func TestRefusedCommands(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		stranger, err := MintSession("x@y", Daemon)
		must(t, err)
		for _, c := range []struct {
			name string
			cmd  Command
			want error // of the start; nil: the connection just ends
		}{
			{"unknown session", Command{Number: testCommand, Session: stranger}, ErrSessionUnknown},
			{"unknown command", Command{Number: 4711, Session: w.daemon}, io.EOF},
			{"missing level", Command{Number: testCommand, Session: w.reader}, nil},
			{"missing level of a builtin", Command{Number: DCNopAdministrator, Session: w.daemon}, nil},
			{"raw command that needs a level", Command{Number: testCommand}, nil},
			{"raw unknown command", Command{Number: 4711}, nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.cmd.Addr = w.addr
				s, err := w.client().Start(t.Context(), c.cmd)
				if c.want != nil {
					var where *CommandError
					if !errors.Is(err, c.want) || !errors.As(err, &where) {
						t.Errorf("got %v", err)
					}
					return
				}
				must(t, err)
				defer s.Close()
				s.PutString("x")
				_ = s.EndMessage()
				// A reset is possible too: the server has not read the payload.
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
	})
}

func TestRawCommand(t *testing.T) {
	w := newWorld(t, true)
	s, err := w.client().Command(t.Context(), w.addr, testRaw, nil)
	must(t, err)
	defer s.Close()
	s.PutString("hello")
	must(t, s.EndMessage())
	if got := <-w.received; got != unauthenticated+" hello" {
		t.Error(got)
	}
}

func TestKeptStream(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		a, err := w.client().Command(t.Context(), w.addr, testKeep, w.reader)
		must(t, err)
		defer a.Close()
		a.PutInt(1)
		must(t, a.EndMessage())
		b := <-w.kept
		defer b.Close()
		wantInt(t, b, 1)
		must(t, b.EndOfMessage())
		if b.User() != "user@example.org" || b.PeerVersion() != ownVersion {
			t.Error(b.User(), b.PeerVersion())
		}
		// From now on the server's side calls.
		b.PutInt(288)
		must(t, b.EndMessage())
		wantInt(t, a, 288)
		must(t, a.EndOfMessage())
		a.PutInt(1)
		must(t, a.EndMessage())
		wantInt(t, b, 1)
	})
}

func TestClientErrors(t *testing.T) {
	c := &Client{Version: ownVersion, Timeout: time.Second}
	for _, addr := range []string{"", "<x", "<0.0.0.0:0?sock=a>", "<127.0.0.1:1>"} {
		_, err := c.Command(t.Context(), addr, 1, nil)
		var where *CommandError
		if !errors.As(err, &where) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	_, err := c.Command(t.Context(), "<127.0.0.1:1?CCBID=1.1.1.1:9618#3>", 1, nil)
	if err == nil || !strings.Contains(err.Error(), "broker") {
		t.Errorf("no word of the broker: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Command(ctx, "<127.0.0.1:1>", 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// A server that says nothing.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	session, err := MintSession("x@y")
	must(t, err)
	c.Timeout = 50 * time.Millisecond
	if _, err := c.Command(t.Context(), "<"+l.Addr().String()+">", 1, session); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestDenied(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	session, err := MintSession("x@y")
	must(t, err)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s := NewStream(conn)
		_ = s.answer(`ReturnCode = "DENIED"`)
	}()
	c := &Client{Version: ownVersion}
	if _, err := c.Command(t.Context(), "<"+l.Addr().String()+">", 1, session); !errors.Is(err, ErrNotAuthorized) {
		t.Errorf("got %v", err)
	}
}

// TestKeyIsProved: who knows a session's name, which goes over the network in clear,
// but not its key, has nothing done; who has it has, though the command says
// nothing more.
func TestKeyIsProved(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		const order = 60005 // as one that ends a daemon: nothing follows it
		w.server.Handle(order, Daemon, func(context.Context, *Call) error {
			w.received <- "done"
			return nil
		})
		stolen, err := MintSession("condor@family", Daemon)
		must(t, err)
		stolen.ID = w.daemon.ID // with another key
		for name, tt := range map[string]struct {
			session *Session
			say     func(*Stream)
			done    bool
		}{
			"no message":                 {w.daemon, func(s *Stream) { _ = s.EndMessage() }, false},
			"no message, and the end":    {stolen, func(s *Stream) { _ = s.EndMessage() }, false},
			"a message of another key's": {stolen, func(s *Stream) { s.PutInt(1); _ = s.EndMessage() }, false},
			"one that is not encrypted":  {w.daemon, func(s *Stream) { _, _ = s.Conn().Write([]byte{1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1}) }, false},
			"the key":                    {w.daemon, func(s *Stream) { s.PutInt(1); _ = s.EndMessage() }, true},
		} {
			for _, quiet := range []bool{false, true} {
				s, err := w.client().Start(t.Context(), Command{Addr: w.addr, Number: order, Session: tt.session, NoResponse: quiet})
				must(t, err)
				tt.say(s)
				if half, ok := s.Conn().(interface{ CloseWrite() error }); ok {
					_ = half.CloseWrite()
				}
				_, _ = io.ReadAll(s.Conn()) // until the server has ended it
				s.Close()
				select {
				case <-w.received:
					if !tt.done {
						t.Errorf("%s (quiet: %v): it is done", name, quiet)
					}
				default:
					if tt.done {
						t.Errorf("%s (quiet: %v): it is not done", name, quiet)
					}
				}
			}
		}
	})
}
