package discard

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// box notes what is done to it.
type box struct {
	moves error
	began time.Time
	done  []string
}

func (b *box) Dir() string { return "/execute/dir_7" }

func (b *box) MoveTo(_ context.Context, path string) error {
	b.note("move to " + path)
	return b.moves
}

func (b *box) Remove(context.Context) error {
	b.note("remove")
	return nil
}

func (b *box) note(what string) { b.done = append(b.done, what+" after "+time.Since(b.began).String()) }

func TestDiscard(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGQUIT) // begins what may not begin in a bubble of synctest
	for name, tt := range map[string]struct {
		knobs Knobs
		moves error
		want  []string
	}{
		"as usual":          {want: []string{"remove after 0s"}},
		"later":             {knobs: Knobs{Delay: time.Minute}, want: []string{"remove after 1m0s"}},
		"kept":              {knobs: Knobs{MoveTo: "/kept"}, want: []string{"move to /kept after 0s"}},
		"kept later":        {knobs: Knobs{Delay: time.Minute, MoveTo: "/kept"}, want: []string{"move to /kept after 1m0s"}},
		"cannot be kept":    {knobs: Knobs{MoveTo: "/kept"}, moves: errors.New("no"), want: []string{"move to /kept after 0s", "remove after 0s"}},
		"a negative number": {knobs: Knobs{Delay: -time.Minute}, want: []string{"remove after 0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &box{moves: tt.moves, began: time.Now()}
				Discard(t.Context(), b, tt.knobs, slog.New(slog.DiscardHandler))
				if diff := cmp.Diff(tt.want, b.done); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestEndedWait: a signal, or the end of the context, ends the wait.
func TestEndedWait(t *testing.T) {
	kill := func(sig syscall.Signal) func(context.CancelFunc) error {
		return func(context.CancelFunc) error { return syscall.Kill(os.Getpid(), sig) }
	}
	for name, ends := range map[string]func(context.CancelFunc) error{
		"SIGTERM": kill(syscall.SIGTERM), "SIGQUIT": kill(syscall.SIGQUIT), "the context": func(cancel context.CancelFunc) error { cancel(); return nil },
	} {
		t.Run(name, func(t *testing.T) { endedWait(t, ends) })
	}
}

func endedWait(t *testing.T, ends func(context.CancelFunc) error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := make(chan struct{})
	log := slog.New(slog.NewTextHandler(writer(func(line string) {
		if strings.Contains(line, "Sleeping") {
			close(waits)
		}
	}), nil))
	b := &box{began: time.Now()}
	done := make(chan struct{})
	go func() { Discard(ctx, b, Knobs{Delay: 24 * time.Hour}, log); close(done) }()
	<-waits // from now on, signals are caught
	if err := ends(cancel); err != nil {
		t.Fatal(err)
	}
	<-done
	if len(b.done) != 1 || !strings.HasPrefix(b.done[0], "remove") {
		t.Errorf("%v", b.done)
	}
}

type writer func(line string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}
