package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/sandbox"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
)

// gotten renders what the shadow received, sorted unless order matters.
func gotten(f *fakeShadow, order bool) []string {
	var out []string
	for _, r := range f.got {
		data := r.Data
		if len(data) > 60 {
			data = fmt.Sprintf("(%d bytes)", len(data))
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %o %s", r.Command, r.Name, r.Mode, data)))
	}
	if !order {
		slices.Sort(out)
	}
	return out
}

func TestUploadList(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{
		"out.txt": "data", "d1/empty": "", "d1/sub/x": "xx", "d2/y": "y", "_condor_stdout": big1(700_000),
		"unlisted": "no", "d1/.job.ad": "hidden", "with space": "w", "file1": "f", "d2/line\nfeed": "lf",
	})
	tr := f.transfer(s, plainJob+`TransferOutput = "out.txt, d1,d2/,with space , ./file1,out.txt"
EncryptOutputFiles = "out*"
DontEncryptOutputFiles = "*file1,out.txt"
`)
	result, err := tr.Upload(context.Background(), Upload{})
	if err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	want := []string{
		"2 out.txt 644 data", "6 d1 755", "1 d1/empty 644", "6 d1/sub 755", "1 d1/sub/x 644 xx", "1 y 644 y",
		"1 line\nfeed 644 lf", "1 with space 644 w", "3 file1 644 f", "1 _condor_stdout 644 (700000 bytes)",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, gotten(f, false)); diff != "" {
		t.Error(diff)
	}
	const bytes = 4 + 2 + 1 + 2 + 1 + 1 + 700_000
	if got := f.info.IntOr("SandboxSize", 0); got != bytes+4 { // out.txt is listed twice
		t.Errorf("SandboxSize %d, want %d", got, bytes+4)
	}
	if f.final != 1 || result.Bytes != bytes+2*mkdirBytes || result.Files != 10 {
		t.Errorf("final %d, result %+v", f.final, result)
	}
	slices.Sort(result.Spooled)
	if diff := cmp.Diff([]string{"d1", "file1", "out.txt", "with space", "y"}, result.Spooled); diff != "" {
		t.Error(diff)
	}
	stats, err := f.ackIn.GetAd("TransferStats")
	must(t, err)
	if got, want := stats.FormatNew(), ad(t, fmt.Sprintf(`[CedarFilesCount=10; CedarSizeBytes=%d; Protocols="cedar"]`, bytes+8)).FormatNew(); got != want {
		t.Errorf("stats %s, want %s", got, want)
	}
}

func TestUploadKeepsOrder(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": "a", "b": "b", "c/d": "d", "_condor_stdout": "o"})
	if _, err := f.transfer(s, plainJob+"TransferOutput = \"http://src/x?q=1,c,b,a\"\n").Upload(context.Background(), Upload{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"6 c 755", "1 c/d 644 d", "1 b 644 b", "1 a 644 a", "1 _condor_stdout 644 o", "5 x 0 http://src/x?q=1"}
	if diff := cmp.Diff(want, gotten(f, true)); diff != "" {
		t.Error(diff)
	}
}

func TestUploadNothing(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.waits = 1 // an empty list has no handshake
	job := strings.Replace(plainJob, `"results/out.txt"`, `"/dev/null"`, 1)
	result, err := f.transfer(s, job+"TransferOutput = \"\"\n").Upload(context.Background(), Upload{})
	if err != nil || result.Files != 0 {
		t.Fatal(result, err)
	}
	f.mustPlay()
	if f.asked != 0 {
		t.Error("there was a handshake")
	}
	// A failed job without any file: no connection at all.
	f.addr = "<127.0.0.1:1>"
	if _, err := f.transfer(s, job).Upload(context.Background(), Upload{Kind: jobfiles.Failure}); err != nil {
		t.Error(err)
	}
}

func TestUploadChangedFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		job    string
		upload Upload
		touch  func(dir string) error
		want   []string
	}{
		{"nothing", "", Upload{}, func(string) error { return nil }, nil},
		{"new", "", Upload{}, func(d string) error { return os.WriteFile(d+"/new", []byte("n"), 0o600) }, []string{"1 new 600 n"}},
		{"same size and second", "", Upload{}, func(d string) error { return os.WriteFile(d+"/in", []byte("IN"), 0o600) }, []string{"1 in 644 IN"}},
		{"time set back", "", Upload{}, func(d string) error {
			var st unix.Stat_t
			if err := unix.Stat(d+"/in", &st); err != nil {
				return err
			}
			if err := os.WriteFile(d+"/in", []byte("IN"), 0o600); err != nil {
				return err
			}
			return unix.UtimesNano(d+"/in", []unix.Timespec{st.Atim, st.Mtim})
		}, []string{"1 in 644 IN"}},
		{"mode", "", Upload{}, func(d string) error { return os.Chmod(d+"/in", 0o755) }, nil},
		{"second name", "", Upload{}, func(d string) error { return os.Link(d+"/in", d+"/again") }, []string{"1 again 644 in"}},
		{"mode and contents", "", Upload{}, func(d string) error {
			return errors.Join(os.Chmod(d+"/in", 0o600), os.WriteFile(d+"/in", []byte("IN"), 0o600))
		}, []string{"1 in 600 IN"}},
		{"time alone", "", Upload{}, func(d string) error { return os.Chtimes(d+"/in", time.Unix(7, 0), time.Unix(7, 0)) }, []string{"1 in 644 in"}},
		{"replaced", "", Upload{}, func(d string) error {
			return errors.Join(os.WriteFile(d+"/tmpname", []byte("in"), 0o644), os.Rename(d+"/tmpname", d+"/in"))
		}, []string{"1 in 644 in"}},
		{"executable and directories", "", Upload{}, func(d string) error {
			return errors.Join(os.WriteFile(d+"/run.sh", []byte("x"), 0), os.Mkdir(d+"/newdir", 0o755), os.WriteFile(d+"/newdir/f", nil, 0o644),
				os.Symlink("newdir", d+"/dirlink"), os.Symlink("in", d+"/filelink"), os.Symlink("/etc/passwd", d+"/out"),
				os.Symlink("nowhere", d+"/dangling"), unix.Mkfifo(d+"/fifo", 0o644))
		}, []string{"1 filelink 644 in"}},
		{"hidden files of the starter", "", Upload{Removed: []string{".chirp.config"}}, func(d string) error {
			return errors.Join(os.WriteFile(d+"/.update.ad", nil, 0o644), os.WriteFile(d+"/.chirp.config", nil, 0o644), os.WriteFile(d+"/.mine", nil, 0o644))
		}, []string{"1 .mine 644"}},
		{"added", "", Upload{Added: []string{"in", "dir"}}, func(string) error { return nil }, []string{"1 dir/f 644 f", "1 in 644 in", "6 dir 755"}},
		{"added and removed", "", Upload{Added: []string{"in"}, Removed: []string{"in"}}, func(string) error { return nil }, nil},
		{"intermediate", `TransferIntermediate = "in,other"`, Upload{}, func(string) error { return nil }, []string{"1 in 644 in"}},
		{"intermediate, not final", `TransferIntermediate = "in,other"`, Upload{Kind: jobfiles.Eviction}, func(string) error { return nil }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			f.items = []sent{
				{command: 1, name: "run.sh", mode: 0o755, data: "#!"}, {command: 1, name: "in", mode: 0o644, data: "in"},
				{command: 6, name: "dir", mode: 0o755}, {command: 1, name: "dir/f", mode: 0o644, data: "f"},
			}
			tr := f.transfer(s, plainJob+c.job+"\n")
			if _, err := tr.Download(context.Background()); err != nil {
				t.Fatal(err)
			}
			f.mustPlay()
			sandboxtest.As(t, s, c.touch)
			if _, err := tr.Upload(context.Background(), c.upload); err != nil {
				t.Fatal(err)
			}
			f.mustPlay()
			if diff := cmp.Diff(c.want, gotten(f, false)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUploadKinds(t *testing.T) {
	files := map[string]string{"out": "o", "log": "l", "ckpt": "c", "_condor_stdout": "s", "_condor_stderr": "e", "new": "n", ".starter.log": "L"}
	for _, c := range []struct {
		name  string
		job   string
		u     Upload
		final int64
		want  []string
	}{
		{"output", `TransferOutput = "out"`, Upload{}, 1, []string{"_condor_stdout", "out"}},
		{"output, stderr too", `TransferOutput = "out"` + "\nErr = \"err\"", Upload{}, 1, []string{"_condor_stderr", "_condor_stdout", "out"}},
		{"output, one file for both", `TransferOutput = "out"` + "\nErr = \"results/out.txt\"", Upload{}, 1, []string{"_condor_stdout", "out"}},
		{"streamed", `TransferOutput = "out"` + "\nStreamOut = true", Upload{}, 1, []string{"out"}},
		{"added", `TransferOutput = "out"`, Upload{Added: []string{"new", "out"}}, 1, []string{"_condor_stdout", "new", "out"}},
		{"starter's log", `TransferOutput = "out"` + "\nJobStarterDebug = \"D_FULLDEBUG\"\nJobStarterLog = \"sl\"", Upload{}, 1, []string{".starter.log", "_condor_stdout", "out"}},
		{"starter's log unwanted", `TransferOutput = "out,.starter.log"` + "\nJobStarterDebug = true", Upload{}, 1, []string{"_condor_stdout", "out"}},
		{"eviction", `TransferOutput = "out"`, Upload{Kind: jobfiles.Eviction}, 0, []string{"_condor_stdout", "out"}},
		{"failure", `TransferOutput = "out"` + "\nFailureFiles = \"log\"", Upload{Kind: jobfiles.Failure}, 1, []string{"_condor_stdout", "log"}},
		{"failure, nothing named", `TransferOutput = "out"`, Upload{Kind: jobfiles.Failure}, 1, []string{"_condor_stdout"}},
		{"checkpoint", `TransferOutput = "out"` + "\nTransferCheckpoint = \"ckpt log\"", Upload{Kind: jobfiles.Checkpoint}, 0, []string{"_condor_stdout", "ckpt", "log"}},
		{"checkpoint, nothing named", `TransferOutput = "out"`, Upload{Kind: jobfiles.Checkpoint}, 0, []string{"_condor_stdout", "out"}},
		{"remaps that are no URLs", `TransferOutput = "out"` + "\nTransferOutputRemaps = \"out=elsewhere/out\"", Upload{}, 1, []string{"_condor_stdout", "out"}},
		{"remap to URL, not final", `TransferOutput = "out"` + "\nTransferOutputRemaps = \"out=osdf://x/out\"", Upload{Kind: jobfiles.Eviction}, 0, []string{"_condor_stdout", "out"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			sandboxtest.Put(t, s, files)
			if _, err := f.transfer(s, plainJob+c.job+"\n").Upload(context.Background(), c.u); err != nil {
				t.Fatal(err)
			}
			f.mustPlay()
			var names []string
			for _, r := range f.got {
				names = append(names, r.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(c.want, names); diff != "" || f.final != c.final {
				t.Errorf("final %d\n%s", f.final, diff)
			}
		})
	}
}

func TestUploadItemFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		job   string
		leave func(s *sandbox.Sandbox, dir string) error
		code  int
		sub   int
		text  string
		got   []string // beside _condor_stdout
	}{
		{"missing", `TransferOutput = "none"`, nil, 13, 2,
			"STARTER at 127.0.0.1 failed to send file(s) to PEER: |Error: 1 total failures: first failure: reading from file SCRATCH/none: (errno 2) No such file or directory",
			[]string{"1 none 100000000"}},
		{"several", `TransferOutput = "none,none2,good"`, func(_ *sandbox.Sandbox, d string) error { return os.WriteFile(d+"/good", []byte("g"), 0o644) }, 13, 2,
			"|Error: 2 total failures: first failure: reading from file SCRATCH/none: (errno 2)", []string{"1 good 644 g", "1 none 100000000", "1 none2 100000000"}},
		{"unreadable", `TransferOutput = "f"`, func(_ *sandbox.Sandbox, d string) error { return os.WriteFile(d+"/f", []byte("x"), 0) }, 13, 13,
			"reading from file SCRATCH/f: (errno 13) Permission denied", []string{"1 f 100000000"}},
		{"unreadable directory", `TransferOutput = "d"`, func(_ *sandbox.Sandbox, d string) error { return os.Mkdir(d+"/d", 0) }, 13, 13,
			"reading from file SCRATCH/d: (errno 13) Permission denied", []string{"1 d 100000000", "6 d 0"}},
		{"link to directory", `TransferOutput = "l"`, func(_ *sandbox.Sandbox, d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.Symlink("d", d+"/l"))
		}, 13, 21,
			"reading from file SCRATCH/l: (errno 21) Is a directory- Transfer of symlinks to directories is not supported.", []string{"1 l 100000000"}},
		{"link to directory below", `TransferOutput = "d"`, func(_ *sandbox.Sandbox, d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.Symlink("..", d+"/d/l"))
		}, 13, 21, "SCRATCH/d/l: (errno 21)", []string{"1 d/l 100000000", "6 d 755"}},
		{"link out", `TransferOutput = "l"`, func(_ *sandbox.Sandbox, d string) error { return os.Symlink("/etc/passwd", d+"/l") }, 13, 1,
			"SCRATCH/l: (errno 1) Operation not permitted- The path or a symbolic link in it leads out of the job's sandbox", []string{"1 l 100000000"}},
		{"absolute name", `TransferOutput = "/etc/passwd"`, nil, 13, 2,
			"reading from file /etc/passwd: (errno 2) No such file or directory- The path or a symbolic link in it leads out of the job's sandbox", []string{"1 passwd 100000000"}},
		{"name above", `TransferOutput = "../htcondor"`, nil, 13, 2, "(errno 2)", []string{"1 htcondor 100000000"}},
		{"name above by a detour", `TransferOutput = "d/../../htcondor"`, func(_ *sandbox.Sandbox, d string) error { return os.Mkdir(d+"/d", 0o755) }, 13, 2, "(errno 2)", []string{"1 htcondor 100000000"}},
		{"through a link out", `TransferOutput = "up/htcondor/"`, func(_ *sandbox.Sandbox, d string) error { return os.Symlink("..", d+"/up") }, 13, 1, "(errno 1)", []string{"1 htcondor 100000000"}},
		{"dangling link", `TransferOutput = "l"`, func(_ *sandbox.Sandbox, d string) error { return os.Symlink("none", d+"/l") }, 13, 2, "SCRATCH/l: (errno 2)", []string{"1 l 100000000"}},
		{"link in circles", `TransferOutput = "l"`, func(_ *sandbox.Sandbox, d string) error { return os.Symlink("l", d+"/l") }, 13, 40,
			"(errno 40) Too many levels of symbolic links", []string{"1 l 100000000"}},
		{"destination URL", `OutputDestination = "s3://b/c?key"` + "\nTransferOutput = \"f,d\"", func(_ *sandbox.Sandbox, d string) error {
			return errors.Join(os.WriteFile(d+"/f", nil, 0o644), os.Mkdir(d+"/d", 0o755))
		}, 13, -1001, "|Error: 1 total failures: first failure: sending file SCRATCH/f: FILETRANSFER:1:FILETRANSFER: plugin for type s3 not found! ( URL file = s3://b/c?... )|",
			[]string{"999 f 0"}},
		{"remap to URL", `TransferOutputRemaps = "d = osdf://x/y ; q=r"` + "\nTransferOutput = \"d/f\"", func(_ *sandbox.Sandbox, d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.WriteFile(d+"/d/f", nil, 0o644))
		}, 13, -1001, "plugin for type osdf not found! ( URL file = osdf://x/y/f )|", []string{"999 f 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			sandboxtest.Put(t, s, map[string]string{"_condor_stdout": "o"})
			if c.leave != nil {
				sandboxtest.As(t, s, func(dir string) error { return c.leave(s, dir) })
			}
			if os.Geteuid() == 0 && !s.Payload().Switches() {
				t.Skip("root may read everything")
			}
			_, err := f.transfer(s, plainJob+c.job+"\n").Upload(context.Background(), Upload{})
			f.mustPlay()
			var v *Error
			if !errors.As(err, &v) {
				t.Fatalf("error %v", err)
			}
			text := strings.NewReplacer("SCRATCH", s.Scratch(), "PEER", f.addr).Replace(c.text)
			if v.Code != c.code || v.Subcode != c.sub || v.TryAgain || !strings.Contains(v.Text, text) {
				t.Errorf("got %d/%d again=%v %q\nwant %q", v.Code, v.Subcode, v.TryAgain, v.Text, text)
			}
			if f.ackIn.IntOr("Result", 9) != -1 || f.ackIn.IntOr("HoldReasonCode", 0) != int64(c.code) || f.ackIn.IntOr("HoldReasonSubCode", 0) != int64(c.sub) {
				t.Errorf("ack %s", f.ackIn.FormatNew())
			}
			got := slices.DeleteFunc(gotten(f, false), func(x string) bool { return strings.Contains(x, jobfiles.StdoutName) })
			if diff := cmp.Diff(c.got, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUploadFollowsWhatStaysInside(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{
		"data/real": "real", "rel": "->data/real", "abs": "->" + s.Scratch() + "/data/real", "dir": "->data",
		"tree/inner": "->../data/real", "tree/broken": "->nowhere", "tree/out": "->/etc/passwd", "tree/loop": "->loop", "_condor_stdout": "o",
		"flat/a": "a", "flatlink": "->flat",
	})
	sandboxtest.As(t, s, func(d string) error { return unix.Mkfifo(d+"/tree/fifo", 0o600) })
	l, err := net.Listen("unix", s.Scratch()+"/tree/sock")
	must(t, err)
	defer l.Close()
	job := plainJob + `TransferOutput = "rel,abs,dir/real,tree,tree/fifo,tree/sock,flatlink/,` + s.Scratch() + `/flat"` + "\n"
	if _, err := f.transfer(s, job).Upload(context.Background(), Upload{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 _condor_stdout 644 o", "1 a 644 a", "1 abs 644 real", "1 flat/a 644 a", "1 real 644 real", "1 rel 644 real", "1 tree/inner 644 real", "6 flat 755", "6 tree 755"}
	if diff := cmp.Diff(want, gotten(f, false)); diff != "" {
		t.Error(diff)
	}
}

func TestUploadOutside(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	outside := filepath.Join(filepath.Dir(s.Dir()), "outside")
	must(t, os.WriteFile(outside, []byte("there"), 0o644))
	secret := filepath.Join(filepath.Dir(s.Dir()), "secret")
	must(t, os.WriteFile(secret, []byte("nobody's"), 0)) // whoever the payload is
	sandboxtest.Put(t, s, map[string]string{"l": "->" + outside, "_condor_stdout": "o", "t/l": "->" + outside})
	tr := f.transfer(s, plainJob+`TransferOutput = "l,t,../../outside,`+outside+`,`+secret+`"`+"\n")
	tr.config.Outside = true
	_, err := tr.Upload(context.Background(), Upload{})
	var v *Error
	if !errors.As(err, &v) || v.Subcode != 13 || !strings.Contains(v.Text, "1 total failures") {
		t.Errorf("secret: %v", err)
	}
	want := []string{"1 _condor_stdout 644 o", "1 l 644 there", "1 outside 644 there", "1 secret 100000000", "1 t/l 644 there", "6 t 755"}
	if diff := cmp.Diff(want, gotten(f, false)); diff != "" {
		t.Error(diff)
	}
}

func TestUploadPreservesRelativePaths(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a/b/c": "c", "a/b/d": "d", "a/e/f/g": "g", "out3/x": "x", "top": "t", "_condor_stdout": "o", "h/i/j": "j", "void/": "", "bare/": "", "k/l/in/": ""})
	job := plainJob + `PreserveRelativePaths = true
TransferOutput = "a/b/c,./top,a/e,out3/,void/,bare,k/l/,a/b/d,` + s.Scratch() + `/h"
`
	if _, err := f.transfer(s, job).Upload(context.Background(), Upload{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"6 a 755", "6 a/b 755", "1 a/b/c 644 c", "1 top 644 t", "6 a/e 755", "6 a/e/f 755", "1 a/e/f/g 644 g",
		"6 out3 755", "1 out3/x 644 x",
		// Only the contents of void/ are requested, and it is empty.
		"6 bare 755", "6 k 755", "6 k/l 755", "6 k/l/in 755", "1 a/b/d 644 d", "6 h 755", "6 h/i 755", "1 h/i/j 644 j", "1 _condor_stdout 644 o",
	}
	if diff := cmp.Diff(want, gotten(f, true)); diff != "" {
		t.Error(diff)
	}
}

func TestUploadLimit(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.limit = 1 << 20
	sandboxtest.Put(t, s, map[string]string{"a": big1(1000), "b": big1(3 << 20), "c": "ccc", "_condor_stdout": "", "d/": ""})
	_, err := f.transfer(s, plainJob+"TransferOutput = \"a,b,c,d\"\n").Upload(context.Background(), Upload{})
	f.mustPlay()
	var v *Error
	if !errors.As(err, &v) || v.Code != 33 || v.Subcode != 0 || v.TryAgain || !strings.Contains(v.Text,
		"|Error: 2 total failures: first failure: sending file "+s.Scratch()+"/b: max total download bytes exceeded (max=1 MB, this file=3 MB)") {
		t.Fatalf("error %v", err)
	}
	var sizes []int
	for _, r := range f.got {
		sizes = append(sizes, len(r.Data))
	}
	if diff := cmp.Diff([]int{1000, 1<<20 - 1000, 0, 0, 0}, sizes); diff != "" {
		t.Error(diff)
	}
}
