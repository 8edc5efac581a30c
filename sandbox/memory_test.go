package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/classads"
)

// heap is what is held now, and what has ever been asked for, in bytes.
func heap() (held, asked int64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.TotalAlloc)
}

// TestPlanOfLongNames: what a plan holds does not grow with the length of the paths
// that a job gives its files.
func TestPlanOfLongNames(t *testing.T) {
	const (
		files = 8000
		step  = 240 // bytes of a name
		depth = 15
	)
	s := newSandbox(t)
	asOwner(t, s, func(dir string) error {
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
	job := jobFiles{output: []string{"."}, hasOutput: true}
	before, _ := heap()
	p := plan{ctx: t.Context(), log: slog.New(slog.DiscardHandler), view: view{root: s.inside}, job: &job, pick: selectFiles(&job, Upload{}, nil), most: maxPlanned}
	must(t, s.payload.Do(p.make))
	after, _ := heap()
	if held := after - before; held > maxPlannedBytes+1<<20 || p.count < files+depth {
		t.Errorf("a plan of %d items holds %d KiB", p.count, held>>10)
	}
	sent := 0
	must(t, s.payload.Do(func() error { return p.each(func(item) error { sent++; return nil }) }))
	if int64(sent) != p.count {
		t.Errorf("%d of %d are sent", sent, p.count)
	}
}

// TestPlanOfOrdinaryNames: so many files with names as people give them are held,
// and the duplicates among them found.
func TestPlanOfOrdinaryNames(t *testing.T) {
	p := plan{most: maxPlanned, whole: true}
	for i := range maxPlanned {
		name := fmt.Sprintf("results/2026-11-22/sample-%06d/histogram-of-energies.root", i)
		p.hold(item{source: name, dest: dirName(name), url: "https://storage.example.org/user/project/" + name})
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

// TestListsTooLong: a list with more entries than its job can mean is not even
// taken apart, and the error says which one it is, and the bound.
func TestListsTooLong(t *testing.T) {
	long := strings.Repeat("a,", mostListed+1) + "a"
	for _, name := range []string{"TransferOutput", "TransferIntermediate", "FailureFiles", "TransferCheckpoint", "TransferOutputRemaps",
		"TransferInputRemaps", "EncryptOutputFiles", "DontEncryptOutputFiles"} {
		ad := classads.NewAd()
		text := long
		if strings.HasSuffix(name, "Remaps") {
			text = strings.Repeat("a=b;", mostListed+1)
		}
		ad.SetString(name, text)
		_, before := heap()
		j := readJobFiles(ad)
		_, after := heap()
		err := j.check(Output)
		e := (*TransferError)(nil)
		if !errors.As(err, &e) || e.Subcode != int(syscall.E2BIG) || !strings.Contains(e.Text, name) || !strings.Contains(e.Text, fmt.Sprint(mostListed)) {
			t.Errorf("%s: %v", name, err)
		}
		if after-before > 1<<20 {
			t.Errorf("%s: %d KiB are taken", name, (after-before)>>10)
		}
		ad.SetString(name, strings.Repeat("a-file-of-a-usual-name=b;,", 50_000))
		if j := readJobFiles(ad); j.tooMany != "" {
			t.Errorf("%s: a list of 50,000 names is too long", name)
		}
	}
}

// TestToldIsBounded: plugins of the job's can say more than anybody wants to know.
func TestToldIsBounded(t *testing.T) {
	var s stats
	before, _ := heap()
	for i := range 2000 {
		ad := classads.NewAd()
		ad.SetString("TransferError", strings.Repeat("x", 60<<10)+fmt.Sprint(i))
		s.ran(&PluginRun{Results: []*classads.Ad{ad}})
	}
	after, _ := heap()
	if held := after - before; held > mostTold+2<<20 || s.untold == 0 || len(s.plugins) == 0 {
		t.Errorf("%d results hold %d KiB, %d are left out", len(s.plugins), held>>10, s.untold)
	}
	runtime.KeepAlive(s)
}

// TestSpooledIsBounded: so is the list of the output's names.
func TestSpooledIsBounded(t *testing.T) {
	for length, listed := range map[int]bool{40: true, 250: false} {
		u := upload{session: &session{}}
		for i := range maxSpooled {
			u.spooled(fmt.Sprintf("%0*d", length, i))
		}
		if (len(u.stats.spooled) == maxSpooled) != listed || u.unnamed == listed {
			t.Errorf("%d names of %d bytes are listed, unnamed: %v", len(u.stats.spooled), length, u.unnamed)
		}
	}
}

// TestManifestIsRead: a manifest takes its own size when it is read.
func TestManifestIsRead(t *testing.T) {
	s := newSandbox(t)
	const size = 16 << 20
	asOwner(t, s, func(dir string) error { return os.WriteFile(dir+"/m", make([]byte, size), 0o600) })
	_, before := heap()
	must(t, s.payload.Do(func() error {
		text, err := readAll(s.inside, "m")
		if len(text) != size {
			t.Errorf("%d bytes are read", len(text))
		}
		return err
	}))
	if _, after := heap(); after-before > size+1<<20 {
		t.Errorf("%d KiB are taken", (after-before)>>10)
	}
}
