//go:build pool

package podfailures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// world is what all rows share.
type world struct {
	pool    *harness.Pool
	cluster harness.Cluster
	proxy   *Proxy
	good    *Registry // by plain HTTP, on the loopback
	secure  *Registry // by TLS, with a certificate that nobody knows
	probe   harness.File
	run     string // makes names of images new to the node
	foreign string // a token of another service account
}

// stage is where one row runs: an execution point of its own and what the row needs.
type stage struct {
	*world
	harness.Fault
	row       Row
	namespace string // of the pod's processes

	job     harness.Job
	mark    int64     // in the starters' log, before the job
	trigger time.Time // of the failure, if it is one under a running job
	outcome Outcome
	took    time.Duration
	cleanup []func()
}

// patience is how long a row may take: much longer than any does, also in a guest that gets
// little of the machine's time.
const patience = 8 * time.Minute

// slug is the row's name as part of other names.
func (s *stage) slug() string {
	return strings.NewReplacer(" ", "-", "'", "", ",", "", "/", "").Replace(strings.ToLower(s.row.Name))
}

// image is a reference that only this row asks for, of one of the registry's kinds.
func (s *stage) image(kind string) string { return s.good.Image(kind, s.slug()+"-"+s.run) }

// configure adds lines to the starter's configuration.
func (s *stage) configure(ctx context.Context, lines ...string) error {
	_, err := s.EP(ctx, strings.NewReader(strings.Join(lines, "\n")+"\n"), "sh", "-c", "cat > /etc/condor/config.d/99-row.conf")
	s.later(func() { _, _ = s.EP(context.Background(), nil, "rm", "-f", "/etc/condor/config.d/99-row.conf") })
	return err
}

// hurry makes the starter give up a binding soon.
func (s *stage) hurry(ctx context.Context, seconds int) error {
	return s.configure(ctx, fmt.Sprintf("POD_STARTER_BIND_TIMEOUT = %d", seconds))
}

// later is done when the row is over, the last first.
func (s *stage) later(do func()) { s.cleanup = append(s.cleanup, do) }

// undo undoes what the row made fail.
func (s *stage) undo() {
	s.proxy.Set(s.Pod, Rule{})
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		s.cleanup[i]()
	}
	s.cleanup = nil
}

// over removes the row's job, unless it has ended, and undoes what the row made fail.
func (s *stage) over() {
	if s.job.Dir != "" {
		// It fails when the job has ended.
		_ = s.job.Tool(context.Background(), "condor_rm")
	}
	s.undo()
}

// submit submits the row's job: the probe with these steps in an image, none if empty.
func (s *stage) submit(ctx context.Context, image, steps string, commands ...string) error {
	lines := []string{
		`arguments = "` + steps + `"`, "should_transfer_files = YES", "output = out", "error = err",
		"request_cpus = 1", "request_memory = 64", "request_disk = 16M", "+FaultsPod = " + classads.QuoteOld(s.Pod),
	}
	if s.row.Ending == vacatedOrLost {
		lines = append(lines, "job_lease_duration = 90")
	}
	if image != "" {
		lines = append(lines, "universe = docker", "docker_image = "+image)
	}
	submission := harness.Submission{
		Name: "failure-" + s.slug(), Side: harness.Ours, Requirements: once + " && TARGET.FaultsPod =?= " + classads.Quote(s.Pod), Files: []harness.File{s.probe},
	}
	if commands = append(commands, lines...); !strings.Contains(strings.Join(commands, "\n"), "executable =") {
		commands = append(commands, "executable = "+harness.ProbeName)
	}
	submission.Commands = strings.Join(commands, "\n")
	// The job of the row before may have been about to run again when it was removed.
	var err error
	if s.mark, err = s.Idle(ctx, s.namespace); err != nil {
		return err
	}
	job, err := s.pool.SubmitOne(ctx, submission)
	if err != nil {
		return err
	}
	s.job = job
	return nil
}

// start submits a job and returns when it has reached its step "ready".
func (s *stage) start(ctx context.Context, image, steps string, commands ...string) (harness.Process, error) {
	if err := s.submit(ctx, image, steps, commands...); err != nil {
		return harness.Process{}, err
	}
	if _, err := s.job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
		return harness.Process{}, err
	}
	ready, err := harness.WaitSome(ctx, 1, func(p harness.Process) bool { return p.Comm == readyName && p.Namespace == s.namespace })
	if err != nil {
		return harness.Process{}, err
	}
	return ready[0], nil
}

// describe is what is known of the job.
func (s *stage) describe() string {
	if s.job.Dir == "" {
		return "no job was submitted"
	}
	return s.job.Describe()
}

// fail notes that the failure happens now.
func (s *stage) fail() { s.trigger = time.Now() }

// wrapper is the process of the pod's wrapper.
func (s *stage) wrapper(ctx context.Context) (harness.Process, error) {
	found, err := harness.WaitSome(ctx, 1, func(p harness.Process) bool {
		return p.Comm == harness.WrapperComm && p.Namespace == s.namespace && p.UID == 0
	})
	if err != nil {
		return harness.Process{}, err
	}
	if len(found) != 1 {
		return harness.Process{}, fmt.Errorf("wrappers of %s: %v, want one", s.Pod, found)
	}
	return found[0], nil
}

// hit sends a signal to the wrapper, now.
func (s *stage) hit(ctx context.Context, signal unix.Signal) error {
	wrapper, err := s.wrapper(ctx)
	if err != nil {
		return err
	}
	s.fail()
	return harness.Kill(wrapper, signal)
}

// kubectl acts on the pod as the cluster's administrator.
func (s *stage) kubectl(ctx context.Context, stdin string, args ...string) error {
	_, err := s.pool.Kubectl(ctx, strings.NewReader(stdin), append([]string{"-n", harness.Namespace}, args...)...)
	return err
}

// replaceWrapper puts another program of the pool in the wrapper's place, or removes the
// wrapper.
func (s *stage) replaceWrapper(ctx context.Context, program string) error {
	dir, err := s.Volume(ctx, "podstarter-bin")
	if err != nil {
		return err
	}
	wrapper := filepath.Join(dir, "condor_pod_wrapper")
	if err := os.Rename(wrapper, wrapper+".away"); err != nil {
		return err
	}
	s.later(func() {
		// The kubelet makes a directory of a file that is missing, and one to mount it on.
		_ = os.RemoveAll(wrapper)
		_ = os.Rename(wrapper+".away", wrapper)
		pod := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
		targets, _ := filepath.Glob(filepath.Join(pod, "volume-subpaths", "podstarter-bin", "*", "*"))
		for _, target := range targets {
			if info, err := os.Stat(target); err == nil && info.IsDir() {
				_ = unix.Unmount(target, unix.MNT_DETACH)
				_ = os.Remove(target)
			}
		}
	})
	if program == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(s.pool.State, "bin", program))
	if err != nil {
		return err
	}
	return os.WriteFile(wrapper, data, 0o755)
}

// await waits for what becomes of the job, and notes how long that took.
func (s *stage) await(ctx context.Context) error {
	_, err := s.job.WaitEvents(ctx, "what becomes of it", func(events []harness.Event) bool {
		var ok bool
		s.outcome, ok = OutcomeOf(events)
		return ok
	})
	if err != nil {
		return err
	}
	if !s.trigger.IsZero() {
		s.took = time.Since(s.trigger)
		return nil
	}
	// The starter's own clock: from its beginning to its verdict.
	runs, err := s.RunsSince(s.mark)
	if err != nil || len(runs) == 0 {
		return errors.Join(err, errors.New("the starter's log does not mention the job"))
	}
	s.took = runs[0].Lines[len(runs[0].Lines)-1].Time.Sub(runs[0].Began)
	for _, line := range runs[0].Lines {
		if strings.HasPrefix(line.Text, "The job cannot go on") {
			s.took = line.Time.Sub(runs[0].Began)
		}
	}
	return nil
}

// check compares the outcome with the required one.
func (s *stage) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	got := s.outcome.String()
	switch s.row.Ending {
	case "evicted or requeued":
		if s.outcome.Kind != "evicted" && s.outcome.Kind != "requeued" {
			bad("%s, want one of %s", got, s.row.Ending)
		}
	case vacatedOrLost:
		if got != vacated && got != lost {
			bad("%s, want %s", got, s.row.Ending)
		}
	case got:
	default:
		bad("%s, want %s", got, s.row.Ending)
	}
	for _, word := range s.row.Says {
		if !strings.Contains(s.outcome.Words, word) {
			bad("the user is not told %q", word)
		}
	}
	runs, err := s.RunsSince(s.mark)
	if err != nil || len(runs) == 0 {
		bad("the starter's log does not mention the job (%v)", err)
		return errors.Join(errs...)
	}
	blame := map[Class]string{User: "blame=user", Again: "blame=site", Elsewhere: "blame=site", Pilot: "blame=pilot"}[s.row.Class]
	if s.row.Unjudged {
		blame = ""
	}
	for _, word := range append([]string{blame}, s.row.Logged...) {
		if !runs[0].Has(word) {
			bad("the starter's log does not have %q", word)
		}
	}
	if len(errs) > 0 {
		bad("the user is told: %s\n%s\n%s", s.outcome.Words, s.job.Describe(), runs[0].Text())
	}
	return errors.Join(errs...)
}
