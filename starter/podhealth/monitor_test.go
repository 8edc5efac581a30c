package podhealth

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPublishedAds(t *testing.T) {
	s := published{Images: []string{"debian:stable", "docker.io/library/debian:stable"}}
	known := map[string]bool{}
	well := `PodStarterHealthy = true
PodStarterOfflineUntil = 0
PodStarterOfflineReason = ""
PodStarterImages = "debian:stable,docker.io/library/debian:stable"
- pod update:true
`
	if diff := cmp.Diff(well, s.ads(noon, known)); diff != "" {
		t.Errorf("well (-want +got):\n%s", diff)
	}
	s.Health = s.Health.fellSick(`no "permission"`, noon, usual).tired("2", "registry away", noon, usual)
	sick := `PodStarterHealthy = false
PodStarterOfflineUntil = 1795262460
PodStarterOfflineReason = "no \"permission\""
PodStarterImages = "debian:stable,docker.io/library/debian:stable"
- pod update:true
SlotId = 2
PodStarterRestUntil = 1795262410
PodStarterRestReason = "registry away"
- rest2 update:true
`
	if diff := cmp.Diff(sick, s.ads(noon, known)); diff != "" {
		t.Errorf("sick (-want +got):\n%s", diff)
	}
	// The slot's ad would keep what is not said any more.
	s.Health = Health{}
	over := well + `SlotId = 2
PodStarterRestUntil = 0
PodStarterRestReason = ""
- rest2 update:true
`
	if diff := cmp.Diff(over, s.ads(noon, known)); diff != "" {
		t.Errorf("well again (-want +got):\n%s", diff)
	}
}

func TestPublishedNext(t *testing.T) {
	s := published{Health: Health{}.fellSick("x", noon, usual).tired("1", "x", noon.Add(time.Millisecond), usual)}
	for _, want := range []time.Duration{11 * time.Second, time.Minute} {
		next := s.next(noon)
		if next.Sub(noon) != want {
			t.Fatalf("the ads change after %s, want %s", next.Sub(noon), want)
		}
		before, after := s.ads(next.Add(-time.Millisecond), map[string]bool{}), s.ads(next, map[string]bool{})
		if want == time.Minute && before == after {
			t.Error("and then they do not")
		}
		s.Health.Rests = nil
	}
	if next := s.next(noon.Add(time.Hour)); !next.IsZero() {
		t.Errorf("the ads change at %s, want never", next)
	}
}

func TestDecodePublished(t *testing.T) {
	s, err := decodePublished([]byte(`{"images":["good:1","bad,1","bad\n- x","","bad \"quote\"","`+strings.Repeat("x", 2000)+`"]}`), noon)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"good:1"}, s.Images); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecodePublished(f *testing.F) {
	f.Add(`{"health":{"sick":{"reason":"x","noted":"2026-11-21T12:00:00Z","until":"2026-11-21T12:01:00Z"},"rests":{"1":{"until":"2026-11-21T12:01:00Z"}}},"images":["a"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := decodePublished([]byte(text), noon)
		if err != nil {
			return
		}
		for line := range strings.Lines(s.ads(noon, map[string]bool{})) {
			name, _, ok := strings.Cut(line, " = ")
			if !strings.HasPrefix(line, "- pod ") && !strings.HasPrefix(line, "- rest") && (!ok || !strings.HasPrefix(name, "PodStarter") && name != "SlotId") {
				t.Fatalf("%q makes the line %q", text, line)
			}
		}
		s.next(noon)
	})
}

// TestMonitor: what is published is printed at once, and the end of the reader is
// the end of the monitor.
func TestMonitor(t *testing.T) {
	lock := t.TempDir()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Monitor(lock, write, func(err error) { t.Error(err) }) }()
	lines := bufio.NewScanner(read)
	wait := func(prefix string) string {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return lines.Text()
			}
		}
		t.Fatalf("the monitor ended before it printed %q", prefix)
		return ""
	}
	if got := wait("PodStarterHealthy"); got != "PodStarterHealthy = true" {
		t.Errorf("of a pod of which nothing is known: %s", got)
	}
	p := Pod{StateDir: t.TempDir(), PublishDir: lock, LongestRest: usual}
	err = p.note(func(h Health, now time.Time) Health { return h.fellSick("of the plague", now, usual) })
	if err != nil {
		t.Fatal(err)
	}
	if got := wait("PodStarterHealthy"); got != "PodStarterHealthy = false" {
		t.Errorf("of a sick pod: %s", got)
	}
	if got := wait("PodStarterOfflineReason"); !strings.Contains(got, "of the plague") {
		t.Errorf("of a sick pod: %s", got)
	}
	// It becomes well by itself, when the time is over.
	err = p.note(func(h Health, now time.Time) Health {
		s := *h.Sick
		s.Until = now.Add(10 * time.Millisecond)
		h.Sick = &s
		return h
	})
	if err != nil {
		t.Fatal(err)
	}
	for wait("PodStarterHealthy") != "PodStarterHealthy = true" {
	}
	read.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestMonitorBelievesRootOnly: a link in place of the file is not followed.
func TestMonitorBelievesRootOnly(t *testing.T) {
	lock := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(`{"images":["x"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(lock, publishedFile)); err != nil {
		t.Fatal(err)
	}
	if s, err := readPublished(lock, noon); err == nil {
		t.Errorf("read %+v through a link", s)
	}
	if err := (published{}).write(lock); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != `{"images":["x"]}` {
		t.Errorf("wrote through a link: %s, %v", text, err)
	}
}
