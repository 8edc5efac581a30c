package round

import (
	"testing"
	"time"

	"podstarter/provisioner/demand"
)

// A site mends the manifest of a template of which no pod could begin. Those that wait
// keep no others from being made, and are withdrawn.
func TestPodsOfAManifestThatWasMended(t *testing.T) {
	for name, stick := range map[string]func(s *site, unit string){
		"no node":              func(s *site, unit string) { s.platform.Stick(unit) },
		"refused":              func(s *site, unit string) { s.platform.Refuse(unit) },
		"a node, and no image": func(s *site, unit string) { s.platform.Place(unit); s.platform.NoImage(unit) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.pool.groups = []demand.Group{jobs(t, 6, plainJob)}
			old := s.run().Made
			if len(old) != 3 {
				t.Fatalf("%v are made", old)
			}
			for _, unit := range old {
				stick(s, unit)
			}
			s.now = s.now.Add(10 * time.Minute)
			s.run()
			s.restart(s.platform)
			for _, unit := range old {
				s.platform.Former(unit)
			}
			made, withdrawn := 0, 0
			for range 6 {
				rep := s.run()
				for _, unit := range rep.Made {
					s.report(unit, s.round.shapes[0].Pod)
				}
				made, withdrawn = made+len(rep.Made), withdrawn+len(rep.Withdrawn)
				s.now = s.now.Add(time.Minute)
			}
			if made != 6 || withdrawn != 3 {
				t.Errorf("%d pods are made for 6 jobs, and %d of 3 old ones are withdrawn", made, withdrawn)
			}
		})
	}
}
