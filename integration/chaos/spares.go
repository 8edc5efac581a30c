package chaos

import (
	"fmt"
	"strings"
	"time"
)

// aheadTag begins the throw-away tags of containers that are made ahead (k8sexec.takeStock).
const aheadTag = ":run-ahead-"

// mayBeAhead says whether a starter may have written an image into the pod's spec after that
// moment and been killed before it could say so.
func (c *checker) mayBeAhead(spec string, after time.Time) bool {
	if !strings.Contains(spec, aheadTag) {
		return false
	}
	for _, k := range c.Kills {
		if k.Kind == KindStarter && !k.Time.Before(after) {
			return true
		}
	}
	return false
}

// ahead checks containers that were made before a job wanted them: nobody else had the
// lease, and jobs got such containers. Each job ran as its container's user.
func (c *checker) ahead() {
	for _, made := range c.Ahead {
		for _, a := range c.Activations {
			if span, ok := c.span(a); ok && a.Container == made.Container && span.from.Before(made.Time) && made.Time.Before(span.to) {
				c.found(Overlap, "%s: starter %d made it ahead at %s, and %s had it from %s", made.Container, made.PID, made.Time.Format(stamp), a, span)
			}
		}
	}
	fresh := 0
	last := map[string]Activation{}
	for _, a := range c.Activations {
		if a.Fresh {
			fresh++
		}
		if !a.Started.IsZero() && a.Started.After(last[a.Job].Started) {
			last[a.Job] = a
		}
	}
	if c.Spares > 0 && len(c.Ahead) == 0 {
		c.found(NoEvidence, "no container was made ahead")
	}
	if c.Spares > 0 && fresh == 0 {
		c.found(NoEvidence, "no job got a container that was made ahead")
	}
	for _, job := range c.Jobs {
		account, reported := c.Accounts[job.ID]
		a, started := last[job.ID]
		if want, known := c.Users[a.Container]; reported && started && (!known || account.UID != want) {
			c.found(Wrong, "job %s ran as user %d in %s, whose user is %d", job.ID, account.UID, a.Container, want)
		}
	}
}

// slots checks what starters have noted of the containers.
func (c *checker) slots() {
	for _, what := range c.Noted {
		c.found(Misnoted, "%s", what)
	}
	last := map[string]Activation{}
	for _, a := range c.Activations {
		if a.Leased.After(last[a.Container].Leased) {
			last[a.Container] = a
		}
	}
	for _, s := range c.Slots {
		found := func(format string, args ...any) {
			c.found(Misnoted, "container %s, when all jobs had ended: %s", s.Container, fmt.Sprintf(format, args...))
		}
		if s.Leased {
			found("it is leased")
		}
		if s.InUse && !strings.HasPrefix(last[s.Container].Exit, "signal") {
			found("it is noted as in use; %s had it last", last[s.Container])
		}
		if s.InUse && s.Fresh {
			found("it is noted as in use and as fresh")
		}
		if s.Nonce != "" && s.Nonce != s.PodNonce {
			found("the nonce %s is noted, and the pod has %s", s.Nonce, s.PodNonce)
		}
		if s.Spec != "" && s.Spec != c.Specs[s.Container] {
			found("the image %s is noted, and the pod has %s", s.Spec, c.Specs[s.Container])
		}
		if s.Wrappers != 1 || s.Strange > 0 {
			c.found(Leftover, "container %s has %d wrappers and %d other processes", s.Container, s.Wrappers, s.Strange)
		}
	}
	for container := range c.Specs {
		if !c.noted(container) {
			c.found(NoEvidence, "nothing is noted of container %s", container)
		}
	}
}

func (c *checker) noted(container string) bool {
	for _, s := range c.Slots {
		if s.Container == container {
			return true
		}
	}
	return false
}
