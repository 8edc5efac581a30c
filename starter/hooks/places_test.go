package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/hooks"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/orders"
	"podstarter/starter/settings"
)

// container is a payload container that does what a test says, and writes down what is
// asked of it.
type container struct {
	exit     payload.Exit
	err      error
	sweepErr error
	hang     bool
	vacant   bool

	asked []string
	specs []payload.Spec
}

func (c *container) Run(ctx context.Context, s payload.Spec) (payload.Exit, int, error) {
	c.asked = append(c.asked, "run "+s.Args[1])
	c.specs = append(c.specs, s)
	if c.hang {
		<-ctx.Done()
		return payload.Exit{}, 0, context.Cause(ctx)
	}
	return c.exit, 1, c.err
}

func (c *container) Sweep(context.Context) error {
	c.asked = append(c.asked, "sweep")
	return c.sweepErr
}

func (c *container) Vacant() bool          { return c.vacant }
func (c *container) PlatformEnv() []string { return []string{"POD_*"} }

// placeKnobs are the knobs of a site with a program for each occasion. Those of the
// pilot container write what they are told into a file.
func placeKnobs(t *testing.T) (knobs map[string]string, said string) {
	t.Helper()
	said = filepath.Join(t.TempDir(), "said")
	path := hostprogtest.Script(t, `echo "$1 $POD_STARTER_STAGE $OF_THE_SITE $_CONDOR_SLOT $POD_STARTER_JOB_UID $(pwd) $(id -u)" >>`+said+"; cat >>"+said+"; echo done")
	return map[string]string{
		settings.KnobSetup.Name: path, settings.KnobTeardown.Name: path, settings.KnobContainerSetup.Name: path, settings.KnobContainerTeardown.Name: path,
	}, said
}

// TestPlaces: the places of a job are prepared before it and tidied after it, each time
// the pilot container and the payload container, and each once.
func TestPlaces(t *testing.T) {
	knobs, said := placeKnobs(t)
	o, _ := site(t, knobs, "A = 7\nClaimId = \"secret\"")
	c := &container{vacant: true}
	var p hooks.Places
	p.TearDown(t.Context()) // nothing was prepared
	must(t, p.SetUp(t.Context(), o, c))
	p.TearDown(t.Context())
	p.TearDown(t.Context())
	if diff := cmp.Diff([]string{"run setup", "sweep", "run teardown", "sweep"}, c.asked); diff != "" {
		t.Errorf("the payload container (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(said)
	must(t, err)
	want := ""
	for _, stage := range []string{"setup", "teardown"} {
		want += fmt.Sprintf("%s %s yes slot1_1 %d / %d\nA = 7\n", stage, stage, payloadUser, os.Getuid())
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the pilot container (-want +got):\n%s", diff)
	}
	spec := c.specs[0]
	if spec.Activation != "activation.setup" || spec.UID != payloadUser || spec.AsRoot || len(spec.Program) == 0 || spec.Dir != o.Job.Sandbox.Scratch() || spec.Capture == 0 ||
		!slices.Contains(spec.Env, "POD_STARTER_STAGE=setup") || !slices.Contains(spec.Env, "_CONDOR_SLOT=slot1_1") || !cmp.Equal(spec.HideEnv, []string{"POD_*"}) {
		t.Errorf("%+v", spec)
	}
}

// TestNoPrograms: most sites have none.
func TestNoPrograms(t *testing.T) {
	o, _ := site(t, nil, "")
	c := &container{vacant: true}
	var p hooks.Places
	must(t, p.SetUp(t.Context(), o, c))
	p.TearDown(t.Context())
	if len(c.asked) > 0 {
		t.Errorf("%q", c.asked)
	}
}

// TestTearDownNeedsAVacantContainer: while something of the job may be alive, no program
// of the site runs beside it. What fails keeps nobody from the rest.
func TestTearDownNeedsAVacantContainer(t *testing.T) {
	for name, tt := range map[string]struct {
		c    container
		want []string
	}{
		"something may be alive": {container{}, nil},
		"it fails":               {container{vacant: true, err: errors.New("lost")}, []string{"run teardown", "sweep"}},
	} {
		t.Run(name, func(t *testing.T) {
			knobs, said := placeKnobs(t)
			delete(knobs, settings.KnobSetup.Name)
			delete(knobs, settings.KnobContainerSetup.Name)
			o, _ := site(t, knobs, "")
			var p hooks.Places
			must(t, p.SetUp(t.Context(), o, &tt.c))
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the end of the activation cuts no tear-down short
			p.TearDown(ctx)
			if diff := cmp.Diff(tt.want, tt.c.asked); diff != "" {
				t.Errorf("the payload container (-want +got):\n%s", diff)
			}
			if text, err := os.ReadFile(said); err != nil || !strings.HasPrefix(string(text), "teardown") {
				t.Errorf("the pilot container: %q, %v", text, err)
			}
		})
	}
	knobs, _ := placeKnobs(t)
	knobs[settings.KnobTeardown.Name] = hostprogtest.Script(t, "exit 1")
	o, _ := site(t, knobs, "")
	var p hooks.Places
	must(t, p.SetUp(t.Context(), o, &container{}))
	p.TearDown(t.Context()) // is logged
}

// TestSetUpFails: a set-up that fails is the site's trouble. The job goes back, and the
// pod rests.
func TestSetUpFails(t *testing.T) {
	const inPilot, inContainer = "POD_STARTER_SETUP", "POD_STARTER_CONTAINER_SETUP"
	lost := errors.New("the container is lost")
	for name, tt := range map[string]struct {
		knob, script string
		knobs        map[string]string
		c            container
		words        string // of the site's verdict
		err          error  // that goes through as it is
	}{
		"in the pilot":           {knob: inPilot, script: "echo no disk; exit 1", words: inPilot + " did not prepare this execution point for the job"},
		"what it says":           {knob: inPilot, script: "echo no disk; exit 1", words: "exited with status 1: no disk"},
		"no program":             {knob: inPilot, script: "-", words: "cannot be run"},
		"takes too long":         {knob: inPilot, script: "exec sleep 3600", knobs: map[string]string{"POD_STARTER_SCRIPT_TIMEOUT": "1"}, words: "took too long and was killed"},
		"in the container":       {knob: inContainer, c: container{exit: payload.Exit{WaitStatus: 2 << 8, Output: []byte("no mount\n")}}, words: "exited with status 2: no mount"},
		"dies in the container":  {knob: inContainer, c: container{exit: payload.Exit{WaitStatus: 9}}, words: "died of signal 9"},
		"not to be executed":     {knob: inContainer, c: container{err: &payload.StartError{Stage: payload.StageExec, Errno: syscall.ENOENT, Detail: "it has no interpreter"}}, words: "cannot be run inside the payload container: it has no interpreter"},
		"too long in there":      {knob: inContainer, knobs: map[string]string{"POD_STARTER_SCRIPT_TIMEOUT": "1"}, c: container{hang: true}, words: "it took longer than 1s"},
		"a script as root":       {knob: inContainer, knobs: map[string]string{"POD_STARTER_CONTAINER_SCRIPTS_AS": "root"}, words: "whose interpreter would be the image's"},
		"something is left":      {knob: inContainer, c: container{sweepErr: lost}, err: lost},
		"the container is lost":  {knob: inContainer, c: container{err: lost}, err: lost},
		"the job is to end":      {knob: inContainer, c: container{err: fmt.Errorf("x: %w", orders.ErrEnded)}, err: orders.ErrEnded},
		"the shadow is lost too": {knob: inContainer, c: container{err: fmt.Errorf("x: %w", shadow.ErrLost)}, err: shadow.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			path := hostprogtest.Script(t, tt.script)
			knobs := map[string]string{tt.knob: path}
			for name, value := range tt.knobs {
				knobs[name] = value
			}
			o, _ := site(t, knobs, "")
			if tt.script == "-" {
				must(t, os.WriteFile(path, []byte("no program"), 0o755))
			}
			var p hooks.Places
			err := p.SetUp(t.Context(), o, &tt.c)
			v := (*payload.Verdict)(nil)
			if tt.err != nil {
				if !errors.Is(err, tt.err) || errors.As(err, &v) {
					t.Errorf("%v, want %v", err, tt.err)
				}
				return
			}
			if !errors.As(err, &v) || v.Blame != payload.Site || failure.Of(err).Code != shadow.VacateStarterError || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%v, want %q", err, tt.words)
			}
		})
	}
}

// TestSetUpEnds: an order ends a set-up.
func TestSetUpEnds(t *testing.T) {
	why := errors.New("ended by order")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, knob := range []string{settings.KnobSetup.Name, settings.KnobContainerSetup.Name} {
		o, _ := site(t, map[string]string{knob: hostprogtest.Script(t, "exec sleep 3600")}, "")
		var p hooks.Places
		if err := p.SetUp(ctx, o, &container{hang: true}); !errors.Is(err, why) || errors.As(err, new(*payload.Verdict)) {
			t.Errorf("%s: %v", knob, err)
		}
	}
}

// TestAsRoot: container-root runs a program with an environment that is the site's alone.
func TestAsRoot(t *testing.T) {
	o, _ := site(t, map[string]string{settings.KnobContainerSetup.Name: hostprogtest.Script(t, ""), settings.KnobContainerScriptsAs.Name: settings.ScriptsAsRootInImage}, `Environment = "A=b"`)
	c := &container{}
	var p hooks.Places
	must(t, p.SetUp(t.Context(), o, c))
	spec := c.specs[0]
	if !spec.AsRoot || spec.UID != payloadUser || spec.Dir != "/" || spec.ImageEnv || len(spec.Env) == 0 || !strings.HasPrefix(spec.Env[0], "PATH=/usr/local/sbin:") || slices.Contains(spec.Env, "A=b") {
		t.Errorf("%+v", spec)
	}
}
