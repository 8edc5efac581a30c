package round

import (
	"context"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/supply"
)

// leave ends all units, as after the last job.
func (s *site) leave() {
	units, _ := s.platform.List(context.Background())
	for _, u := range units {
		s.platform.Finish(u.Name)
		s.platform.Forget(u.Name)
	}
	s.pool.slots, s.pool.ads = map[string]*supply.Pod{}, map[string]*classads.Ad{}
	s.run()
}

// A pod's own ad says until when it takes jobs. A new pod takes them as much longer,
// however long ago the last one was seen.
func TestPodsAfterAQuietTime(t *testing.T) {
	for name, start := range map[string]string{
		"an attribute of its own": "DaemonStartTime = 1793606400\nToRetire = 1793635200\nSTART = time() < ToRetire",
		"its age":                 "DaemonStartTime = 1793606400\nSTART = time() - MY.DaemonStartTime < 28800",
		"what it measures":        "DaemonStartTime = 1793606400\nLoadAvg = 9.5\nSTART = LoadAvg < 3",
		"nothing for a while":     "DaemonStartTime = 1793606400\nDownTime = true\nSTART = DownTime =!= true",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if began := s.now.Unix(); began != 1793606400 {
				t.Fatalf("the clock is at %d", began)
			}
			s.advertise("Requirements = START\n" + start)
			s.leave()
			for range 3 {
				s.now = s.now.Add(9 * time.Hour)
				s.run()
			}
			s.pool.groups = []demand.Group{jobs(t, 1, strings.Replace(plainJob, "= TARGET", "= TARGET.Cpus == 1 && TARGET", 1))}
			if rep := s.run(); len(rep.Made) != 1 {
				t.Errorf("%v are made for a job: %+v", rep.Made, rep.Output.Groups)
			}
		})
	}
}
