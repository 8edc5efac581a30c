package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"podstarter/condor/chirp"
	"podstarter/condor/config"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/submitside"
)

// fool panics wherever it is asked for something.
type fool struct{ chirp.Shadow }

const foolish = "a bug that nobody has found yet"

func (fool) GetJobAttr(context.Context, string) (string, error) { panic(foolish) }

func (fool) handle(context.Context, *cedar.Call) error { panic(foolish) }

func (fool) work() { panic(foolish) }

// panics are what goes wrong, each in a goroutine that this program has.
var panics = map[string]func(t *testing.T, ctx context.Context, a *activation){
	"the main goroutine": func(*testing.T, context.Context, *activation) { fool{}.work() },
	"a command": func(t *testing.T, ctx context.Context, a *activation) {
		server := &cedar.Server{Sessions: a.sessions, Version: shadowVersion}
		server.Handle(cedar.StarterPeek, cedar.Write, fool{}.handle)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		rescue.Go(func() { _ = server.Serve(ctx, l) })
		session, ok := a.sessions.Lookup("claim")
		if !ok {
			t.Fatal("no session")
		}
		client := &cedar.Client{Version: shadowVersion, Timeout: longTime}
		if st, err := client.Command(ctx, "<"+l.Addr().String()+">", cedar.StarterPeek, session); err == nil {
			st.PutInt(1)
			_ = st.EndMessage()
			_, _ = st.GetInt()
			st.Close()
		}
	},
	"a chirp session": func(t *testing.T, _ context.Context, _ *activation) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		chirp.Serve(l, chirp.Options{Shadow: fool{}, Cookie: "sesame", Updates: true})
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "cookie sesame\nget_job_attr x\n")
		_, _ = io.ReadAll(conn)
	},
	// An activation without a container cannot be asked how its job fares.
	"an update": func(_ *testing.T, ctx context.Context, a *activation) {
		a.background.Go(func() { a.changeUpdate(ctx) })
	},
	"a takedown": func(_ *testing.T, ctx context.Context, a *activation) {
		rescue.Go(func() { a.orders.TakeDownWith(ctx, a.container.Ending()) })
	},
	"a lock is kept": func(_ *testing.T, _ context.Context, a *activation) {
		to := a.reportsTo()
		to.Shadow = stuck{to.Shadow}
		a.reports = submitside.NewReports(to)
		rescue.Go(fool{}.work)
	},
	"nobody's":        func(*testing.T, context.Context, *activation) { go fool{}.work() },
	"a fatal error":   func(*testing.T, context.Context, *activation) { go new(sync.Mutex).Unlock() },
	"no more threads": func(*testing.T, context.Context, *activation) { debug.SetMaxThreads(1) },
}

// TestPanicChild is the process in which something panics.
func TestPanicChild(t *testing.T) {
	kind, dir := os.Getenv("TEST_PANIC"), os.Getenv("TEST_PANIC_DIR")
	if kind == "" {
		t.Skip("run by TestPanics")
	}
	dieBySignal()
	cfg := config.FromMap(map[string]string{"STARTER_LOG": filepath.Join(dir, "StarterLog"), "CONDOR_IDS": fmt.Sprintf("%d.%d", os.Getuid(), os.Getgid())})
	file, err := openLog(cfg, invocation{})
	if err != nil {
		t.Fatal(err)
	}
	limit := longTime
	if kind == "a lock is kept" {
		limit = time.Millisecond
	}
	a, sub := starterWith(t, time.Hour)
	a.log = logger(file)
	code := survive(t.Context(), a.log, limit, func(f *failures) (*activation, error) {
		f.end(a.orders)
		return a, nil
	}, func(a *activation, ctx context.Context) int {
		before, release := a.orders.UntilHard(ctx)
		defer release()
		panics[kind](t, ctx, a)
		<-before.Done() // as a phase that is cut short
		code := a.conclude(ctx, context.Cause(before))
		a.clean(ctx)
		return code
	})
	sub.serving.Wait()
	fmt.Println("heard:", strings.Join(sub.heard, ", "))
	os.Exit(code)
}

// TestPanics: whatever panics, the log has the stack, the shadow hears that the
// job goes back to the queue where anybody can tell it, and the process does not
// end as one that has lost its shadow.
func TestPanics(t *testing.T) {
	t.Parallel()
	said := "error the starter failed: "
	tests := map[string]struct {
		abort bool
		heard string
		log   []string
	}{
		"the main goroutine": {heard: said + foolish, log: []string{foolish, "fool.work"}},
		"a command":          {heard: said + foolish, log: []string{foolish, "fool.handle"}},
		"a chirp session":    {heard: said + foolish, log: []string{foolish, "fool.GetJobAttr"}},
		"an update":          {heard: said + "runtime error", log: []string{"nil pointer", "changeUpdate"}},
		"a takedown":         {heard: said + "runtime error", log: []string{"nil pointer", "panics_test.go"}},
		"a lock is kept":     {abort: true, log: []string{foolish, "fool.work", "no orderly end", "TestPanicChild"}},
		"nobody's":           {abort: true, log: []string{foolish, "fool.work"}},
		// Of these the runtime gives its message to nothing but standard error.
		"a fatal error":   {abort: true, log: []string{"sync.fatal", "Mutex"}},
		"no more threads": {abort: true, log: []string{"runtime.throw", "checkmcount"}},
	}
	if len(tests) != len(panics) {
		t.Fatalf("%d of %d panics are looked at", len(tests), len(panics))
	}
	for kind, want := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestPanicChild$")
			cmd.Env = append(os.Environ(), "TEST_PANIC="+kind, "TEST_PANIC_DIR="+dir)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err := cmd.Run()
			end := (*exec.ExitError)(nil)
			if !errors.As(err, &end) {
				t.Fatalf("it ended well: %v\n%s", err, out.String())
			}
			log, _ := os.ReadFile(filepath.Join(dir, "StarterLog"))
			status := end.Sys().(syscall.WaitStatus)
			switch {
			case want.abort && status.Signal() != syscall.SIGABRT, !want.abort && status.ExitStatus() != exitException:
				t.Errorf("%v\nlog:\n%s\nsaid:\n%s", err, log, out.String())
			case status.CoreDump():
				t.Error("a core was left")
			}
			if !strings.Contains(out.String(), want.heard) {
				t.Errorf("the shadow has not heard %q:\n%s\nlog:\n%s", want.heard, out.String(), log)
			}
			for _, text := range want.log {
				if !strings.Contains(string(log), text) {
					t.Errorf("no %q in the log:\n%s\nsaid:\n%s", text, log, out.String())
				}
			}
		})
	}
}

// TestPanicIsNoExit: a job whose starter has failed is not told to have ended.
func TestPanicIsNoExit(t *testing.T) {
	a, sub := starterWith(t, time.Hour)
	a.failures = &failures{log: slog.New(slog.DiscardHandler), limit: longTime}
	a.failures.add(&rescue.Panic{Value: foolish})
	defer a.failures.over()
	err := a.sayExited(t.Context())
	if f := failure.Of(err); err == nil || f.Code != shadow.VacateStarterError || !strings.Contains(f.Error(), foolish) {
		t.Errorf("got %v", err)
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.heard) > 0 {
		t.Errorf("the shadow heard %q", sub.heard)
	}
}

// stuck is a shadow that nothing can be told.
type stuck struct{ submitside.Shadow }

func (stuck) ReportError(context.Context, shadow.RemoteError) error { select {} }
