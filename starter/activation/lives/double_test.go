package lives_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"podstarter/payload"
	"podstarter/payload/memcg"
)

// double is a backend that does what one beside the starter cannot: fail in all ways that
// pods fail in. What is not set is as the real one has it.
type double struct {
	payload.Backend
	ending  chan payload.Notice // of the container
	lost    chan error          // of the container
	suspect func()              // finds out whether the container will be ended
	doom    string              // why it is being ended, for who asks
	lease   func() error        // fails a lease
	bind    func() error        // fails a binding

	// Of the wrapper:
	exit                 func(*payload.Exit) // changes how the main process ended
	start, signal, usage func()              // come before such a request
	rehearsal            func()              // comes before a start that is only rehearsed
	memory               *memcg.Files        // the container's control group
}

func (d *double) Lease(ctx context.Context, wish payload.Wish) (payload.Lease, error) {
	if d.lease != nil {
		if err := d.lease(); err != nil {
			return nil, err
		}
	}
	l, err := d.Backend.Lease(ctx, wish)
	return doubleLease{l, d}, err
}

type doubleLease struct {
	payload.Lease
	double *double
}

func (l doubleLease) Bind(ctx context.Context, req payload.BindRequest) (payload.Container, error) {
	if l.double.bind != nil {
		if err := l.double.bind(); err != nil {
			return nil, err
		}
	}
	c, err := l.Lease.Bind(ctx, req)
	return doubleContainer{c, l.double}, err
}

type doubleContainer struct {
	payload.Container
	double *double
}

func (c doubleContainer) Ending() <-chan payload.Notice { return c.double.ending }

func (c doubleContainer) Suspect() {
	if c.double.suspect != nil {
		c.double.suspect()
	}
}

func (c doubleContainer) Doom(context.Context) (payload.Notice, bool) {
	return payload.Notice{Reason: c.double.doom, Left: 2 * time.Second}, c.double.doom != ""
}

func (c doubleContainer) Lost() <-chan error {
	if c.double.lost != nil {
		return c.double.lost
	}
	return c.Container.Lost()
}

func (c doubleContainer) Client() payload.Wrapper {
	return doubleWrapper{c.Container.Client(), c.double}
}

type doubleWrapper struct {
	payload.Wrapper
	double *double
}

func (w doubleWrapper) Wait(ctx context.Context) (payload.Exit, error) {
	exit, err := w.Wrapper.Wait(ctx)
	if err == nil && w.double.exit != nil {
		w.double.exit(&exit)
	}
	return exit, err
}

func (w doubleWrapper) Start(ctx context.Context, s payload.Spec, files ...*os.File) (payload.Started, error) {
	if s.Rehearse {
		before(w.double.rehearsal)
	} else {
		before(w.double.start)
	}
	return w.Wrapper.Start(ctx, s, files...)
}

func (w doubleWrapper) Signal(ctx context.Context, sig syscall.Signal, whole bool) error {
	before(w.double.signal)
	return w.Wrapper.Signal(ctx, sig, whole)
}

func (w doubleWrapper) Usage(ctx context.Context) (payload.ContainerUsage, error) {
	before(w.double.usage)
	return w.Wrapper.Usage(ctx)
}

func (w doubleWrapper) Memory() *memcg.Files { return w.double.memory }

// uses makes the files of a control group in which a job uses so many of 256 megabytes, and has
// used as many as peak, and the kernel has killed so many processes.
func (w *world) uses(now, peak, kills int) {
	w.Helper()
	for name, text := range map[string]string{
		"memory.current": fmt.Sprint(now << 20), "memory.peak": fmt.Sprint(peak << 20), "memory.max": fmt.Sprint(256 << 20),
		"memory.stat": fmt.Sprintf("anon %d\nfile 0\nshmem 0\n", now<<20), "memory.events": fmt.Sprintf("oom %d\noom_kill %d\n", kills, kills),
	} {
		w.must(os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
	}
}

// group opens them.
func (w *world) group() *memcg.Files {
	w.Helper()
	names, opened := memcg.Open(2, w.dir, nil)
	files, err := memcg.NewFiles(2, -1, names, opened, func(*os.File) error { return nil })
	w.must(err)
	w.Cleanup(files.Close)
	return files
}

func before(do func()) {
	if do != nil {
		do()
	}
}

// outOfMemory is an end of which the kernel has killed a process for want of memory.
func outOfMemory(exit *payload.Exit) { exit.OOMKills = 1 }
