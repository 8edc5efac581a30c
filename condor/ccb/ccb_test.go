package ccb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// TestShare: many silent brokers together take hardly longer than the caller's patience.
func TestShare(t *testing.T) {
	for name, c := range map[string]struct {
		wait, patience time.Duration
		left           int
		want           time.Duration
	}{
		"one":                   {mostWait, patience, 1, mostWait},
		"two":                   {mostWait, patience, 2, mostWait},
		"four":                  {mostWait, patience, 4, 30 * time.Second},
		"the caller is shorter": {time.Second, patience, 2, time.Second},
		"patience is over":      {mostWait, -time.Second, 3, leastWait},
	} {
		if got := share(c.wait, c.patience, leastWait, c.left); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	now, all := time.Unix(0, 0), 2*maxContacts // two ways
	at := now
	for left := all; left > 0; left-- {
		at = at.Add(share(mostWait, patience-at.Sub(now), leastWait, left))
	}
	if took := at.Sub(now); took > patience+time.Duration(all)*leastWait {
		t.Errorf("%d silent attempts take %s", all, took)
	}
}

// TestManySilent: a call of a daemon whose brokers are all silent ends soon after the caller's patience.
func TestManySilent(t *testing.T) {
	client, desk := starter(t, "")
	var contacts []string
	for range 3 {
		b := newBroker(t, func(_ *broker, s *cedar.Stream, _ *classads.Ad) { _, _ = s.GetInt() })
		contacts = append(contacts, b.l.Addr().String()+"#7")
	}
	caller := Caller{Desk: desk, Broker: *client, Patience: 300 * time.Millisecond, Least: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	// If each had the whole time, this context would end it.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := caller.Reverse(ctx, cedar.Sinful{Host: "127.0.0.1", Port: 1}.With("CCBID", strings.Join(contacts, " ")), time.Minute)
	if err == nil || ctx.Err() != nil || strings.Count(err.Error(), errSilence.Error()) != 3 {
		t.Errorf("the error is %v", err)
	}
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
