package localjob

import (
	"log/slog"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/userlog"
	"podstarter/payload"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/usage"
)

// TestHangingLog: a file system that does not answer, which may be the user's own, keeps the process only until an order allows
// no delay.
func TestHangingLog(t *testing.T) {
	for name, ordered := range map[string]bool{"ordered before": true, "ordered meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			hangs, release, entered := false, make(chan struct{}), make(chan struct{}, 8)
			defer close(release)
			ad := classads.NewAd()
			ad.SetString("UserLog", t.TempDir()+"/log")
			events, err := userlog.Open(userlog.Options{Job: ad, Knobs: config.FromMap(nil), User: func(do func() error) error {
				if hangs {
					entered <- struct{}{}
					<-release
					return errHangs // it leaves the directory alone, which the test removes
				}
				return do()
			}})
			if err != nil {
				t.Fatal(err)
			}
			hangs = true
			log := slog.New(slog.DiscardHandler)
			l := &life{log: log, orders: orders.New(log), ad: ad, events: events, lastPatience: time.Millisecond}
			end := func() { l.orders.End(orders.Demand{Urgency: orders.Hard, Reason: "a test"}) }
			if ordered {
				end()
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				l.write(userlog.Execute{Host: "<h>"}, true)
				l.write(userlog.Evicted{}, true) // not at the same time
			}()
			<-entered
			if !ordered {
				select {
				case <-done:
					t.Error("the event is given up without an order")
				case <-time.After(50 * time.Millisecond):
				}
				end()
			}
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the process hangs")
			}
			if n := len(entered); n != 0 {
				t.Errorf("%d more attempts at the same log", n)
			}
		})
	}
}

// TestKilledByTheWrapper: a job that the wrapper has killed, for whatever reason but an order, has not ended by itself, and runs again.
func TestKilledByTheWrapper(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for killed, runs := range map[string]bool{payload.KilledSweep: false, payload.KilledLost: true} {
		o := orders.New(log)
		l := &life{log: log, orders: o, run: &payloadrun.Run{}, meter: usage.NewMeter(usage.Knobs{}, log)}
		l.container = &payloadrun.Container{Options: payloadrun.Options{Orders: o, Log: log, KernelKilled: func() bool { return false }}}
		err := l.ended(payload.Exit{Killed: killed, WaitStatus: 9}, nil)
		if known := l.run.Exit != nil; (err != nil) != runs || known == runs {
			t.Errorf("%s: %v, its end is known: %v", killed, err, known)
		}
	}
}
