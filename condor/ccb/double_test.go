package ccb

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

const (
	ours        = "$CondorVersion: 25.14.1 2026-10-16 test $"
	testCommand = 61001
)

// broker is a collector as far as this package sees it: it agrees to a session without a key and does with the request what
// a test wants.
type broker struct {
	t       *testing.T
	version string
	answer  func(b *broker, s *cedar.Stream, request *classads.Ad)
	asked   atomic.Int32
	denies  atomic.Bool
	l       net.Listener
}

func newBroker(t *testing.T, answer func(*broker, *cedar.Stream, *classads.Ad)) *broker {
	t.Helper()
	b := &broker{t: t, version: ours, answer: answer, l: listen(t)}
	go func() {
		for {
			conn, err := b.l.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (b *broker) serve(conn net.Conn) {
	defer conn.Close()
	b.asked.Add(1)
	s := cedar.NewStream(conn)
	s.SetTimeout(10 * time.Second)
	if command, err := s.GetInt(); err != nil || command != cedar.DCAuthenticate {
		return
	}
	if _, err := getAd(s); err != nil {
		return
	}
	policy, result := classads.NewAd(), classads.NewAd()
	policy.SetString("RemoteVersion", b.version)
	policy.SetString("Authentication", "NO")
	result.SetString("ReturnCode", "AUTHORIZED")
	if b.denies.Load() {
		result.SetString("ReturnCode", "DENIED")
	}
	for _, ad := range []*classads.Ad{policy, result} {
		if err := send(s, ad); err != nil {
			return
		}
	}
	request, err := getAd(s)
	if err != nil {
		return
	}
	b.answer(b, s, request)
}

func (b *broker) reply(s *cedar.Stream, ok bool, why string) {
	ad := classads.NewAd()
	ad.SetBool("Result", ok)
	if why != "" {
		ad.SetString("ErrorString", why)
	}
	_ = send(s, ad)
}

// daemon is one that takes no connections: it serves those that it makes.
type daemon struct {
	t        *testing.T
	server   cedar.Server
	session  *cedar.Session
	received chan string
	conns    chan net.Conn
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	session, err := cedar.MintSession("submit-side@matchsession", cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, session: session, received: make(chan string, 1), conns: make(chan net.Conn)}
	d.server = cedar.Server{Sessions: cedar.NewSessions(), Version: ours}
	if err := d.server.Sessions.Add(session); err != nil {
		t.Fatal(err)
	}
	d.server.Handle(testCommand, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
		v, err := c.Stream.GetString()
		d.received <- v
		return errors.Join(err, c.Stream.EndOfMessage())
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.server.Serve(ctx, own{d.conns, ctx}) }()
	t.Cleanup(func() { cancel(); <-done })
	return d
}

// own is a listener of the connections that a daemon makes.
type own struct {
	conns chan net.Conn
	ctx   context.Context
}

func (l own) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}
func (own) Close() error   { return nil }
func (own) Addr() net.Addr { return &net.TCPAddr{} }

// connect makes a connection to an address and says who it is, as CCBListener does
// (ccb_listener.cpp:ReverseConnected).
func (d *daemon) connect(address, id string) net.Conn {
	to, err := cedar.ParseSinful(address)
	if err != nil {
		d.t.Error(err)
		return nil
	}
	conn, err := net.Dial("tcp", to.DialAddress())
	if err != nil {
		d.t.Error(err)
		return nil
	}
	s := cedar.NewStream(conn)
	s.PutInt(cedar.CCBReverseConnect)
	ad := classads.NewAd()
	ad.SetString("ClaimId", id)
	ad.SetString("RequestID", "1")
	ad.SetString("MyAddress", address)
	if err := send(s, ad); err != nil {
		d.t.Error(err)
	}
	return conn
}

// starter is a process that calls daemons and can be called.
func starter(t *testing.T, params string) (*cedar.Client, *Desk) {
	t.Helper()
	desk := &Desk{Log: slog.New(slog.DiscardHandler)}
	l := listen(t)
	server := &cedar.Server{Sessions: cedar.NewSessions(), Version: ours}
	server.Handle(cedar.CCBReverseConnect, cedar.Allow, desk.Serve)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-done })
	client := &cedar.Client{Version: ours, Own: "<" + l.Addr().String() + params + ">", Name: "STARTER", Timeout: 10 * time.Second}
	caller := Caller{Desk: desk, Broker: *client, Relay: true, Patience: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	client.Reverse = caller.Reverse
	return client, desk
}

func str(ad *classads.Ad, name string) string { return ad.StringOr(name, "") }

// callsBack does what a broker and a daemon do when all is well.
func callsBack(d *daemon) func(*broker, *cedar.Stream, *classads.Ad) {
	return func(b *broker, s *cedar.Stream, request *classads.Ad) {
		d.conns <- d.connect(str(request, "MyAddress"), str(request, "ClaimId"))
		b.reply(s, true, "")
	}
}

// relays does what a broker does for two daemons that are both behind one.
func relays(d *daemon) func(*broker, *cedar.Stream, *classads.Ad) {
	return func(b *broker, s *cedar.Stream, request *classads.Ad) {
		if wanted, err := request.GetBool("CCBStreamingRequired"); err != nil || !wanted {
			b.reply(s, false, "the requester is behind a broker")
			return
		}
		b.reply(s, true, "")
		s.PutInt(cedar.CCBReverseConnect)
		hello := classads.NewAd()
		hello.SetString("ClaimId", str(request, "ClaimId"))
		if err := send(s, hello); err != nil {
			b.t.Error(err)
			return
		}
		conn, _ := s.Detach()
		ended := make(chan struct{})
		d.conns <- &watched{Conn: conn, ended: ended}
		<-ended
	}
}

// watched tells when it is closed.
type watched struct {
	net.Conn
	ended  chan struct{}
	closed atomic.Bool
}

func (w *watched) Close() error {
	if !w.closed.Swap(true) {
		close(w.ended)
	}
	return w.Conn.Close()
}

func refuses(why string) func(*broker, *cedar.Stream, *classads.Ad) {
	return func(b *broker, s *cedar.Stream, _ *classads.Ad) { b.reply(s, false, why) }
}
