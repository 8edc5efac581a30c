package ccb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
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

func TestReverse(t *testing.T) {
	type answer = func(*broker, *cedar.Stream, *classads.Ad)
	for name, c := range map[string]struct {
		answers []func(*daemon) answer // of the brokers
		own     string                 // parameters of the starter's address
		version string                 // of the brokers
		timeout time.Duration
		asked   int      // how often, of one broker
		words   []string // of an error
	}{
		"connects back": {answers: []func(*daemon) answer{callsBack}, asked: 1},
		"the reply is late": {answers: []func(*daemon) answer{func(d *daemon) answer {
			return func(b *broker, s *cedar.Stream, request *classads.Ad) {
				b.reply(s, true, "")
				d.conns <- d.connect(str(request, "MyAddress"), str(request, "ClaimId"))
			}
		}}, asked: 1},
		"the broker dies when it has passed on the request": {answers: []func(*daemon) answer{func(d *daemon) answer {
			return func(b *broker, s *cedar.Stream, request *classads.Ad) {
				d.conns <- d.connect(str(request, "MyAddress"), str(request, "ClaimId"))
				<-d.received // it arrived
				d.received <- "payload"
			}
		}}, asked: 1},
		"an intruder comes first": {answers: []func(*daemon) answer{func(d *daemon) answer {
			return func(b *broker, s *cedar.Stream, request *classads.Ad) {
				for _, id := range []string{"", "0123456789", strings.ToUpper(str(request, "ClaimId")) + "x"} {
					conn := d.connect(str(request, "MyAddress"), id)
					wantClosed(b.t, conn)
				}
				callsBack(d)(b, s, request)
			}
		}}, asked: 1},
		"one broker refuses, another helps": {answers: []func(*daemon) answer{func(*daemon) answer { return refuses("no such daemon") }, callsBack}},
		"one broker is silent, another helps": {timeout: 300 * time.Millisecond, answers: []func(*daemon) answer{func(*daemon) answer {
			return func(b *broker, s *cedar.Stream, _ *classads.Ad) { _, _ = s.GetInt() }
		}, callsBack}},
		"all refuse": {answers: []func(*daemon) answer{func(*daemon) answer { return refuses("no daemon is registered") }},
			words: []string{"refuses", "no daemon is registered", "id 7", "connection broker (CCB)"}},
		"refused without a word": {answers: []func(*daemon) answer{func(*daemon) answer { return refuses("") }}, words: []string{"without a reason"}},
		"hangs up": {answers: []func(*daemon) answer{func(*daemon) answer {
			return func(*broker, *cedar.Stream, *classads.Ad) {}
		}}, words: []string{"read the broker's answer"}},
		"says that all is well, and nobody comes": {timeout: 300 * time.Millisecond, answers: []func(*daemon) answer{func(*daemon) answer {
			return func(b *broker, s *cedar.Stream, _ *classads.Ad) { b.reply(s, true, ""); _, _ = s.GetInt() }
		}}, words: []string{"it takes too long", "open connections to that address"}},
		"both behind one": {own: "?CCBID=127.0.0.1:1#3", answers: []func(*daemon) answer{relays}, asked: 1},
		"both behind one that is old, and in the same network": {own: "?CCBID=127.0.0.1:1#3", version: "$CondorVersion: 25.11.0 2026-01-01 x $", answers: []func(*daemon) answer{callsBack}, asked: 2},
		"both behind one that does not want to": {own: "?CCBID=127.0.0.1:1#3", answers: []func(*daemon) answer{func(*daemon) answer { return refuses("streaming is disabled") }},
			asked: 2, words: []string{"streaming is disabled"}},
		"passes on somebody else": {own: "?CCBID=127.0.0.1:1#3", timeout: 300 * time.Millisecond, answers: []func(*daemon) answer{func(*daemon) answer {
			return func(b *broker, s *cedar.Stream, request *classads.Ad) {
				b.reply(s, true, "")
				s.PutInt(cedar.CCBReverseConnect)
				hello := classads.NewAd()
				hello.SetString("ClaimId", "other")
				_ = send(s, hello)
			}
		}}, words: []string{"not the daemon that was asked for"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t)
			client, desk := starter(t, c.own)
			if c.timeout > 0 {
				client.Timeout = c.timeout
			}
			var contacts []string
			var brokers []*broker
			for _, answer := range c.answers {
				b := newBroker(t, answer(d))
				if c.version != "" {
					b.version = c.version
				}
				brokers = append(brokers, b)
				contacts = append(contacts, b.l.Addr().String()+"#7")
			}
			// Nobody listens there: what arrives came through a broker.
			to := cedar.Sinful{Host: "127.0.0.1", Port: 1}.With("CCBID", strings.Join(contacts, " "))
			s, err := client.Command(t.Context(), to.String(), testCommand, d.session)
			if c.words != nil {
				if err == nil {
					t.Fatal("no error")
				}
				for _, w := range append(c.words, "refused") { // at its own address as well
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%q is missing: %v", w, err)
					}
				}
			} else {
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				s.PutString("payload")
				if err := s.EndMessage(); err != nil {
					t.Fatal(err)
				}
				if v := <-d.received; v != "payload" {
					t.Errorf("got %q", v)
				}
			}
			if n := int(brokers[0].asked.Load()); c.asked > 0 && n != c.asked {
				t.Errorf("the broker was asked %d times, not %d", n, c.asked)
			}
			desk.mu.Lock()
			defer desk.mu.Unlock()
			if len(desk.expected) > 0 {
				t.Errorf("%d are still expected", len(desk.expected))
			}
		})
	}
}

// TestAgain: a daemon that is registered at its broker only later is reached then. A broker that
// never will help is asked once.
func TestAgain(t *testing.T) {
	for name, c := range map[string]struct {
		deny  bool // whether the broker allows nobody
		first func(*broker, *cedar.Stream, *classads.Ad)
		asked int
	}{
		"not registered yet": {first: refuses("no daemon is registered"), asked: 2},
		"denied":             {deny: true, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			client, desk := starter(t, "")
			caller := Caller{Desk: desk, Broker: *client, Pause: time.Millisecond, Patience: time.Minute, Log: slog.New(slog.DiscardHandler)}
			caller.Broker.Reverse = nil
			client.Reverse = caller.Reverse
			b := newBroker(t, func(b *broker, s *cedar.Stream, request *classads.Ad) {
				if b.asked.Load() == 1 {
					c.first(b, s, request)
				} else {
					callsBack(d)(b, s, request)
				}
			})
			b.denies.Store(c.deny)
			to := cedar.Sinful{Host: "127.0.0.1", Port: 1}.With("CCBID", b.l.Addr().String()+"#7")
			s, err := client.Command(t.Context(), to.String(), testCommand, d.session)
			if c.deny != errors.Is(err, cedar.ErrDenied) || !c.deny && err != nil {
				t.Errorf("%v", err)
			}
			if s != nil {
				s.Close()
			}
			if n := int(b.asked.Load()); n != c.asked {
				t.Errorf("asked %d times, not %d", n, c.asked)
			}
		})
	}
}

// TestDirect: a daemon whose brokers do not help is reached at its own address.
func TestDirect(t *testing.T) {
	d := newDaemon(t)
	client, _ := starter(t, "")
	b := newBroker(t, refuses("no"))
	l := listen(t)
	go func() {
		if conn, err := l.Accept(); err == nil {
			d.conns <- conn
		}
	}()
	at, err := cedar.ParseSinful("<" + l.Addr().String() + ">")
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.Command(t.Context(), at.With("CCBID", b.l.Addr().String()+"#7").String(), testCommand, d.session)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.PutString("directly")
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if v := <-d.received; v != "directly" || b.asked.Load() != 1 {
		t.Errorf("%q, %d requests", v, b.asked.Load())
	}
}

// TestRequest: what a broker is told.
func TestRequest(t *testing.T) {
	for name, c := range map[string]struct {
		contact, own string
		want         map[string]string
	}{
		"plain":                      {"#7", "", map[string]string{"CCBID": "7", "back": ""}},
		"behind other brokers":       {"#7#8#9", "", map[string]string{"CCBID": "7#8#9", "back": ""}},
		"both":                       {"#7", "?CCBID=127.0.0.1:1#3", map[string]string{"CCBID": "7", "streaming": "true", "back": "?CCBID=127.0.0.1:1#3"}},
		"both, behind other brokers": {"#7#8#9", "?CCBID=127.0.0.1:1#3", map[string]string{"CCBID": "7", "CCBRoute": "8 9", "streaming": "true", "back": "?CCBID=127.0.0.1:1#3"}},
	} {
		t.Run(name, func(t *testing.T) {
			requests := make(chan *classads.Ad, 4)
			b := newBroker(t, func(b *broker, s *cedar.Stream, request *classads.Ad) {
				requests <- request
				b.reply(s, false, "no")
			})
			client, _ := starter(t, c.own)
			to := cedar.Sinful{Host: "127.0.0.1", Port: 1}.With("CCBID", b.l.Addr().String()+c.contact)
			if _, err := client.Command(t.Context(), to.String(), testCommand, nil); err == nil {
				t.Error("no error")
			}
			ad := <-requests
			got := map[string]string{"CCBID": str(ad, "CCBID"), "back": ""}
			if _, params, found := strings.Cut(strings.TrimSuffix(str(ad, "MyAddress"), ">"), "?"); found {
				got["back"] = "?" + params
			}
			if v := str(ad, "CCBRoute"); v != "" {
				got["CCBRoute"] = v
			}
			if v, err := ad.GetBool("CCBStreamingRequired"); err == nil {
				got["streaming"] = fmt.Sprint(v)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if id := str(ad, "ClaimId"); len(id) != 40 {
				t.Errorf("connect id %q", id)
			}
			if c.own == "" {
				return
			}
			// The second time, the daemon is to connect without the broker.
			if back := str(<-requests, "MyAddress"); back == "" || strings.Contains(back, "CCBID") {
				t.Errorf("the daemon is to connect to %s", back)
			}
		})
	}
}

// TestCancelled: the end of the context ends the wait at once.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBroker(t, func(_ *broker, s *cedar.Stream, _ *classads.Ad) {
		cancel()
		_, _ = s.GetInt()
	})
	client, _ := starter(t, "")
	to := cedar.Sinful{Host: "127.0.0.1", Port: 1}.With("CCBID", b.l.Addr().String()+"#7 "+b.l.Addr().String()+"#8")
	if _, err := client.Command(ctx, to.String(), testCommand, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := b.asked.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestLate: a daemon that connects when nobody waits for it any more sees the connection closed.
func TestLate(t *testing.T) {
	client, desk := starter(t, "")
	d := newDaemon(t)
	id, _, done, err := desk.expect()
	if err != nil {
		t.Fatal(err)
	}
	done()
	wantClosed(t, d.connect(client.Own, id))
	// One that comes while the wait is being given up.
	id, arrives, done, err := desk.expect()
	if err != nil {
		t.Fatal(err)
	}
	conn := d.connect(client.Own, id)
	for len(arrives) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("it does not arrive")
		}
	}
	done()
	wantClosed(t, conn)
}

// wantClosed waits until the other end has closed a connection.
func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it is kept: %d bytes, %v", n, err)
	}
}

func TestParseContacts(t *testing.T) {
	for text, want := range map[string][]string{
		"1.2.3.4:9618#5": {"broker 1.2.3.4:9618, id 5"},
		"1.2.3.4:9618?addrs=1.2.3.4-9618&alias=cm&noUDP#5":    {"broker 1.2.3.4:9618, id 5"},
		"1.2.3.4:9618?sock=collector#12 5.6.7.8:9618?noUDP#3": {"broker 1.2.3.4:9618, id 12", "broker 5.6.7.8:9618, id 3"},
		"[fd00::1]:9618#5#6":                  {"broker [fd00::1]:9618, id 5#6"},
		strings.Repeat("1.2.3.4:9618#5 ", 40): slicesOf("broker 1.2.3.4:9618, id 5", maxContacts),
		"":                                    nil,
		" ":                                   nil,
		"1.2.3.4:9618":                        nil,
		"1.2.3.4:9618#":                       nil,
		"1.2.3.4:9618#x":                      nil,
		"1.2.3.4:9618#5#":                     nil,
		"1.2.3.4:port#5":                      nil,
		"1.2.3.4:9618#5 #6":                   nil,
	} {
		contacts, err := ParseContacts(text)
		var got []string
		for _, c := range contacts {
			got = append(got, c.String())
		}
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
}

func slicesOf(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

// FuzzContacts reads whatever the address of a daemon names as its brokers.
func FuzzContacts(f *testing.F) {
	f.Add("1.2.3.4:9618?sock=collector#12 5.6.7.8:9618#3#4")
	f.Add("#")
	f.Fuzz(func(t *testing.T, text string) {
		contacts, err := ParseContacts(text)
		if (err == nil) != (len(contacts) > 0) || len(contacts) > maxContacts {
			t.Errorf("%d contacts, %v", len(contacts), err)
		}
		for _, c := range contacts {
			if strings.Trim(c.ID, "0123456789") != "" || c.ID == "" || strings.Count(c.ids(), "#") != strings.Count(c.Route, " ")+min(1, len(c.Route)) {
				t.Errorf("%+v", c)
			}
		}
	})
}

// FuzzBroker lets a broker say whatever it likes after it was asked, and anybody say it to the desk.
func FuzzBroker(f *testing.F) {
	reply, hello := classads.NewAd(), classads.NewAd()
	reply.SetBool("Result", true)
	hello.SetString("ClaimId", "id")
	good := append(cedartest.Written(f, func(s *cedar.Stream) { s.PutAd(reply) }), cedartest.Written(f, func(s *cedar.Stream) {
		s.PutInt(cedar.CCBReverseConnect)
		s.PutAd(hello)
	})...)
	f.Add(good)
	f.Add(cedartest.Written(f, func(s *cedar.Stream) { s.PutAd(hello) }))
	f.Add(good[:len(good)-3])
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := cedartest.Said(t, raw)
		s.SetPeerVersion(ours)
		s.SetMessageLimit(maxHello)
		if conn, err := relayed(t.Context(), s, classads.NewAd(), "id"); (conn == nil) != (err != nil) {
			t.Errorf("%v, %v", conn, err)
		}
		s = cedartest.Said(t, raw)
		s.SetMessageLimit(maxHello)
		if id, err := readHello(s); err != nil && id != "" {
			t.Errorf("%q, %v", id, err)
		}
	})
}
