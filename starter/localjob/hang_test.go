package localjob

import (
	"log/slog"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/userlog"
	"podstarter/starter/orders"
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
