package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/internal/buildinfo"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
)

// site writes a configuration, a template and HTCondor's tools, which tell of
// three idle jobs. It returns the arguments that name them, and the cluster.
func site(t *testing.T) ([]string, *model.Model) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"provisioner.yaml":    "name: site\nschedds: [ap]\ninterval: 10s\n",
		"plain.template.yaml": "name: plain\nmanifest: pod.yaml\nshapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n",
		"pod.yaml":            "kind: Pod\n",
		"condor_q": `#!/bin/sh
one='JobStatus = 1\nRequirements = TARGET.Cpus >= 1\nUser = "alice@x"\n'
case "$*" in
*'ClusterId == 1 && ProcId == 2 '*) printf "${one}ClusterId = 1\nProcId = 2\nJobCount = 1\nJobIds = \"1.2\"\n\n" ;;
*ClusterId*) ;;
*) printf "${one}JobCount = 3\nJobIds = \"1.0 ... 1.2\"\n\n" ;;
esac
`,
		"condor_status": "#!/bin/sh\nexit 0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return []string{"-config", filepath.Join(dir, "provisioner.yaml"), "-templates", dir, "-listen", "127.0.0.1:0"}, model.New(time.Now)
}

// inMemory is a world with a cluster in memory, and an election.
func inMemory(m *model.Model, e election) world {
	return world{
		connect: func(context.Context, settings.Settings, []template.Template) (platform.Platform, error) {
			return m, nil
		},
		elect: func(context.Context, settings.Settings, []template.Template, *slog.Logger) (election, error) {
			return e, nil
		},
	}
}

// start runs the program with a cluster in memory.
func start(ctx context.Context, m *model.Model, args ...string) (out, words string, err error) {
	var o, w strings.Builder
	err = run(ctx, args, &o, &w, inMemory(m, nil))
	return o.String(), w.String(), err
}

func count(t *testing.T, m *model.Model) int {
	t.Helper()
	units, err := m.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(units)
}

// In a pod each job takes a payload container; in a glidein of a batch system there is none.
func TestContainers(t *testing.T) {
	for platform, want := range map[string]int{
		"kubernetes": 2,
		"batch\nbatch: {submit: [s], id: '(x)', status: [s], cancel: [s, '{name}'], fields: [name, id, state, note], states: {Q: pending, R: running}}": 1,
	} {
		args, m := site(t)
		for name, text := range map[string]string{
			args[1]: "name: site\nschedds: [ap]\nplatform: " + platform + "\n",
			filepath.Join(args[3], "plain.template.yaml"): "name: plain\nmanifest: pod.yaml\nslots: 2\npartitionable: true\nlifetime: 8h\nshapes:\n- {name: one, cpus: 4, memory: 2Gi, disk: 1Gi}\n",
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, words, err := start(t.Context(), m, append(args, "-once")...); err != nil || count(t, m) != want {
			t.Errorf("%s: for three jobs %d pods of two containers are made, want %d: %v\n%s", platform, count(t, m), want, err, words)
		}
	}
}

func TestVersion(t *testing.T) {
	if out, _, err := start(t.Context(), nil, "-version"); err != nil || out != buildinfo.Version()+"\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestArgumentsThatAreWrong(t *testing.T) {
	args, m := site(t)
	empty := t.TempDir()
	for want, wrong := range map[string][]string{
		`"now" is no option`: append(args, "now"),
		"-loud":              {"-loud"},
		"reading the configuration " + empty + "/none": {"-config", empty + "/none"},
		"no file ends in .template.yaml":               {args[0], args[1], "-templates", empty},
		`"none" is no job; write 123.4`:                append(args, "-explain", "none"),
		"no schedd that is asked has it":               append(args, "-explain", "ap#1.3"),
	} {
		if _, _, err := start(t.Context(), m, wrong...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", wrong, err, want)
		}
	}
	if _, words, err := start(t.Context(), m, "-help"); !errors.Is(err, flag.ErrHelp) || !strings.Contains(words, "-dry-run") {
		t.Errorf("-help says %q, %v", words, err)
	}
	if n := count(t, m); n != 0 {
		t.Errorf("%d pods are made", n)
	}
}

func TestClusterAway(t *testing.T) {
	args, _ := site(t)
	away := errors.New("the cluster is away")
	w := inMemory(nil, nil)
	w.connect = func(context.Context, settings.Settings, []template.Template) (platform.Platform, error) {
		return nil, away
	}
	for _, e := range []election{nil, elected{}} {
		w.elect = func(context.Context, settings.Settings, []template.Template, *slog.Logger) (election, error) {
			return e, nil
		}
		if err := run(t.Context(), args, &strings.Builder{}, &strings.Builder{}, w); !errors.Is(err, away) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestDryRun(t *testing.T) {
	args, m := site(t)
	out, _, err := start(t.Context(), m, append(args, "-dry-run")...)
	if err != nil || !strings.Contains(out, "make 3 of plain/one for alice@x\n") {
		t.Fatalf("%q, %v", out, err)
	}
	lines := strings.Split(out, "\n")
	id, _, _ := strings.Cut(lines[1], " ")
	out, _, err = start(t.Context(), m, append(args, "-explain", id)...)
	if err != nil || !strings.Contains(out, "3 idle jobs of alice@x (ap: 1.0 ... 1.2)\n") || !strings.Contains(out, "plain/one: matches") {
		t.Errorf("%q, %v", out, err)
	}
	for _, job := range []string{"1.2", "ap#1.2"} {
		out, _, err = start(t.Context(), m, append(args, "-explain", job)...)
		if err != nil || !strings.Contains(out, "The job 1.2 of the schedd ap, of alice@x.\nIts group is "+id+": 3 idle jobs") || !strings.Contains(out, "plain/one matches") {
			t.Errorf("%q, %v", out, err)
		}
	}
	if n := count(t, m); n != 0 {
		t.Errorf("a dry run makes %d pods", n)
	}
}

func TestOnce(t *testing.T) {
	args, m := site(t)
	_, words, err := start(t.Context(), m, append(args, "-once")...)
	if err != nil || count(t, m) != 3 || strings.Count(words, `"A pod is made"`) != 3 || !strings.Contains(words, `"jobs":3`) {
		t.Errorf("%d pods, %v\n%s", count(t, m), err, words)
	}
}

// The program goes on until it is told to end, and leaves the pods.
func TestService(t *testing.T) {
	args, m := site(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var words strings.Builder
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, args, &strings.Builder{}, writer(func(p []byte) {
			words.Write(p)
			if strings.Contains(string(p), "A round is done") {
				cancel()
			}
		}), inMemory(m, elected{}))
	}()
	select {
	case err := <-done:
		if err != nil || count(t, m) != 3 || !strings.Contains(words.String(), "The provisioner ends") {
			t.Errorf("%d pods, %v\n%s", count(t, m), err, words.String())
		}
	case <-time.After(60 * time.Second):
		t.Error("it does not end")
	}
}

// elected has won the election; waiting waits for another one to end.
type (
	elected struct{}
	waiting struct{ asked chan struct{} }
)

func (elected) Run(ctx context.Context, lead func(context.Context) error) error { return lead(ctx) }
func (elected) Leader() (string, bool)                                          { return "me", true }
func (elected) Until() time.Time                                                { return time.Now().Add(10 * time.Second) }

func (w waiting) Run(ctx context.Context, _ func(context.Context) error) error {
	close(w.asked)
	<-ctx.Done()
	return nil
}
func (waiting) Leader() (string, bool) { return "another", false }
func (waiting) Until() time.Time       { return time.Time{} }

// addressed finds where the status page is in a log while it is written.
type addressed struct {
	found chan string
	text  strings.Builder
}

func (a *addressed) Write(p []byte) (int, error) {
	var line struct{ Msg, Address string }
	if err := json.Unmarshal(p, &line); err == nil && line.Msg == "The status page is served" {
		a.found <- line.Address
	}
	return a.text.Write(p)
}

func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// One that stands by makes nothing, says so, and ends when it is told to.
func TestStandby(t *testing.T) {
	args, m := site(t)
	ctx, cancel := context.WithCancel(t.Context())
	w, log := waiting{asked: make(chan struct{})}, &addressed{found: make(chan string, 1)}
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, &strings.Builder{}, log, inMemory(m, w)) }()
	url := "http://" + <-log.found
	<-w.asked
	if text := get(t, url+"/healthz"); text != "ok: standby; leader is another\n" {
		t.Errorf("/healthz says %q", text)
	}
	if text := get(t, url); !strings.Contains(text, "standby; leader is another") {
		t.Errorf("the page says\n%s", text)
	}
	cancel()
	if err := <-done; err != nil || count(t, m) != 0 {
		t.Errorf("%d pods, %v", count(t, m), err)
	}
}

// The page of the leader has its rounds.
func TestStatus(t *testing.T) {
	args, m := site(t)
	ctx, cancel := context.WithCancel(t.Context())
	log := &addressed{found: make(chan string, 1)}
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, &strings.Builder{}, log, inMemory(m, elected{})) }()
	url := "http://" + <-log.found
	for !strings.Contains(get(t, url+"/metrics"), "podstarter_provisioner_pods_made_total 3\n") {
		if t.Context().Err() != nil {
			t.Fatal("no round is done")
		}
	}
	if text := get(t, url+"/metrics"); !strings.Contains(text, "podstarter_provisioner_idle_jobs 3\n") {
		t.Errorf("%s", text)
	}
	if text := get(t, url); !strings.Contains(text, "alice@x") {
		t.Errorf("%s", text)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An address that is taken is an error, rather than a provisioner of which nobody
// learns anything.
func TestAddressTaken(t *testing.T) {
	args, m := site(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = run(t.Context(), append(args, "-listen", l.Addr().String()), &strings.Builder{}, &strings.Builder{}, inMemory(m, elected{}))
	if err == nil || !strings.Contains(err.Error(), "-listen names another address") || count(t, m) != 0 {
		t.Errorf("the error is %v", err)
	}
}

// What does one round only takes part in no election.
func TestOneRoundTakesNoLease(t *testing.T) {
	args, m := site(t)
	w := inMemory(m, nil)
	w.elect = func(context.Context, settings.Settings, []template.Template, *slog.Logger) (election, error) {
		t.Error("it takes part")
		return nil, nil
	}
	for _, only := range [][]string{{"-dry-run"}, {"-explain", "none"}, {"-once"}} {
		_ = run(t.Context(), append(args, only...), &strings.Builder{}, &strings.Builder{}, w)
	}
}

// A configuration without a Lease needs no election.
func TestLeaseOff(t *testing.T) {
	if e, err := elect(t.Context(), settings.Settings{Lease: settings.Lease{Off: true}}, nil, slog.New(slog.DiscardHandler)); e != nil || err != nil {
		t.Errorf("%v, %v", e, err)
	}
}

// The end of the provisioner does not wait for a schedd.
func TestEndWhileToolHangs(t *testing.T) {
	args, m := site(t)
	dir := filepath.Dir(args[1])
	begun := filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "condor_q"), []byte("#!/bin/sh\ntrap '' TERM INT\necho > "+begun+"\nsleep 1000\nsleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan time.Time, 1)
	go func() {
		_, _ = os.ReadFile(begun) // opens when condor_q does
		told <- time.Now()
		cancel()
	}()
	err := run(ctx, args, &strings.Builder{}, &strings.Builder{}, inMemory(m, elected{}))
	if took := time.Since(<-told); err != nil || took > 5*time.Second || count(t, m) != 0 {
		t.Errorf("it ends after %s, %v, with %d pods", took, err, count(t, m))
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
