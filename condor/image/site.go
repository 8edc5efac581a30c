package image

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
)

// Site decides which images jobs get at an execution point. It never changes and
// is safe for concurrent use.
type Site struct {
	knobs           Knobs
	own             *Map // nil without a map file
	policy          choice
	fallback        choice
	allowed, denied []pattern
	mirrors         mirrors
	carrier         Reference // zero if images are never files
	paths           []string  // clean
	othersMay       bool      // take images that this site does not know
	contact         string
}

// Decision is the image of a job.
type Decision struct {
	// Image is the image to bind; the zero value is the image with which the
	// payload container was created.
	Image Reference
	// File is the image if it is in no registry: its files go into a container with
	// Image, which is the carrier then.
	File File
	// Docker: docker's rules apply to the command. The image's entry point
	// counts, and a command that is not transferred belongs to the image.
	Docker bool
	// Knob is the knob that named the image; empty if the job named it.
	Knob string
	// Says is a clause for log and messages that explains how Image follows from
	// the configured name, empty if there is nothing to explain.
	Says string
}

// Default reports whether neither job nor site named an image.
func (d Decision) Default() bool { return d.Image == Reference{} }

// NewSite reads the knobs. Its error lists everything that is wrong with them,
// one *[Mistake] each.
func NewSite(k Knobs) (*Site, error) {
	var problems *multierror.Error
	s := &Site{knobs: k, contact: "whoever runs this execution point"}
	bad := func(knob string, err error) {
		if err != nil {
			problems = multierror.Append(problems, mistake(knob, "%w", err))
		}
	}
	if admin, ok := k.Lookup(knobAdmin); ok && !strings.HasPrefix(admin, "root@") {
		s.contact += " (" + admin + ")"
	}
	var err error
	if path := text(k, KnobMap); path != "" && !filepath.IsAbs(path) {
		bad(KnobMap, fmt.Errorf("%s is not an absolute path", excerpt(path)))
	} else if path != "" {
		s.own, err = ReadMap(path)
		bad(KnobMap, err)
	}
	s.allowed, err = parsePatterns(text(k, KnobAllowed))
	bad(KnobAllowed, err)
	s.denied, err = parsePatterns(text(k, KnobDenied))
	bad(KnobDenied, err)
	s.mirrors, err = parseMirrors(text(k, KnobMirrors))
	bad(KnobMirrors, err)
	s.carrier, err = parseCarrier(text(k, KnobCarrier))
	bad(KnobCarrier, err)
	s.paths, err = parsePaths(text(k, KnobPaths))
	bad(KnobPaths, err)
	if s.HasCarrier() {
		s.carrier = s.mirrors.rewrite(s.carrier)
	}
	s.othersMay, err = parseUnknown(text(k, KnobUnknown))
	bad(KnobUnknown, err)
	s.policy, err = parsePolicy(text(k, KnobPolicy))
	bad(KnobPolicy, err)
	s.fallback, err = parseChoice(text(k, KnobDefault), func(word string) bool {
		_, err := Parse(word)
		return err == nil
	})
	bad(KnobDefault, err)
	if problems == nil && s.fallback.word != "" {
		// It is the same for every job, so check it against the rules now.
		if _, err := s.resolve(&wish{text: s.fallback.word, source: KnobDefault}); err != nil {
			bad(KnobDefault, err)
		}
	}
	if err := problems.ErrorOrNil(); err != nil {
		return nil, err
	}
	return s, nil
}

// text returns a knob's value; an $ENV() of an unset variable counts as empty.
func text(k Knobs, name string) string {
	value, _ := k.Lookup(name)
	if value = strings.TrimSpace(value); strings.EqualFold(value, "UNDEFINED") {
		return ""
	}
	return value
}

// HasMap reports whether the site has a map of its own.
func (s *Site) HasMap() bool { return s.own != nil }

// Choose decides on the image of a job, given its ad and its slot's. Errors are
// *[podstarter/condor/job.Failure], for the job, and *[Mistake], for the site.
func (s *Site) Choose(ad, machine *classads.Ad) (Decision, error) {
	policy, err := s.policyFor(ad, machine)
	if err != nil {
		return Decision{}, err
	}
	w := wishOf(ad, machine, s.knobs)
	switch {
	case w == nil && policy == PolicyRequired:
		return Decision{}, elsewhere("only jobs that name an image run here (%s), and this one names none; name one in the submit file, as container_image = docker://registry/name:tag, or let the job run elsewhere", KnobPolicy)
	case w == nil:
		return s.choiceOfSite(ad, machine)
	case policy == PolicyNever:
		return Decision{}, elsewhere("jobs with an image of their own do not run here (%s); the job can run elsewhere, or here without %s", KnobPolicy, orWhat(w.source, "asking for a container"))
	case w.text == "":
		return Decision{}, hold(SubcodeNoImage, "the job asks for a container but names no image: neither DockerImage nor ContainerImage is a string; submit with docker_image or container_image")
	}
	return s.resolve(w)
}

func orWhat(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// choiceOfSite returns the image for jobs that name none: from HTCondor's own
// knobs, else from ours, else the one that the pod was created with.
func (s *Site) choiceOfSite(ad, machine *classads.Ad) (Decision, error) {
	use, err := s.knobs.EvalBool(knobUseDefault, false, machine, ad)
	if err != nil {
		return Decision{}, &Mistake{Knob: knobUseDefault, Err: err}
	}
	name, knob := "", knobStockDefault
	if use {
		if name, err = s.knobs.EvalString(knobStockDefault, "", machine, ad); err != nil {
			return Decision{}, &Mistake{Knob: knobStockDefault, Err: err}
		}
	}
	if strings.TrimSpace(name) == "" {
		knob = KnobDefault
		if name, err = s.fallback.eval(ad, machine); err != nil {
			return Decision{}, &Mistake{Knob: KnobDefault, Err: err}
		}
	}
	if strings.TrimSpace(name) == "" {
		return Decision{}, nil
	}
	d, err := s.resolve(&wish{text: strings.TrimSpace(name), source: knob, docker: knob == knobStockDefault && strings.HasPrefix(name, "docker:")})
	d.Knob = knob
	return d, siteOwn(knob, err)
}

// resolve turns a name into the reference to bind.
func (s *Site) resolve(w *wish) (Decision, error) {
	if len(w.text) > maxName {
		return Decision{}, hold(SubcodeInvalidReference, "the image name %s (%s) is not valid: it is %d bytes long", excerpt(w.text), w.source, len(w.text))
	}
	d := Decision{Docker: w.docker}
	var says []string
	name, rule, mapped := s.translate(w)
	if !mapped {
		switch what := w.notInRegistry(); {
		case what != "" && s.HasCarrier() && w.mayBeFile():
			return s.fromFile(w)
		case what != "":
			return d, s.unknown(w, SubcodeNotInRegistry, "image %s (%s): %s cannot be used here, only images from a registry can; push it to a registry and write container_image = docker://registry/name:tag%s",
				excerpt(w.text), w.source, what, s.mapHint())
		}
		name = w.text
	}
	named, err := Parse(name)
	if err != nil {
		by := ""
		if mapped {
			by = fmt.Sprintf(" after %s made %s of it", rule, excerpt(name))
		}
		return d, hold(SubcodeInvalidReference, "the image name %s (%s) is not valid%s: %v; write it as registry/name:tag or registry/name@sha256:digest", excerpt(w.text), w.source, by, err)
	}
	if mapped {
		says = append(says, fmt.Sprintf("%s (%s) stands for image %s (%s)", excerpt(w.text), w.source, named, rule))
	}
	if err := s.verdict(named); err != nil {
		for _, clause := range says {
			err = fmt.Errorf("%w; %s", err, clause)
		}
		return d, hold(SubcodeNotAllowed, "%w", err)
	}
	d.Image = s.mirrors.rewrite(named)
	if d.Image != named {
		if _, err := Parse(d.Image.String()); err != nil {
			return d, mistake(KnobMirrors, "image %s would become %s: %w", named, d.Image, err)
		}
		says = append(says, fmt.Sprintf("image %s is pulled through the site's mirror as %s", named, d.Image))
	}
	d.Says = strings.Join(says, "; ")
	return d, nil
}

// translate looks in the site's map and then in the built-in one.
func (s *Site) translate(w *wish) (name, rule string, ok bool) {
	for _, m := range []*Map{s.own, builtinMap()} {
		for _, spelling := range w.spellings() {
			if name, rule, ok = m.lookup(w.source, spelling); ok {
				return name, rule, true
			}
		}
	}
	return "", "", false
}

func (s *Site) mapHint() string {
	if s.own == nil {
		return ""
	}
	return fmt.Sprintf(" (no rule of %s matches it either; ask %s)", KnobMap, s.contact)
}
