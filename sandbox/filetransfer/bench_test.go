package filetransfer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/internal/cedar"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
)

// The benchmarks measure only this side: the shadow is a process of its own. It sends
// as HTCondor's does: packets of 4 KiB, each message by itself. Files are in memory
// where that can be had: creating thousands costs a disk's file system more or less
// depending on what was removed before.
//
//	go test ./sandbox -run '^$' -bench . -benchtime 1x

// TestShadowProcess is that process, when a benchmark has started it.
func TestShadowProcess(t *testing.T) {
	spec := os.Getenv("SANDBOX_BENCH_SHADOW")
	if spec == "" {
		t.Skip("only for benchmarks")
	}
	var files int
	var size int64
	_, err := fmt.Sscanf(spec, "%d %d", &files, &size)
	must(t, err)
	f := newShadow(t)
	for i := range files {
		f.items = append(f.items, sent{command: 1, name: "in/" + strconv.Itoa(i), mode: 0o644, raw: func(s *cedar.Stream) error { return sendAsCondor(s, size) }})
	}
	f.discard = true
	fmt.Printf("\nSHADOW %s %s\n", f.addr, f.session.Export("25.14.1"))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func sendAsCondor(s *cedar.Stream, size int64) error {
	const chunk = 262144
	s.SetPacketSize(4075)
	buf := make([]byte, chunk)
	s.PutInt(0o644)
	if err := s.EndMessage(); err != nil {
		return err
	}
	s.PutInt(size)
	s.PutInt(chunk)
	if err := s.EndMessage(); err != nil {
		return err
	}
	for rest := size; rest > 0; {
		n := min(rest, chunk)
		s.PutBytes(buf[:n])
		if err := s.EndMessage(); err != nil {
			return err
		}
		rest -= n
	}
	return nil
}

func shadowProcess(b *testing.B, files int, size int64) *fakeShadow {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestShadowProcess$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("SANDBOX_BENCH_SHADOW=%d %d", files, size))
	stdin, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	cmd.Stderr = os.Stderr
	must(b, cmd.Start())
	b.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var addr, claim string
		if n, _ := fmt.Sscanf(lines.Text(), "SHADOW %s %s", &addr, &claim); n == 2 {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			session, err := cedar.ImportSession(claim, "submit-side@matchsession", cedar.Write)
			must(b, err)
			return &fakeShadow{t: b, addr: addr, session: session, client: &cedar.Client{Version: testVersion, Timeout: time.Minute}}
		}
	}
	b.Fatal("no shadow")
	return nil
}

func benchDir(b *testing.B) string {
	const memory = "/dev/shm"
	if st, err := os.Stat(memory); err != nil || !st.IsDir() {
		return sandboxtest.ExecuteDir(b)
	}
	return sandboxtest.ExecuteDirIn(b, memory)
}

func cpu() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak returns the greatest resident size since it was last reset, in MiB.
func peak(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	must(b, err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	return float64(kib) / 1024
}

func measure(b *testing.B, bytes int64, files int, run func()) {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	base := peak(b)
	b.SetBytes(bytes)
	began, wall := cpu(), time.Now()
	b.ResetTimer()
	run()
	b.StopTimer()
	used := cpu() - began
	if n := float64(b.N) * float64(bytes) / (1 << 30); bytes >= 1<<28 {
		b.ReportMetric(used.Seconds()/n, "cpu-s/GiB")
	}
	b.ReportMetric(float64(time.Since(wall).Microseconds())/float64(b.N*files), "µs/file")
	b.ReportMetric(float64(used.Microseconds())/float64(b.N*files), "cpu-µs/file")
	b.ReportMetric(peak(b)-base, "MiB-more")
}

func BenchmarkDownload(b *testing.B) {
	for _, c := range []struct {
		name  string
		files int
		size  int64
	}{{"1x1GiB", 1, 1 << 30}, {"200x5MiB", 200, 5 << 20}, {"5000x1KiB", 5000, 1 << 10}, {"200000x64B", 200_000, 64}} {
		b.Run(c.name, func(b *testing.B) {
			f := shadowProcess(b, c.files, c.size)
			measure(b, int64(c.files)*c.size, c.files, func() {
				for range b.N {
					b.StopTimer()
					s := sandboxtest.NewIn(b, benchDir(b))
					b.StartTimer()
					if _, err := f.transfer(s, plainJob+"TransferOutput = \"\"\n").Download(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkUpload(b *testing.B) {
	for _, c := range []struct {
		name  string
		files int
		size  int64
	}{{"1x1GiB", 1, 1 << 30}, {"200x5MiB", 200, 5 << 20}, {"5000x1KiB", 5000, 1 << 10}, {"200000x64B", 200_000, 64}} {
		b.Run(c.name, func(b *testing.B) {
			f := shadowProcess(b, 0, 0)
			s := sandboxtest.NewIn(b, benchDir(b))
			sandboxtest.As(b, s, func(dir string) error {
				data := make([]byte, 1<<20)
				for i := range c.files {
					path := filepath.Join(dir, "out", strconv.Itoa(i%50), strconv.Itoa(i))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						return err
					}
					w, err := os.Create(path)
					if err != nil {
						return err
					}
					for rest := c.size; rest > 0; rest -= min(rest, int64(len(data))) {
						if _, err := w.Write(data[:min(rest, int64(len(data)))]); err != nil {
							return err
						}
					}
					w.Close()
				}
				return os.WriteFile(filepath.Join(dir, jobfiles.StdoutName), nil, 0o644)
			})
			measure(b, int64(c.files)*c.size, c.files, func() {
				for range b.N {
					if _, err := f.transfer(s, plainJob+"TransferOutput = \"out\"\n").Upload(context.Background(), Upload{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
