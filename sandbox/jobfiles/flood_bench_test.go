package jobfiles

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// flooded is a sandbox with n empty files: a tenth at its top, the rest in
// directories of a thousand.
func flooded(b *testing.B, n int) *sandbox.Sandbox {
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: sandboxtest.ExecuteDir(b), PID: 4711, Nested: true, Condor: sandbox.Self(), Payload: sandboxtest.Owner()})
	must(b, err)
	sandboxtest.As(b, s, func(dir string) error {
		for i := range n {
			name := fmt.Sprintf("%s/%d", dir, i)
			if i%10 != 0 {
				sub := fmt.Sprintf("%s/d%d", dir, i/1000)
				if i%1000 == 1 {
					if err := os.Mkdir(sub, 0o755); err != nil {
						return err
					}
				}
				name = filepath.Join(sub, fmt.Sprint(i))
			}
			fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			_ = unix.Close(fd)
		}
		return nil
	})
	return s
}

// BenchmarkFlood is what a sandbox of 300,000 files costs beside sending them: to
// remember it, to list it, to measure it, and to remove it. The figure of memory
// is of what the step holds at its end.
func BenchmarkFlood(b *testing.B) {
	const n = 300_000
	held := func(b *testing.B, before uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(int64(m.HeapAlloc)-int64(before))/(1<<20), "MiB-held")
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s := flooded(b, n)
	b.Run("catalog", func(b *testing.B) {
		before := heap()
		var seen Catalog
		for b.Loop() {
			must(b, s.Payload().Do(func() (err error) { seen, err = TakeCatalog(b.Context(), s.Root()); return err }))
		}
		held(b, before)
		b.ReportMetric(float64(len(seen)), "entries")
	})
	b.Run("list", func(b *testing.B) {
		before := heap()
		job := Files{Output: []string{"."}, HasOutput: true}
		var p Plan
		for b.Loop() {
			p = Plan{Log: slog.New(slog.DiscardHandler), View: View{Root: s.Root()}, Job: &job, Pick: Select(&job, Wanted{}, nil)}
			must(b, s.Payload().Do(func() error { return p.Make(b.Context()) }))
		}
		held(b, before)
		b.ReportMetric(float64(p.count), "entries")
	})
	b.Run("measure", func(b *testing.B) {
		for b.Loop() {
			_, _, err := s.Usage(b.Context())
			must(b, err)
		}
	})
	b.Run("remove", func(b *testing.B) {
		if b.N > 1 {
			b.Skip("once is enough")
		}
		must(b, s.Remove(b.Context()))
	})
}
