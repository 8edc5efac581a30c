package round

import (
	"errors"
	"testing"
	"time"
)

// As long as its ad stays, a pod that is withdrawn would be made again, under the
// same name.
func TestWithdrawalWhileAdsStay(t *testing.T) {
	s, m := offlineSite(t)
	s.run()
	made := s.minute(m, 2).Made
	if len(made) != 1 {
		t.Fatalf("%v are made", made)
	}
	m.beforeTake = func() error { return errors.New("no answer") }
	failed := 0
	for range 20 {
		s.now = s.now.Add(time.Minute)
		m.negotiate(t, 0)
		rep := s.run()
		if len(rep.Withdrawn)+len(rep.Made) != 0 {
			t.Fatalf("%v are withdrawn, %v made", rep.Withdrawn, rep.Made)
		}
		if rep.Err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Fatal("nothing was to be taken back")
	}
	m.beforeTake = nil
	var withdrawn []string
	for range 20 {
		withdrawn = append(withdrawn, s.minute(m, 0).Withdrawn...)
	}
	if len(withdrawn) != 1 || withdrawn[0] != made[0] {
		t.Errorf("%v are withdrawn", withdrawn)
	}
}
