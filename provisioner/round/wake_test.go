package round

import (
	"errors"
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/advert"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
)

func TestWake(t *testing.T) {
	s, _ := offlineSite(t)
	ad := advert.One{Name: "offline@site-plain-1.two", Offer: advert.Offer{Unit: "site-plain-1", Shape: "two", Matched: s.now.Add(-time.Minute)}}
	wake := func(want string) string {
		t.Helper()
		said, err := s.round.Wake(t.Context(), ad, 15*time.Minute)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
		return said
	}
	name := strings.Fields(wake("is made"))[3]
	wake("was made for this match before")
	s.restart(s.platform)
	wake("was made for this match before")
	s.now = s.now.Add(5 * time.Minute)
	ad.Matched = s.now
	wake(name + " is on its way")
	s.platform.Begin(name)
	wake(name + " is on its way")
	s.report(name, resources.Amount{CPUs: 2})
	ad.Matched = s.now.Add(-6 * time.Minute)
	if said := wake("was made"); strings.Contains(said, "is made") {
		t.Error(said)
	}
	// Jobs match again, now that the pod is busy.
	s.now = s.now.Add(time.Minute)
	ad.Matched = s.now
	wake("is made")
	if n := s.units(); n[platform.Running] != 1 || n[platform.Pending] != 1 {
		t.Errorf("there are %v", n)
	}
	ad.Matched = s.now.Add(-time.Hour)
	wake("which is not within 15m0s")
	ad.Matched = s.now.Add(time.Hour)
	wake("which is not within 15m0s")
	ad.Matched = time.Time{}
	wake("no job has matched it")
	ad.Matched, ad.Shape = s.now, "three"
	wake("its shape is not configured")
	ad.Name, ad.Shape = "offline@site-plain-2.two", "two"
	s.config.Limits.Pods = 2
	s.restart(s.platform)
	wake("the limit of 2 pods is reached")
	s.config.Limits.Pods = 3
	s.restart(s.platform)
	s.platform.Deny(true)
	wake("the platform refuses to make it")
	s.platform.Deny(false)
	s.pool.slots, s.pool.slotsErr = nil, errors.New("no answer")
	wake("no answer")
	if n := s.units(); n[platform.Running]+n[platform.Pending] != 2 {
		t.Errorf("there are %v", n)
	}
}
