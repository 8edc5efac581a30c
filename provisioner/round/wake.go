package round

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/provisioner/advert"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/platform"
)

// ErrNotWoken is returned if a match gets no pod.
var ErrNotWoken = errors.New("no pod is made")

// Wake makes the unit for a match of an offline ad, if there is none yet. The unit's
// name comes from the ad's and the time of the match, so that the same match is
// served once, whoever asks how often. While a unit of the ad is on its way, later
// matches are those of the job that waits for it. Wake returns what it did, for a
// log.
func (r *Round) Wake(ctx context.Context, ad advert.One, within time.Duration) (string, error) {
	now := r.config.Now()
	i := r.index(ad.Template, ad.Shape)
	if i < 0 {
		return "", fmt.Errorf("waking %s: %w: its shape is not configured", ad.Name, ErrNotWoken)
	}
	switch age := now.Sub(ad.Matched); {
	case ad.Matched.IsZero():
		return "", fmt.Errorf("waking %s: %w: the ad has no MachineLastMatchTime, so no job has matched it", ad.Name, ErrNotWoken)
	case age > within || age < -within:
		return "", fmt.Errorf("waking %s: %w: its last match was at %s, which is not within %s", ad.Name, ErrNotWoken, ad.Matched.Format(time.RFC3339), within)
	}
	rep := Report{At: now}
	s := r.lookUnits(ctx, &rep)
	if s.unknown {
		err := multierror.Append(nil)
		for _, p := range rep.Problems {
			err = multierror.Append(err, p.Err)
		}
		return "", fmt.Errorf("waking %s: %w", ad.Name, err)
	}
	r.health.look(s.units, s.slots, now)
	in := r.input(s, rep)
	shape := r.shapes[i]
	template := r.config.Templates[shape.template].Name
	unit := fmt.Sprintf("%s-%s-%s", r.config.Prefix, template, mark(ad))
	phases := map[string]decision.Phase{}
	for _, p := range in.Pods {
		phases[p.ID] = p.Phase
	}
	for _, u := range s.units {
		phase, there := phases[u.Name]
		switch {
		case u.Name == unit:
			return fmt.Sprintf("%s: the pod %s was made for this match before", ad.Name, u.Name), nil
		case u.Group != ad.Name:
		case there && phase < decision.Reported:
			return fmt.Sprintf("%s: the pod %s is on its way", ad.Name, u.Name), nil
		case u.Created.After(ad.Matched):
			return fmt.Sprintf("%s: the pod %s was made after this match", ad.Name, u.Name), nil
		}
	}
	if why := decision.NewTally(&in).Refuses(i); why != "" {
		return "", fmt.Errorf("waking %s: %w: %s", ad.Name, ErrNotWoken, why)
	}
	spec := platform.Spec{Name: unit, Template: template, Shape: shape.Name, Size: shape.Size, Group: ad.Name}
	if err := r.call(ctx, func(ctx context.Context) error { return r.platform.Create(ctx, spec) }); err != nil {
		return "", fmt.Errorf("waking %s: making a pod of the template %s in the shape %s: %w", ad.Name, template, shape.Name, err)
	}
	return fmt.Sprintf("%s: the pod %s is made", ad.Name, unit), r.mend(ctx)
}

// mark ends the name of the unit for a match.
func mark(ad advert.One) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", ad.Name, ad.Matched.Unix()))
	return hex.EncodeToString(sum[:4])
}
