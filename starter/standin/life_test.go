package standin_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"podstarter/condor/condortest"
	"podstarter/condor/config"
	"podstarter/internal/cedar"
	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/starter/activation"
	"podstarter/starter/hostprog"
	"podstarter/starter/podhealth"
	"podstarter/starter/settings"
	"podstarter/starter/standin"
	"podstarter/wrapper/agent/agenttest"
)

func TestMain(m *testing.M) { agenttest.MainAsUser(m) }

// fetched is a machine whose startd has fetched one job.
type fetched struct {
	dir        string
	activation *condortest.Activation
	startd     *condortest.Startd
	log        buffer
	ad         string
	knobs      map[string]string
}

// buffer is safe for a log.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newFetched(t *testing.T, ad string, knobs map[string]string) *fetched {
	t.Helper()
	dir, err := os.MkdirTemp("", "fetched") // sockets are below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := &fetched{dir: dir, startd: condortest.NewStartd(t, condortest.StartdOptions{})}
	f.activation = f.startd.Fetch(t)
	for _, name := range []string{"execute", "lock", "iwd"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for hook, script := range map[string]string{
		"prepare": "cat >@/prepare.ad; grep -q ^Fails @/prepare.ad && exit 7; echo 'Prepared = true'",
		"exit":    "echo $1 >@/exit.reason; cat >@/exit.ad",
		"update":  "cat >>@/update.ad",
	} {
		if err := os.WriteFile(filepath.Join(dir, hook), []byte("#!/bin/sh\n"+f.at(script)+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.ad = f.at("Cmd = \"/bin/sh\"\nIwd = \"@/iwd\"\nOut = \"out\"\nErr = \"err\"\nStarterUserLog = \"log\"\nHookKeyword = \"FETCH\"\nClusterId = 12\nProcId = 3\nJobLeaseDuration = 500000\n" + ad + "\n")
	f.knobs = map[string]string{
		"EXECUTE": f.at("@/execute"), "LOCK": f.at("@/lock"), "POD_STARTER_BACKEND": "local", "ENABLE_IPV4": "true", "STARTER_INITIAL_UPDATE_INTERVAL": "1",
		"FETCH_HOOK_PREPARE_JOB": f.at("@/prepare"), "FETCH_HOOK_JOB_EXIT": f.at("@/exit"), "FETCH_HOOK_UPDATE_JOB_INFO": f.at("@/update"),
	}
	maps.Copy(f.knobs, knobs)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.log.String())
		}
	})
	return f
}

// at puts the directory in the place of @.
func (f *fetched) at(text string) string { return strings.ReplaceAll(text, "@", f.dir) }

// run lives the job and gives the exit code of the process.
func (f *fetched) run(t *testing.T) int {
	set, err := settings.Read(config.FromMap(f.knobs))
	if err != nil {
		t.Error(err)
		return -1
	}
	log := slog.New(slog.NewTextHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	instead, err := standin.New(standin.Options{Input: strings.NewReader(f.ad), Settings: set, Log: log})
	if err != nil {
		t.Error(err)
		return -1
	}
	code := activation.Run(context.Background(), activation.Options{
		Slot: "slot1", Version: set.Condor.Version, Settings: set, Log: log, Env: append(f.activation.Env(t), "PATH=/usr/bin:/bin"),
		Pod:  podhealth.Pod{StateDir: set.StateDir(), PublishDir: set.Condor.Lock, LongestRest: set.MaxRest},
		Host: hostprog.New(hostprog.Options{SeparateUsers: set.SeparateUsers(), Paths: set.ProgramPaths}),
		NewBackend: func(context.Context) (payload.Backend, error) {
			b, err := localexec.New(localexec.Options{Dir: set.StateDir(), UID: set.PayloadUID, Users: 1, Log: log})
			if err != nil {
				return nil, err
			}
			return instead.Backend(b), nil
		},
		Inherit: instead.Inherit, Alone: true,
	})
	instead.Wait()
	return code
}

func (f *fetched) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(f.dir, name))
	return string(text)
}

// events are the numbers of those in the job's log.
func (f *fetched) events() string {
	var all []string
	for line := range strings.Lines(f.read("iwd/log")) {
		if n, rest, _ := strings.Cut(line, " "); len(n) == 3 && strings.HasPrefix(rest, "(") {
			all = append(all, n+" "+rest[:13])
		}
	}
	return strings.Join(all, "; ")
}

func script(text string) string {
	return fmt.Sprintf("Arguments = \"-c '%s'\"", strings.ReplaceAll(text, `"`, `\"`))
}

// TestEnds: what the hooks hear of each end, and the job's event log.
func TestEnds(t *testing.T) {
	tests := map[string]struct {
		ad     string
		knobs  map[string]string
		code   int
		events string
		says   string // the log
		reason string // what the hook for the end is told
		ending string // and one line of what it reads
	}{
		"exits":             {ad: script("echo $_CONDOR_JOB_IWD; pwd; exit 5"), events: "001 (012.003.000); 005 (012.003.000)", says: "return value 5", reason: "exit", ending: "ExitCode = 5"},
		"a signal":          {ad: script("kill -9 $$"), events: "001 (012.003.000); 005 (012.003.000)", says: "signal 9", reason: "exit", ending: "ExitSignal = 9"},
		"a local one":       {ad: "JobUniverse = 12\n" + script("exit 5"), events: "001 (012.003.000); 005 (012.003.000)", says: "return value 5", reason: "exit", ending: "Prepared = true"},
		"no program":        {ad: "Cmd = \"none\"", events: "001 (012.003.000); 021 (012.003.000)", says: "errno=2", reason: "evict", ending: "Cmd = \"none\""},
		"missed its time":   {ad: "DeferralTime = 5\n" + script("exit 5"), events: "004 (012.003.000)", reason: "exit", ending: "DeferralTime = 5"},
		"no output":         {ad: "Out = \"no/such\"\n" + script("exit 0"), events: "021 (012.003.000)", says: "as standard output", reason: "evict", ending: "Out = \"no/such\""},
		"bad arguments":     {ad: "Arguments = \"'\"", events: "021 (012.003.000)", says: "Arguments", reason: "evict", ending: "Prepared = true"},
		"not prepared":      {ad: "Fails = true", events: "021 (012.003.000)", says: "PREPARE_JOB (prepare) failed", reason: "evict", ending: "Fails = true"},
		"without a log":     {ad: "StarterUserLog = undefined\n" + script("exit 5"), reason: "exit", ending: "ExitCode = 5"},
		"a bad log":         {ad: "StarterUserLog = \"/proc/none\"\n" + script("exit 5"), code: activation.ExitGeneral},
		"a log in the void": {ad: "StarterUserLog = \"/dev/null\"\n" + script("exit 5"), reason: "exit", ending: "ExitCode = 5"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFetched(t, tt.ad, tt.knobs)
			if code := f.run(t); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if got := f.events(); got != tt.events || !strings.Contains(f.read("iwd/log"), tt.says) {
				t.Errorf("events %q, want %q, and %q in\n%s", got, tt.events, tt.says, f.read("iwd/log"))
			}
			if got := strings.TrimSpace(f.read("exit.reason")); got != tt.reason || !strings.Contains(f.read("exit.ad"), tt.ending) {
				t.Errorf("the hook for the end is told %q, want %q, and %q in\n%s", got, tt.reason, tt.ending, f.read("exit.ad"))
			}
			if strings.Contains(f.log.String(), "A call that would go to a shadow failed") {
				t.Error("a call had no answer")
			}
			if left, err := os.ReadDir(f.knobs["EXECUTE"]); err != nil || len(left) > 0 {
				t.Errorf("left in EXECUTE: %v, %v", left, err)
			}
			if tt.ad == tests["exits"].ad && f.read("iwd/out") != f.at("@/iwd\n@/iwd\n") {
				t.Errorf("the output is %q", f.read("iwd/out"))
			}
		})
	}
}

// TestOrders: the startd suspends a job, continues it, and ends it.
func TestOrders(t *testing.T) {
	f := newFetched(t, script(`trap "echo TERM; exit 4" TERM; echo began; while :; do sleep 0.05; done`), nil)
	code := make(chan int, 1)
	go func() { code <- f.run(t) }()
	await := func(what string, there func() bool) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for !there() {
			select {
			case c := <-code:
				t.Fatalf("exit code %d before %s", c, what)
			case <-deadline:
				t.Fatalf("no %s", what)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	logs := func(event string) func() bool {
		return func() bool { return strings.Contains(f.read("iwd/log"), event) }
	}
	signal := func(number int) {
		t.Helper()
		if err := f.activation.Signal(t.Context(), number); err != nil {
			t.Fatal(err)
		}
	}
	await("begin", func() bool { return strings.Contains(f.read("iwd/out"), "began") })
	signal(cedar.DCSigSuspend)
	await("suspension", logs("\n010 ("))
	signal(cedar.DCSigContinue)
	await("continuation", logs("\n011 ("))
	f.activation.Vacate(t, condortest.Preempted)
	if c := <-code; c != activation.ExitNormal {
		t.Errorf("exit code %d", c)
	}
	if got, want := f.read("iwd/out"), "began\nTERM\n"; got != want {
		t.Errorf("the output is %q, want %q", got, want)
	}
	const want = "001 (012.003.000); 010 (012.003.000); 011 (012.003.000); 004 (012.003.000)"
	if got := f.events(); got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if got := f.read("exit.reason"); got != "evict\n" {
		t.Errorf("the hook for the end is told %q", got)
	}
	if !strings.Contains(f.read("iwd/log"), "Number of processes actually suspended: ") {
		t.Errorf("the log is\n%s", f.read("iwd/log"))
	}
}
