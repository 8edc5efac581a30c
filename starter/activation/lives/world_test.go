package lives_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/condortest"
	"podstarter/condor/config"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/starter/activation"
	"podstarter/starter/hostprog"
	"podstarter/starter/podhealth"
	"podstarter/starter/settings"
)

// patience is how long a test waits for what does not come.
const patience = 20 * time.Second

const (
	enospc        = syscall.ENOSPC
	sigCheckpoint = cedar.DCSigPCkpt
)

// world is what a life happens in.
type world struct {
	testing.TB
	life       life
	dir        string
	shadow     *condortest.Shadow
	startd     *condortest.Startd
	activation *condortest.Activation
	log        *logBuffer
	notes      notes
	said       *os.File // FIFO in which the job speaks
	told       *os.File // FIFO in which it listens
	exited     chan int
	code       int
	over       bool
	options    activation.Options
	cancel     context.CancelFunc
	ctx        context.Context
	notices    chan payload.Notice // of the container's end; see withNotices
	orphans    []int               // pidfds of processes whose wrapper was killed
}

// plainJob are attributes of a job that needs no files but its program.
const plainJob = `Cmd = "job.sh"
TransferInput = ""
Environment = ""
Arguments = ""
JobMaxVacateTime = 30
`

func newWorld(t testing.TB, l life) *world {
	t.Helper()
	w := &world{TB: t, life: l, dir: temporary(t), log: &logBuffer{}, exited: make(chan int, 1)}
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() && os.Getenv("LIVES_SHOW") != "" {
			w.show()
		}
	})
	for _, name := range []string{"execute", "site", "lock"} {
		w.must(os.Mkdir(filepath.Join(w.dir, name), 0o755)) //nolint:forbidigo // a directory of the test
	}
	w.said, w.told = w.fifo("said"), w.fifo("told")
	for name, text := range l.programs {
		w.must(writeProgram(filepath.Join(w.dir, "site", name), w.at(text)))
	}
	files := map[string]string{"job.sh": "#!/bin/sh\n" + w.at(l.script)}
	maps.Copy(files, w.atAll(l.files))
	so := condortest.ShadowOptions{
		Job: plainJob + w.at(l.job), Without: l.without, Files: files,
	}
	for _, name := range []string{"TransferOutput", "TransferOutputRemaps"} { // all that is new comes back
		if !strings.Contains("\n"+l.job, "\n"+name+" =") {
			so.Without = append(so.Without, name)
		}
	}
	if l.submit != nil {
		l.submit(&so)
	}
	w.shadow = condortest.NewShadow(t, so)
	var do condortest.StartdOptions
	if l.machine != nil {
		l.machine(&do)
	}
	w.startd = condortest.NewStartd(t, do)
	w.activation = w.startd.Activate(t, w.shadow)
	w.configure()
	return w
}

// temporary is a directory with a short name: sockets are in it.
func temporary(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "life")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// configure makes the options of the activation.
func (w *world) configure() {
	w.Helper()
	knobs := map[string]string{
		"EXECUTE": w.execute(), "LOCK": filepath.Join(w.dir, "lock"), "POD_STARTER_BACKEND": "local",
		"FILESYSTEM_DOMAIN": "here.invalid", "UID_DOMAIN": "here.invalid", "SEC_DEFAULT_AUTHENTICATION": "REQUIRED", "ENABLE_IPV4": "true",
	}
	maps.Copy(knobs, w.atAll(w.life.knobs))
	cfg := config.FromMap(knobs)
	set, err := settings.Read(cfg)
	w.must(err)
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.options = activation.Options{
		Slot: "slot1_1", SubmitHost: "submit.invalid", Version: set.Condor.Version, Settings: set, Log: log,
		Pod:  podhealth.Pod{StateDir: set.StateDir(), PublishDir: set.Condor.Lock, LongestRest: set.MaxRest},
		Note: w.notes.note, Inherit: startd.Inherit,
		Host: hostprog.New(hostprog.Options{SeparateUsers: set.SeparateUsers(), Paths: set.ProgramPaths}),
		NewBackend: func(context.Context) (payload.Backend, error) {
			b, err := localexec.New(localexec.Options{Dir: set.StateDir(), UID: set.PayloadUID, Users: 1, Log: log})
			if err == nil && w.life.backend != nil {
				return w.life.backend(w, b), nil
			}
			return b, err
		},
	}
	if w.life.options != nil {
		w.life.options(&w.options)
	}
}

// begin lets the starter begin.
func (w *world) begin() {
	w.Helper()
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.options.Env = append(w.activation.Env(w), "PATH=/usr/local/bin:/usr/bin:/bin", "PILOT=yes")
	go func() { w.exited <- activation.Run(w.ctx, w.options) }()
}

// end waits until the starter has ended.
func (w *world) end() {
	w.Helper()
	if w.over {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case w.code = <-w.exited:
		w.over = true
		w.cancel()
	case <-timer.C:
		w.Fatal("the starter does not end")
	}
	w.shadow.WaitClosed(w)
	w.startd.Wait(w, condortest.Call(condortest.Closed))
}

// fifo makes a FIFO that can be opened by the job without waiting.
func (w *world) fifo(name string) *os.File {
	w.Helper()
	path := filepath.Join(w.dir, name)
	w.must(unix.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	w.must(err)
	w.Cleanup(func() { f.Close() })
	return f
}

// hears waits until the job says a word: echo WORD >@/said.
func (w *world) hears(word string) {
	w.Helper()
	w.must(w.said.SetReadDeadline(time.Now().Add(patience)))
	var got []byte
	for b := make([]byte, 1); ; {
		if _, err := w.said.Read(b); err != nil {
			w.Fatalf("the job says %q, not %q: %v", got, word, err)
		}
		if b[0] == '\n' {
			break
		}
		got = append(got, b[0])
	}
	if string(got) != word {
		w.Fatalf("the job says %q, not %q", got, word)
	}
}

// tell says a word to the job, which reads it: read word <@/told.
func (w *world) tell(word string) {
	w.Helper()
	_, err := fmt.Fprintln(w.told, word)
	w.must(err)
}

// vacate orders the end of the job, from any goroutine.
func (w *world) vacate(v startd.Vacate) {
	if err := w.activation.TryVacate(context.Background(), v); err != nil {
		w.Errorf("order %+v: %v", v, err)
	}
}

// updated checks the last value of an attribute that the shadow heard.
func updated(name, want string) func(*world) {
	return func(w *world) {
		w.Helper()
		last := ""
		for _, h := range w.shadow.Heard() {
			if text := h.Ad.Text(name); text != "" {
				last = text
			}
		}
		w.same(want, last)
	}
}

// signal sends DC_RAISESIGNAL, from any goroutine.
func (w *world) signal(number int) {
	if err := w.activation.Signal(context.Background(), number); err != nil {
		w.Errorf("signal %d: %v", number, err)
	}
}

// logged waits until the starter's log has a text.
func (w *world) logged(text string) {
	w.Helper()
	if !w.log.wait(text, patience) {
		w.Fatalf("the log never has %q", text)
	}
}

// loggedTimes waits until the starter's log has a text so many times.
func (w *world) loggedTimes(text string, n int) {
	w.Helper()
	if !w.log.waitN(text, n, patience) {
		w.Fatalf("the log never has %q %d times", text, n)
	}
}

// lastWords are the words that end a job: job_exit with status and reason, or an error
// with code and subcode, if it has some; and the text of the last.
func (w *world) lastWords() (words []string, text string) {
	for _, h := range w.shadow.Heard() {
		switch {
		case h.Call == "job_exit":
			words = append(words, h.String())
		case h.Call == "ulog" && h.Ad.Text("MyType") == "RemoteErrorEvent":
			word := fmt.Sprintf("error %s/%s", h.Ad.Text("HoldReasonCode"), h.Ad.Text("HoldReasonSubCode"))
			words = append(words, strings.TrimSuffix(word, " /"))
			text = h.Ad.Text("ErrorMsg")
		}
	}
	return words, text
}

// must ends a test that cannot even begin.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// show shows what happened.
func (w *world) show() {
	w.Logf("the shadow heard:\n%s\nthe startd heard:\n%s\nthe log:\n%s",
		strings.Join(w.shadow.Story(), "\n"), strings.Join(w.startd.Story(), "\n"), w.log.String())
}

// logBuffer is a log that a test reads.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next line; nil while nobody waits
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.more != nil {
		close(b.more)
		b.more = nil
	}
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.ReplaceAll(b.text.String(), `\"`, `"`)
}

func (b *logBuffer) wait(text string, limit time.Duration) bool { return b.waitN(text, 1, limit) }

func (b *logBuffer) waitN(text string, n int, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		b.mu.Lock()
		if b.more == nil {
			b.more = make(chan struct{})
		}
		more := b.more
		found := strings.Count(strings.ReplaceAll(b.text.String(), `\"`, `"`), text) >= n
		b.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-more:
		case <-timer.C:
			return false
		}
	}
}
