package filetransfer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"podstarter/classads"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
)

// heap is what is held now, and what has ever been asked for, in bytes.
func heap() (held, asked int64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.TotalAlloc)
}

// TestListsTooLong: a list with too many entries is not even parsed, and the error
// names the list and the bound.
func TestListsTooLong(t *testing.T) {
	long := strings.Repeat("a,", jobfiles.MaxListed+1) + "a"
	for _, name := range []string{"TransferOutput", "TransferIntermediate", "FailureFiles", "TransferCheckpoint", "TransferOutputRemaps",
		"TransferInputRemaps", "EncryptOutputFiles", "DontEncryptOutputFiles"} {
		ad := classads.NewAd()
		text := long
		if strings.HasSuffix(name, "Remaps") {
			text = strings.Repeat("a=b;", jobfiles.MaxListed+1)
		}
		ad.SetString(name, text)
		_, before := heap()
		j := jobfiles.Read(ad)
		_, after := heap()
		err := refusal(&j, jobfiles.Output)
		e := (*Error)(nil)
		if !errors.As(err, &e) || e.Subcode != int(syscall.E2BIG) || !strings.Contains(e.Text, name) || !strings.Contains(e.Text, fmt.Sprint(jobfiles.MaxListed)) {
			t.Errorf("%s: %v", name, err)
		}
		if after-before > 1<<20 {
			t.Errorf("%s: %d KiB are taken", name, (after-before)>>10)
		}
		ad.SetString(name, strings.Repeat("a-file-of-a-usual-name=b;,", 50_000))
		if j := jobfiles.Read(ad); j.TooMany != "" {
			t.Errorf("%s: a list of 50,000 names is too long", name)
		}
	}
}

// TestToldIsBounded: what a job's own plugins report is bounded.
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

// TestSpooledIsBounded: the list of the output's names is bounded.
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

// TestManifestIsRead: reading a manifest takes no more memory than its own size.
func TestManifestIsRead(t *testing.T) {
	s := sandboxtest.New(t)
	const size = 16 << 20
	sandboxtest.As(t, s, func(dir string) error { return os.WriteFile(dir+"/m", make([]byte, size), 0o600) })
	_, before := heap()
	must(t, s.Payload().Do(func() error {
		text, err := readAll(s.Root(), "m")
		if len(text) != size {
			t.Errorf("%d bytes are read", len(text))
		}
		return err
	}))
	if _, after := heap(); after-before > size+1<<20 {
		t.Errorf("%d KiB are taken", (after-before)>>10)
	}
}
