package jobfiles

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/sandboxtest"
)

// heap is what is held now, and what has ever been asked for, in bytes.
func heap() (held, asked int64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.TotalAlloc)
}

// TestPlanOfLongNames: the memory of a plan does not grow with the length of a job's
// paths.
func TestPlanOfLongNames(t *testing.T) {
	const (
		files = 8000
		step  = 240 // bytes of a name
		depth = 15
	)
	s := sandboxtest.New(t)
	sandboxtest.As(t, s, func(dir string) error {
		at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		for range depth {
			name := strings.Repeat("d", step)
			if err := unix.Mkdirat(at, name, 0o755); err != nil {
				return err
			}
			next, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			_ = unix.Close(at)
			if err != nil {
				return err
			}
			at = next
		}
		defer func() { _ = unix.Close(at) }()
		for i := range files {
			fd, err := unix.Openat(at, fmt.Sprintf("%0*d", step, i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			_ = unix.Close(fd)
		}
		return nil
	})
	job := Files{Output: []string{"."}, HasOutput: true}
	before, _ := heap()
	p := Plan{Log: slog.New(slog.DiscardHandler), View: View{Root: s.Root()}, Job: &job, Pick: Select(&job, Wanted{}, nil)}
	must(t, s.Payload().Do(func() error { return p.Make(t.Context()) }))
	after, _ := heap()
	if held := after - before; held > maxPlannedBytes+1<<20 || p.count < files+depth {
		t.Errorf("a plan of %d items holds %d KiB", p.count, held>>10)
	}
	sent := 0
	must(t, s.Payload().Do(func() error { return p.Each(t.Context(), func(Item) error { sent++; return nil }) }))
	if int64(sent) != p.count {
		t.Errorf("%d of %d are sent", sent, p.count)
	}
}

// TestPlanOfOrdinaryNames: a plan holds this many files with usual names, and finds the
// duplicates.
func TestPlanOfOrdinaryNames(t *testing.T) {
	p := Plan{whole: true}
	for i := range maxPlanned {
		name := fmt.Sprintf("results/2026-11-22/sample-%06d/histogram-of-energies.root", i)
		p.hold(Item{Source: name, Dest: DirName(name), URL: "https://storage.example.org/user/project/" + name})
	}
	if !p.whole || len(p.items) != maxPlanned {
		t.Errorf("%d items are held, %d bytes", len(p.items), p.kept)
	}
	_, before := heap()
	if got := len(dropDuplicates(p.items)); got != maxPlanned {
		t.Errorf("%d are left", got)
	}
	if _, after := heap(); after-before > 16<<20 {
		t.Errorf("the search for duplicates takes %d KiB", (after-before)>>10)
	}
}
