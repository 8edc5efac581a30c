package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestClean(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		most int
		want string
	}{
		"plain":         {"alice@pool", 20, "alice@pool"},
		"forged line":   {"x\nlevel=ERROR msg=\"pod sick\"", 99, `x level=ERROR msg="pod sick"`},
		"terminal":      {"a\x1b[2Jb\x07\x00", 99, "a?[2Jb??"},
		"bytes":         {"a\xff\xfeb", 99, "a??b"},
		"right to left": {"abc\u202edef", 99, "abc?def"},
		"letters":       {"Müller 山", 99, "Müller 山"},
		"long":          {strings.Repeat("a", 1000), 10, "aaaaaaa..."},
		"long letters":  {strings.Repeat("ü", 1000), 10, "üüü..."},
		"only spaces":   {" \t\n ", 9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Clean(tt.in, tt.most)
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if again := Clean(got, tt.most); again != got {
				t.Errorf("a second time %q", again)
			}
		})
	}
}

// TestLongestLine: whatever texts an event has, it fits into a line.
func TestLongestLine(t *testing.T) {
	for _, c := range []string{`"`, `\`, "<", "é", "\x00", "\u2028", "\xff", "山"} {
		s := strings.Repeat(c, 5000)
		code := 255
		e := Event{Kind: JobEnds, PID: 1 << 22, Job: s, Owner: s, Slot: s, SubmitHost: s, Container: s, Image: s, How: s, Seconds: 1.0 / 3, Fetched: 1e-9 / 3, Copied: 1e-9 / 3, CopiedBytes: 1 << 62,
			Outcome: Succeeded, Exit: &code, Signal: 64, Code: 1 << 30, Subcode: 1 << 30, Blame: s, Cause: s, Reason: s, Ran: 1e9 / 3, CPU: 1e9 / 3, Memory: 1 << 62, Calls: map[string]int64{}}
		for _, verb := range []string{"get", "watch", "patch", "create"} {
			for _, code := range []string{"200", "403", "404", "409", "500", "none"} {
				e.Calls[verb+" "+code] = 1 << 40
			}
		}
		if line, err := encode(e.clean()); err != nil {
			t.Errorf("%q: %v", c, err)
		} else if got := decode(line); len(got) != 1 || got[0].Reason != e.clean().Reason {
			t.Errorf("%q: reads as %v", c, got)
		}
	}
}

func state(t *testing.T) Journal {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return Journal{StateDir: dir}
}

func write(t *testing.T, j Journal, jobs ...string) {
	t.Helper()
	for _, job := range jobs {
		if err := j.Write(Event{Kind: JobBegins, Job: job}); err != nil {
			t.Fatal(err)
		}
	}
}

func jobs(events []Event) []string {
	var got []string
	for _, e := range events {
		got = append(got, e.Job)
	}
	return got
}

func TestFollow(t *testing.T) {
	j := state(t)
	write(t, j, "1.0")
	r, err := j.Follow()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read := func(from Position, want ...string) Position {
		t.Helper()
		events, at, err := r.Read(from)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, jobs(events), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return at
	}
	at := read(Position{}, "1.0")
	changed := r.Changed()
	write(t, j, "1.1")
	<-changed
	write(t, j, "1.2")
	at = read(at, "1.1", "1.2")
	read(at)
	read(Position{}, "1.0", "1.1", "1.2")

	// A line of a writer that died, and one that is no event.
	path := filepath.Join(j.StateDir, subdirectory, eventsFile)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("\x00\xff\n{\"kind\":\"job"); err != nil {
		t.Fatal(err)
	}
	at = read(at)
	write(t, j, "1.3", "1.4")
	at = read(at, "1.4")

	// Another file in its place.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	read(at)
	write(t, j, "1.5")
	read(Position{File: 1 << 60, Offset: 1}, "1.5")
	read(Position{File: at.File, Offset: 1 << 20}, "1.5")
}

// TestRenew: a long journal begins anew, and nothing is lost or comes twice.
func TestRenew(t *testing.T) {
	j := state(t)
	r, err := j.Follow()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const writers, each = 4, 500
	var busy sync.WaitGroup
	for range writers {
		busy.Go(func() {
			for range each {
				err := ErrFull
				for errors.Is(err, ErrFull) {
					err = j.Write(Event{Kind: JobEnds, Reason: strings.Repeat("x", maxReason)})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { busy.Wait(); close(over) }()
	count, renewed, at := 0, 0, Position{}
	for last := false; ; {
		events, next, err := r.Read(at)
		if err != nil {
			t.Fatal(err)
		}
		count += len(events)
		if next.File != at.File {
			renewed++
		}
		at = next
		if err := r.Renew(at); err != nil {
			t.Fatal(err)
		}
		if last {
			break
		}
		select {
		case <-over:
			last = true
		default:
		}
	}
	if count != writers*each || renewed < 2 { // together they are longer than one file may be
		t.Errorf("%d events of %d, %d files", count, writers*each, renewed)
	}
}

// TestBetweenFiles: what was written between the last look and a new file is read once, also
// before the new file is there.
func TestBetweenFiles(t *testing.T) {
	j := state(t)
	r, err := j.Follow()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	long := Event{Kind: JobEnds, Job: "1.0", Reason: strings.Repeat("x", maxReason)}
	for range startNew / maxReason {
		if err := j.Write(long); err != nil {
			t.Fatal(err)
		}
	}
	_, at, err := r.Read(Position{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, j, "2.0")
	if err := r.Renew(at); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, job := range []string{"", "3.0", ""} {
		if job != "" {
			write(t, j, job)
		}
		var events []Event
		if events, at, err = r.Read(at); err != nil {
			t.Fatal(err)
		}
		got = append(got, jobs(events)...)
	}
	if diff := cmp.Diff([]string{"2.0", "3.0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNobodyReads: the file stays small, and writers do not wait.
func TestNobodyReads(t *testing.T) {
	j := state(t)
	var err error
	for i := 0; err == nil && i < maxFile/maxReason+10; i++ {
		err = j.Write(Event{Kind: JobEnds, Reason: strings.Repeat("x", maxReason)})
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("the journal takes more than it may: %v", err)
	}
}

// TestForeignDirectory: nothing is written where others can write.
func TestForeignDirectory(t *testing.T) {
	j := state(t)
	if err := os.Chmod(j.StateDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := j.Write(Event{Kind: JobBegins}); err == nil {
		t.Error("an event was written to a directory that others can write to")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"kind":"job ends","reason":"x\u001b","calls":{"get 200":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range decode(data) {
			if len(e.Reason) > maxReason || e.Reason != Clean(e.Reason, maxReason) {
				t.Errorf("an event says %q", e.Reason)
			}
		}
	})
}
