package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// While names are opened, a process of the payload exchanges files and directories for
// links to those of others, again and again. Only files of the payload are read.
func TestNamesAreSwappedMeanwhile(t *testing.T) {
	s := sandboxtest.New(t)
	outside := filepath.Join(filepath.Dir(s.Dir()), "treasure")
	must(t, os.MkdirAll(outside, 0o755))
	const gold = "gold" // as long as what is the payload's
	must(t, os.WriteFile(outside+"/loot", []byte(gold), 0o644))
	sandboxtest.Put(t, s, map[string]string{
		"loot": "mine", "link": "->" + outside + "/loot", "dir/loot": "mine", "dirlink": "->" + outside,
		"up": "->../../treasure/loot", "a/b/c/loot": "mine", "x": "->../../../../treasure", "_condor_stdout": "o",
	})
	stop, swapping := make(chan struct{}), sync.WaitGroup{}
	for _, pair := range [][2]string{{"loot", "link"}, {"dir", "dirlink"}, {"a/b/c", "x"}, {"link", "up"}} {
		swapping.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, s.Scratch()+"/"+pair[0], unix.AT_FDCWD, s.Scratch()+"/"+pair[1], unix.RENAME_EXCHANGE)
				}
			}
		})
	}
	defer func() { close(stop); swapping.Wait() }()
	names := []string{"loot", "link", "dir/loot", "dirlink/loot", "a/b/c/loot", "x/loot", "up", "a/b/../b/c/loot"}
	opened, refused := 0, 0
	for range 500 {
		for _, name := range names {
			data, err := s.ReadFile(name, 100)
			switch {
			case err != nil:
				refused++
			case string(data) == "mine":
				opened++
			default:
				t.Fatalf("%s: read %q", name, data)
			}
		}
	}
	if opened == 0 || refused == 0 {
		t.Errorf("%d were opened and %d refused: nothing was swapped", opened, refused)
	}
	for range 20 {
		f := newShadow(t)
		_, err := f.transfer(s, plainJob+"TransferOutput = \"dir,dirlink,a,x,"+strings.Join(names, ",")+"\"\n").Upload(t.Context(), Upload{})
		f.mustPlay()
		var v *Error
		if err != nil && !errors.As(err, &v) {
			t.Fatal(err)
		}
		for _, r := range f.got {
			if r.Data != "" && r.Data != "mine" && r.Data != "o" {
				t.Fatalf("%s was sent with %q", r.Name, r.Data)
			}
		}
	}
}

// Files that are not the payload's, in its own directory: made by container-root
// or by another user's process, closed, marked, or with a second name outside.
func TestUploadOfFilesOfOthers(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	if !s.Payload().Switches() {
		t.Skip("needs root")
	}
	sandboxtest.Put(t, s, map[string]string{"mine": "m", "_condor_stdout": "o"})
	in := func(name string) string { return filepath.Join(s.Scratch(), name) }
	must(t, os.WriteFile(in("roots"), []byte("r"), 0o600))
	must(t, os.WriteFile(in("open"), []byte("p"), 0o644))
	must(t, os.WriteFile(in("setuid"), []byte("s"), 0o644))
	must(t, os.Chmod(in("setuid"), os.ModeSetuid|0o755))
	must(t, os.Mkdir(in("rootsdir"), 0o700))
	must(t, os.WriteFile(in("rootsdir/f"), []byte("x"), 0o644))
	secret := filepath.Join(filepath.Dir(s.Dir()), "secret")
	must(t, os.WriteFile(secret, []byte("root's"), 0o600))
	must(t, os.Link(secret, in("hard")))
	_, err := f.transfer(s, plainJob+"TransferOutput = \"mine,roots,open,setuid,rootsdir,hard\"\n").Upload(t.Context(), Upload{})
	f.mustPlay()
	var v *Error
	if !errors.As(err, &v) || v.Code != 13 || v.Subcode != int(unix.EACCES) || v.TryAgain || !strings.Contains(v.Text, "3 total failures: first failure: reading from file "+in("roots")) {
		t.Errorf("error %v", err)
	}
	want := []string{"1 _condor_stdout 644 o", "1 hard 100000000", "1 mine 644 m", "1 open 644 p", "1 roots 100000000", "1 rootsdir 100000000", "1 setuid 755 s", "6 rootsdir 700"}
	if diff := cmp.Diff(want, gotten(f, false)); diff != "" {
		t.Error(diff)
	}
}

// A sparse file of a terabyte counts with its full length against the access point's
// limit.
func TestUploadOfHoles(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.limit = 1 << 20
	sandboxtest.Put(t, s, map[string]string{"after": "a", "_condor_stdout": ""})
	sandboxtest.As(t, s, func(dir string) error {
		return errors.Join(os.WriteFile(dir+"/sparse", nil, 0o644), os.Truncate(dir+"/sparse", 1<<40))
	})
	result, err := f.transfer(s, plainJob+"TransferOutput = \"sparse,after\"\n").Upload(t.Context(), Upload{})
	f.mustPlay()
	var v *Error
	if !errors.As(err, &v) || v.Code != 33 || v.Subcode != 0 || v.TryAgain || !strings.Contains(v.Text, "(max=1 MB, this file=1048576 MB)") {
		t.Errorf("error %v", err)
	}
	if size := f.info.IntOr("SandboxSize", 0); size != 1<<40+1 || result.Bytes != 1<<20 {
		t.Errorf("SandboxSize %d, %d bytes sent", size, result.Bytes)
	}
}

// Directories below directories, as far as a path can name them, and further.
func TestUploadOfDeepTrees(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"_condor_stdout": "o"})
	step := strings.Repeat("d", 200)
	sandboxtest.As(t, s, func(dir string) error {
		narrow := strings.Repeat("/n", 1500)
		if err := os.MkdirAll(dir+"/narrow"+narrow, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(dir+"/narrow"+narrow+"/f", []byte("deep"), 0o644); err != nil {
			return err
		}
		fd, err := unix.Open(dir, unix.O_PATH, 0)
		for range 25 {
			if err != nil {
				return err
			}
			if err := unix.Mkdirat(fd, step, 0o755); err != nil {
				return err
			}
			up := fd
			fd, err = unix.Openat(up, step, unix.O_PATH, 0)
			_ = unix.Close(up)
		}
		return errors.Join(err, unix.Close(fd))
	})
	result, err := f.transfer(s, plainJob+"TransferOutput = \"narrow,"+step+"\"\n").Upload(t.Context(), Upload{})
	must(t, err)
	f.mustPlay()
	deepest := slices.ContainsFunc(f.got, func(r received) bool { return strings.HasSuffix(r.Name, "/n/n/f") && r.Data == "deep" })
	levels := (unix.PathMax - 1 - len(s.Scratch())) / 201
	if want := 1 + 1 + 1500 + 1 + levels; len(f.got) != want || !deepest {
		t.Errorf("%d items arrived, want %d; the deepest file: %v", len(f.got), want, deepest)
	}
	if want := "(File name too long)."; !strings.HasSuffix(result.LeftOut, want) || len(result.LeftOut) > 400 {
		t.Errorf("left out: %s", result.LeftOut)
	}
}

// With more files than may be returned, the job is held for that, and what it
// said is returned.
func TestUploadOfTooManyFiles(t *testing.T) {
	files := map[string]string{"_condor_stdout": "o"}
	for i := range 20 {
		files[fmt.Sprintf("d/%d", i)] = "x"
	}
	for _, c := range []struct {
		name  string
		most  int64
		job   string
		fails bool
		got   []string
	}{
		{"too many", 21, `TransferOutput = "d"`, true, []string{"1 _condor_stdout 644 o"}},
		{"as many", 22, `TransferOutput = "d"`, false, nil},
		{"no bound", 0, `TransferOutput = "d"`, false, nil},
		{"too many, no output", 20, "Out = \"/dev/null\"\nTransferOutput = \"d\"", true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			sandboxtest.Put(t, s, files)
			tr := f.transfer(s, plainJob+c.job+"\n")
			tr.config.MaxOutput = c.most
			_, err := tr.Upload(context.Background(), Upload{})
			f.mustPlay()
			var v *Error
			if !c.fails {
				if err != nil || len(f.got) != 22 {
					t.Errorf("%d items, %v", len(f.got), err)
				}
				return
			}
			if !errors.As(err, &v) || v.Code != 13 || v.Subcode != int(unix.E2BIG) || v.TryAgain || !strings.Contains(v.Text,
				fmt.Sprintf("|Error: 1 total failures: first failure: too many files to return: more than %d files and directories, which is what this execution point allows (POD_STARTER_MAX_OUTPUT_FILES)", c.most)) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(c.got, gotten(f, false)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A job whose standard output has become such a tree has nothing to return.
func TestUploadOfTooManyFilesInPlaceOfStdout(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"_condor_stdout/a": "", "_condor_stdout/b": "", "_condor_stdout/c": ""})
	tr := f.transfer(s, plainJob+"TransferOutput = \"\"\n")
	tr.config.MaxOutput = 3
	_, err := tr.Upload(context.Background(), Upload{})
	var v *Error
	if !errors.As(err, &v) || v.Code != 13 || v.Subcode != int(unix.E2BIG) || v.TryAgain {
		t.Errorf("error %v", err)
	}
}

// Names with control sequences for the terminal of the hold reason's reader.
func TestUploadOfOddNamesInReasons(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"_condor_stdout": "o"})
	sandboxtest.As(t, s, func(dir string) error { return os.Mkdir(dir+"/d", 0o755) })
	odd := "\x1b[31m\r\xff\n\x7f"
	sandboxtest.As(t, s, func(dir string) error { return os.WriteFile(dir+"/d/"+odd, nil, 0) })
	if os.Geteuid() == 0 && !s.Payload().Switches() {
		t.Skip("root may read everything")
	}
	_, err := f.transfer(s, plainJob+"TransferOutput = \"d\"\n").Upload(t.Context(), Upload{})
	f.mustPlay()
	var v *Error
	if !errors.As(err, &v) || !strings.Contains(v.Text, `/d/\x1b[31m\x0d`+"\xff"+`\n\x7f: (errno 13)`) || f.ackIn.StringOr("HoldReason", "") != v.Text {
		t.Errorf("error %q", err)
	}
}

// A volume without room: the first file that does not fit is reported, as with
// HTCondor, what fits arrives, and the sandbox can be written to afterwards.
func TestDownloadToFullVolume(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	execute := sandboxtest.ExecuteDir(t)
	must(t, unix.Mount("tmpfs", execute, "tmpfs", 0, "size=512k,nr_inodes=32,mode=0755"))
	t.Cleanup(func() { must(t, unix.Unmount(execute, unix.MNT_DETACH)) })
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, PID: 4711, Nested: true, Condor: sandbox.Self(), Payload: sandboxtest.Owner()})
	must(t, err)
	download := func(items []sent) (*fakeShadow, *Error) {
		f := newShadow(t)
		f.items = items
		_, err := f.transfer(s, plainJob).Download(context.Background())
		f.mustPlay()
		var v *Error
		if !errors.As(err, &v) || v.Code != 12 || v.Subcode != int(unix.ENOSPC) || v.TryAgain {
			t.Fatalf("error %v", err)
		}
		if f.ackIn.IntOr("HoldReasonSubCode", 0) != int64(unix.ENOSPC) || f.ackIn.IntOr("Result", 0) != -1 {
			t.Errorf("ack %s", f.ackIn.FormatNew())
		}
		return f, v
	}
	_, v := download([]sent{
		{command: 1, name: "small", mode: 0o644, data: "fits"}, {command: 1, name: "large", mode: 0o644, data: big1(3 << 20)},
		{command: 1, name: "last", mode: 0o644, data: big1(100_000)},
	})
	if want := "|Error: writing to file " + s.Scratch() + "/large: (errno 28) No space left on device"; !strings.Contains(v.Text, want) {
		t.Errorf("%q, want %q in it", v.Text, want)
	}
	must(t, s.WriteFile(".job.ad", []byte("x = 1\n"), 0o600))
	got := contents(t, s.Scratch())
	if diff := cmp.Diff(map[string]string{"small": "644 fits", "last": "644 100000 bytes", ".job.ad": "600 x = 1\n"}, got); diff != "" {
		t.Error(diff)
	}
	var many []sent
	for i := range 40 {
		many = append(many, sent{command: 6, name: fmt.Sprintf("d%d", i), mode: 0o755})
	}
	_, v = download(many)
	if want := "failed to create directory " + s.Scratch() + "/d"; !strings.Contains(v.Text, want) || !strings.HasSuffix(v.Text, "No space left on device (errno 28)") {
		t.Errorf("%q, want %q in it", v.Text, want)
	}
	must(t, s.Remove(context.Background()))
}
