package daemonlog

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRotation(t *testing.T) {
	l, read := open(t, "", func(o *Options) { o.MaxSize = 50 })
	for _, word := range []string{"one", "two", "three", "four"} {
		record(l, slog.LevelInfo, word) // 22 bytes or so each
	}
	path := l.files[0].Path
	old, err := os.ReadFile(path + ".old")
	if err != nil {
		t.Fatal(err)
	}
	got := string(old) + "|" + read()
	want := "11/20/26 23:11:38 one\n11/20/26 23:11:38 two\n11/20/26 23:11:38 three\n|11/20/26 23:11:38 four\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && name == path+".old" {
			t.Error("the file that was set aside is still open")
		}
	}
}

func TestRotationKeepsSeveral(t *testing.T) {
	clock := at
	l, _ := open(t, "", func(o *Options) {
		o.MaxSize, o.Keep = 1, 2
		o.Now = func() time.Time { return clock }
	})
	for range 5 {
		l.write(time.Time{}, slog.LevelInfo, Always, "line")
		clock = clock.Add(time.Second)
	}
	names, err := filepath.Glob(l.files[0].Path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	want := []string{"StarterLog.slot1_1", "StarterLog.slot1_1.20261120T231141", "StarterLog.slot1_1.20261120T231142"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRotationFails goes on in the file that cannot be set aside.
func TestRotationFails(t *testing.T) {
	l, read := open(t, "", func(o *Options) { o.MaxSize = 1 })
	if err := os.MkdirAll(l.files[0].Path+".old/full", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two", "three"} {
		record(l, slog.LevelInfo, word)
	}
	if got := strings.Count(read(), "\n"); got != 3 {
		t.Errorf("%d lines", got)
	}
	if err := l.Err(); err == nil || !strings.Contains(err.Error(), "setting the log") {
		t.Errorf("error %v", err)
	}
}

func TestRotationByTime(t *testing.T) {
	clock := time.Now()
	l, read := open(t, "", func(o *Options) { o.MaxAge = 24 * time.Hour })
	l.write(clock, slog.LevelInfo, Always, "one")
	l.write(clock.Add(24*time.Hour), slog.LevelInfo, Always, "two")
	if got := read(); strings.Contains(got, "one") || !strings.Contains(got, "two") {
		t.Errorf("%q", got)
	}
}

// TestTwoWriters has two processes' worth of logs write and rotate the same
// file; no line may be lost or torn.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	const lines = 300
	var wg sync.WaitGroup
	for writer := range 2 {
		l, err := Open(Options{Path: path, Flags: ParseFlags(""), MaxSize: 4000, Keep: 10000})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		clock := at
		wg.Go(func() {
			for i := range lines {
				clock = clock.Add(time.Second) // names of files set aside differ
				l.write(clock, slog.LevelInfo, Always, fmt.Sprintf("writer %d line %d.", writer, i))
			}
		})
	}
	wg.Wait()
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) < 3 {
		t.Fatalf("%v, %v", names, err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			_, text, _ := strings.Cut(line, " writer ")
			if !strings.HasSuffix(text, ".\n") {
				t.Errorf("torn line %q", line)
			}
			seen[text] = true
		}
	}
	if len(seen) != 2*lines {
		t.Errorf("%d lines, want %d", len(seen), 2*lines)
	}
}

func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as somebody else")
	}
	dir := t.TempDir()
	const nobody = 65534
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	opt := Options{Path: filepath.Join(dir, "log"), Switch: true, UID: nobody, GID: nobody}
	l, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	fi, err := os.Stat(opt.Path)
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%+v", fi.Sys()); !strings.Contains(s, "Uid:65534 Gid:65534") {
		t.Errorf("owner: %s", s)
	}
	// What that user may not open stays closed, although root could.
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, opt.Path+".link"); err != nil {
		t.Fatal(err)
	}
	opt.Path += ".link"
	if l, err := Open(opt); err == nil {
		l.Close()
		t.Error("a file of root was opened through a link")
	}
}
