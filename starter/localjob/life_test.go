package localjob

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/condor/condortest"
	"podstarter/condor/config"
	"podstarter/internal/cedar"
	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/starter/settings"
	"podstarter/wrapper/agent"
)

func TestMain(m *testing.M) {
	agent.Dispatch() // the backend runs this program as the wrapper
	os.Exit(m.Run())
}

// world is an access point with one job.
type world struct {
	schedd *condortest.Schedd
	dir    string // Iwd
	log    bytes.Buffer
	knobs  map[string]string
	ad     string
	pause  time.Duration // RequeuePause
	logged func(string)  // is called with each message of the starter's log, by who logs it
	hangs  bool          // no program of the job starts, and the starter waits for that only a moment after an order
}

// hanging is a backend that starts nothing. What is embedded does the rest.
type (
	hanging          struct{ payload.Backend }
	hangingLease     struct{ payload.Lease }
	hangingContainer struct{ payload.Container }
	hangingWrapper   struct{ payload.Wrapper }
)

func (h hanging) Lease(ctx context.Context, wish payload.Wish) (payload.Lease, error) {
	l, err := h.Backend.Lease(ctx, wish)
	return hangingLease{l}, err
}

func (h hangingLease) Bind(ctx context.Context, req payload.BindRequest) (payload.Container, error) {
	c, err := h.Lease.Bind(ctx, req)
	return hangingContainer{c}, err
}

func (h hangingContainer) Client() payload.Wrapper { return hangingWrapper{h.Container.Client()} }

func (h hangingWrapper) Start(ctx context.Context, s payload.Spec, files ...*os.File) (payload.Started, error) {
	if s.Rehearse {
		return h.Wrapper.Start(ctx, s, files...)
	}
	<-ctx.Done()
	return payload.Started{}, context.Cause(ctx)
}

// listener is a log's handler that calls a function with each message.
type listener struct {
	slog.Handler
	call func(string)
}

func (l listener) Handle(ctx context.Context, r slog.Record) error {
	err := l.Handler.Handle(ctx, r)
	l.call(r.Message)
	return err
}

// someone is whose jobs the tests of root run.
const someone = 65534

func newWorld(t *testing.T, ad string, knobs, queue map[string]string) *world {
	t.Helper()
	// Another user must come into it, which t.TempDir does not allow.
	top, err := os.MkdirTemp("", "localjob")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	w := &world{pause: time.Millisecond, schedd: condortest.NewSchedd(t, queue), dir: filepath.Join(top, "iwd"), knobs: map[string]string{
		"EXECUTE": filepath.Join(top, "execute"), "STARTER_NESTED_SCRATCH": "true", "CONDOR_IDS": "65533.65533", "PERIODIC_EXPR_INTERVAL": "1", "ENABLE_IPV4": "true",
		"LOCAL_UNIVERSE_JOB_CLEANUP_RETRY_DELAY": "0", "USERID_MAP": fmt.Sprintf("other=1,1 alice=%d,%d", someone, someone),
	}}
	for name, value := range knobs {
		w.knobs[name] = value
	}
	dirs := map[string]int{w.dir: someone}
	if knobs["EXECUTE"] == "" {
		dirs[w.knobs["EXECUTE"]] = 65533
	}
	for dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		for dir, id := range dirs {
			if err := os.Chown(dir, id, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	w.ad = fmt.Sprintf("ClusterId = 12\nProcId = 0\nJobUniverse = 12\nJobStatus = 2\nUser = \"alice@example.org\"\nOsUser = \"alice\"\nCmd = \"/bin/sh\"\nIwd = %q\n"+
		"Out = \"out\"\nErr = \"err\"\nIn = \"/dev/null\"\nUserLog = \"log\"\nExitBySignal = false\nNumJobStarts = 0\nShadowBday = %d\nClaimId = \"a secret\"\nJobAdInformationAttrs = \"ClaimId\"\n%s\n", w.dir, time.Now().Unix(), ad)
	return w
}

// run lives the job.
func (w *world) run(t *testing.T) int {
	t.Helper()
	set, err := settings.Read(config.FromMap(w.knobs))
	if err != nil {
		t.Fatal(err)
	}
	var handler slog.Handler = slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})
	if w.logged != nil {
		handler = listener{handler, w.logged}
	}
	log := slog.New(handler)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	o := Options{
		Schedd: w.schedd.Address, Input: strings.NewReader(w.ad), Version: "$CondorVersion: 25.14.1 2026-01-01 $", Env: w.schedd.Env(t), Settings: set, RequeuePause: w.pause, Log: log,
		NewBackend: func(dir string, as *localexec.Account) (payload.Backend, error) {
			b, err := localexec.New(localexec.Options{Dir: dir, As: as, Log: log})
			if w.hangs {
				return hanging{b}, err
			}
			return b, err
		},
	}
	if w.hangs {
		o.lastPatience = time.Millisecond
	}
	return Run(context.Background(), o)
}

func (w *world) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(text)
}

// signal sends a signal to the starter of a job that has begun.
func (w *world) signal(t *testing.T, number int) {
	t.Helper()
	_, address, _ := strings.Cut(w.read("log"), "on host: ")
	address, _, _ = strings.Cut(address, "\n")
	w.schedd.Signal(t, address, number)
}

func script(text string) string {
	return fmt.Sprintf("Arguments = \"-c '%s'\"", strings.ReplaceAll(text, `"`, `\"`))
}

// TestEnds: what the schedd learns of each end, by exit code and queue, and the user by the event log.
func TestEnds(t *testing.T) {
	far := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	tests := map[string]struct {
		ad     string
		knobs  map[string]string
		queue  map[string]string
		break_ func(*condortest.Schedd)
		code   int
		events string            // their numbers
		says   string            // the log
		note   string            // the starter's own log
		want   map[string]string // of the queue
		out    string
	}{
		"it exits": {ad: script("echo $_CONDOR_JOB_IWD; pwd; exit 5"), code: ExitCompleted, events: "001 005", says: "return value 5",
			want: map[string]string{"ExitCode": "5", "NumJobStarts": "1"}, out: "IWD\nIWD\n"},
		"a signal":  {ad: script("kill -9 $$"), code: ExitCompleted, events: "001 005", says: "signal 9", want: map[string]string{"ExitBySignal": "true", "ExitSignal": "9", "ExitCode": ""}},
		"held then": {ad: script("exit 3") + "\nOnExitHold = ExitCode == 3", code: ExitHold, events: "001 004", want: map[string]string{"HoldReasonCode": "3", "ExitCode": ""}},
		"held by the site's map": {ad: script("exit 3") + "\nOnExitHold = userMap(\"m\", OsUser) == \"held\"", knobs: map[string]string{"STARTER_CLASSAD_USER_MAP_NAMES": "m", "CLASSAD_USER_MAPDATA_m": "* alice held"},
			code: ExitHold, events: "001 004", want: map[string]string{"HoldReasonCode": "3"}},
		"its sandbox stays for a while": {ad: script("exit 0"), knobs: map[string]string{"STARTER_REMOVE_EXECUTE_DIR_DELAY_TIME": "1"}, code: ExitCompleted, events: "001 005", note: "Sleeping for 1 seconds"},
		"once more":                     {ad: script("exit 3") + "\nOnExitRemove = ExitCode == 0", code: ExitRequeue, events: "001 004", says: "requeued", want: map[string]string{"ExitCode": ""}},
		"by policy":                     {ad: script("exec sleep 1000") + "\nPeriodicHold = true\nPeriodicHoldReason = \"so\"", code: ExitHold, events: "001 004", want: map[string]string{"HoldReason": `"so"`}},
		"removed":                       {ad: script("exec sleep 1000") + "\nPeriodicRemove = true", code: ExitRemove, events: "001 004", want: map[string]string{"HoldReason": ""}},
		"vacated":                       {ad: script("exec sleep 1000") + "\nPeriodicVacate = true", code: ExitRequeue, events: "001 004", says: "signal 15"},
		"in waiting":                    {ad: script("exit 0") + "\nPeriodicHold = true\nDeferralTime = " + far, code: ExitHold, events: "004", want: map[string]string{"NumJobStarts": ""}},
		"for a reason in lines":         {ad: script("exit 3") + "\nOnExitHold = true\nOnExitHoldReason = formatTime(0, \"one%ntwo\")", code: ExitHold, events: "001 004", want: map[string]string{"HoldReason": `"one two"`}},
		"held by hand meanwhile": {ad: script("exit 3") + "\nOnExitHold = true", queue: map[string]string{"JobStatus": "5", "HoldReason": `"by hand"`}, code: ExitHold, events: "001 004",
			want: map[string]string{"HoldReason": `"by hand"`}},
		"too late":       {ad: script("exit 0") + "\nDeferralTime = 1", code: ExitMissed, events: "004"},
		"no program":     {ad: "Cmd = \"none\"", code: ExitHold, events: "001 021 004", says: "Failed to execute 'IWD/none': (errno=2: 'No such file or directory')\n", want: map[string]string{"HoldReasonCode": "6", "HoldReasonSubCode": "2"}},
		"no output":      {ad: script("exit 0") + "\nOut = \"no/such\"", code: ExitHold, events: "021 004", says: "as standard output", want: map[string]string{"HoldReasonCode": "7", "NumJobStarts": ""}},
		"bad arguments":  {ad: "Arguments = \"'\"", code: ExitHold, events: "021 004", says: "Arguments"},
		"another kind":   {ad: "JobUniverse = 5", code: ExitHold, events: "021 004", says: "VANILLA"},
		"wants mail":     {ad: "JobNotification = 2", code: ExitHold, events: "021 004", says: "sends no mail"},
		"wants an image": {ad: "WantContainer = true\nContainerImage = \"x.sif\"", code: ExitHold, events: "021 004", says: "runs no containers"},
		"has hooks":      {ad: "HookKeyword = \"H\"", knobs: map[string]string{"H_HOOK_JOB_EXIT": "/bin/true"}, code: ExitHold, events: "021 004", says: "runs no hooks"},
		"the queue fails once": {ad: script("exit 0"), break_: func(d *condortest.Schedd) { d.Fail(2) }, code: ExitCompleted, events: "001 005",
			want: map[string]string{"ExitCode": "0", "NumJobStarts": ""}},
		"the queue fails": {ad: script("exit 0"), knobs: map[string]string{"LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES": "1"}, break_: func(d *condortest.Schedd) { d.Fail(9) }, code: ExitException, events: "001 005 021",
			says: "Maximum number of job cleanup retry attempts (LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES=1) reached"},
		"the queue has it no more": {ad: script("exit 0"), knobs: map[string]string{"LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES": "1"},
			break_: func(d *condortest.Schedd) { d.Refuse("ExitCode", syscall.ENOENT) }, code: ExitCompleted, events: "001 005"},
		"no place for it": {ad: script("exit 0"), knobs: map[string]string{"EXECUTE": "/proc/none"}, code: ExitRequeue, events: "021 004", says: "/proc/none", want: map[string]string{"NumJobStarts": ""}},
		"scripts": {ad: script("exit 5") + "\nPreCmd = \"/bin/sh\"\nPreArguments = \"-c 'echo pre >>scripts'\"\nPostCmd = \"/bin/sh\"\nPostArguments = \"-c 'echo post >>scripts; exit 2'\"",
			knobs: map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "true"}, code: ExitCompleted, events: "001 005", want: map[string]string{"PostExitCode": "2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.ad, tt.knobs, tt.queue)
			if tt.break_ != nil {
				tt.break_(w.schedd)
			}
			if code := w.run(t); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			log, events := w.read("log"), []string(nil)
			for line := range strings.Lines(log) {
				if n, rest, _ := strings.Cut(line, " "); len(n) == 3 && n != "028" && strings.HasPrefix(rest, "(012.") {
					events = append(events, n)
				}
			}
			if got := strings.Join(events, " "); got != tt.events || !strings.Contains(log, strings.ReplaceAll(tt.says, "IWD", w.dir)) {
				t.Errorf("events %q, want %q, and %q in\n%s", got, tt.events, tt.says, log)
			}
			if strings.Contains(log, "a secret") {
				t.Errorf("the log has a secret of the schedd:\n%s", log)
			}
			if !strings.Contains(w.log.String(), tt.note) {
				t.Errorf("the starter's log does not say %q", tt.note)
			}
			for name, want := range tt.want {
				if got := w.schedd.Queue(name); got != want {
					t.Errorf("the queue has %s = %s, want %s", name, got, want)
				}
			}
			if out := strings.ReplaceAll(w.read("out"), w.dir, "IWD"); tt.out != "" && out != tt.out {
				t.Errorf("the output is %q, want %q", out, tt.out)
			}
			if left, err := os.ReadDir(w.knobs["EXECUTE"]); tt.knobs["EXECUTE"] == "" && err != nil || len(left) > 0 {
				t.Errorf("left in EXECUTE: %v, %v", left, err)
			}
			if os.Getuid() == 0 && tt.out != "" {
				info, err := os.Stat(filepath.Join(w.dir, "out"))
				if err != nil || !strings.Contains(fmt.Sprint(info.Sys()), strconv.Itoa(someone)) {
					t.Errorf("the output is not %d's: %v, %v", someone, info, err)
				}
			}
		})
	}
}

// TestOrders: the schedd ends a job that runs; nothing of it is left.
func TestOrders(t *testing.T) {
	tests := map[string]struct {
		signal int
		ad     string
		code   int
		out    string
		says   string
	}{
		"vacate":         {signal: cedar.DCSigSoftKill, code: ExitRequeue, out: "TERM\n", says: "return value 4"},
		"vacate, fast":   {signal: cedar.DCSigHardKill, code: ExitRequeue, says: "signal 9"},
		"remove or hold": {signal: 10, ad: "RemoveKillSig = \"SIGUSR2\"", code: ExitRemove, out: "USR2\n", says: "CPU times"}, // SIGUSR1
		"remove, and the script afterwards fails": {signal: 10, ad: "RemoveKillSig = \"SIGUSR2\"\nPostCmd = \"/bin/sh\"\nPostArguments = \"-c 'exit 2'\"\nSuccessPostExitCode = 0", code: ExitRemove, out: "USR2\n", says: "CPU times"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.ad+"\n"+script(`trap "echo TERM; exit 4" TERM; trap "echo USR2; exit 4" USR2; setsid sh -c "trap : TERM; while :; do sleep 1000; done" & echo $! >child; while :; do sleep 0.05; done`),
				map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "true"}, nil)
			code := make(chan int, 1)
			go func() { code <- w.run(t) }()
			var child int
			for child == 0 {
				select {
				case c := <-code:
					t.Fatalf("exit code %d before the job began", c)
				case <-time.After(20 * time.Millisecond):
					child, _ = strconv.Atoi(strings.TrimSpace(w.read("child")))
				}
			}
			w.signal(t, tt.signal)
			if c := <-code; c != tt.code {
				t.Errorf("exit code %d, want %d", c, tt.code)
			}
			if out := w.read("out"); out != tt.out {
				t.Errorf("the output is %q, want %q", out, tt.out)
			}
			if log := w.read("log"); !strings.Contains(log, "004 (012.") || !strings.Contains(log, tt.says) {
				t.Errorf("the log is\n%s", log)
			}
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", child)); err == nil {
				t.Errorf("process %d of the job is left", child)
			}
		})
	}
}

// TestOrderDuringStart: a job whose end is ordered while its program is being started has an end in its event log, which has its beginning: that of
// the program, or, if it does not start in time, one of which nothing is known.
func TestOrderDuringStart(t *testing.T) {
	for name, tt := range map[string]struct {
		hangs bool
		says  string
	}{
		"it starts": {says: "signal 15"},
		"it hangs":  {hangs: true, says: "CPU times"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script("exec sleep 1000"), nil, nil)
			w.hangs = tt.hangs
			ordered := make(chan struct{})
			w.logged = func(message string) {
				switch {
				case strings.HasPrefix(message, "About to exec"):
					w.signal(t, cedar.DCSigSoftKill)
					<-ordered
				case message == "ShutdownGraceful all jobs.":
					close(ordered)
				}
			}
			if code := w.run(t); code != ExitRequeue {
				t.Errorf("exit code %d, want %d", code, ExitRequeue)
			}
			if log := w.read("log"); !strings.Contains(log, "001 (012.") || !strings.Contains(log, "004 (012.") || !strings.Contains(log, tt.says) {
				t.Errorf("the log is\n%s", log)
			}
		})
	}
}
