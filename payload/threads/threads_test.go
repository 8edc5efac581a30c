package threads

import (
	"os"
	"strings"
	"testing"
)

// TestReserve: the threads exist, and stay while nobody uses them.
func TestReserve(t *testing.T) {
	const n = 30
	Reserve(n)
	first := count(t)
	if first < n {
		t.Errorf("%d threads, want %d", first, n)
	}
	Reserve(n)
	if again := count(t); again > first+5 {
		t.Errorf("%d threads after a second Reserve, there were %d", again, first)
	}
}

func count(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// BenchmarkReserve measures the memory of one reserved thread.
func BenchmarkReserve(b *testing.B) {
	before := resident(b)
	for b.Loop() {
		Reserve(100)
	}
	b.ReportMetric(float64(resident(b)-before)/100, "KiB/thread")
}

func resident(b *testing.B) int {
	b.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	kib := 0
	for _, c := range strings.TrimSpace(rest) {
		if c < '0' || c > '9' {
			break
		}
		kib = 10*kib + int(c-'0')
	}
	return kib
}
