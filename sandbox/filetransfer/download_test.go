package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/sandbox/sandboxtest"
)

const plainJob = `
Cmd = "/home/user/run.sh"
Out = "results/out.txt"
Err = "/dev/null"
StreamOut = false
StreamErr = false
WhenToTransferOutput = "ON_EXIT"
`

func ad(t testing.TB, text string) *classads.Ad {
	t.Helper()
	a, err := classads.ParseNew(text)
	must(t, err)
	return a
}

// contents describes a tree with what is in its files.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		text := fmt.Sprintf("%o", st.Mode&0o7777)
		switch {
		case info.IsDir():
			rel += "/"
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if len(data) > 100 {
				data = fmt.Appendf(nil, "%d bytes", len(data))
			}
			text += " " + string(data)
		}
		if owner := sandboxtest.Owner(); owner.Switches() && int(st.Uid) != owner.UID {
			text += " not the payload's"
		}
		out[rel] = text
		return nil
	}))
	return out
}

func big1(n int) string { return strings.Repeat("0123456789abcdef", n/16+1)[:n] }

func TestDownload(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			f.plain = plain
			f.items = []sent{
				{command: 1, name: "in.txt", mode: 0o640, data: "hello"},
				{command: 1, name: "empty", mode: 0o644},
				{command: 1, name: "run.sh", mode: 0o750, data: "#!/bin/sh\n"},
				{command: 2, name: "secret", mode: 0o600, data: "s"},
				{command: 3, name: "public", mode: 0, data: "p"},
				{command: 17, name: "./future", mode: 0o444, data: "f"},
				{command: 1, name: "missing", mode: 1 << 24},
				{command: 6, name: "d", mode: 0o40751},
				{command: 6, name: "d", mode: 0o700},
				{command: 6, name: "d/e", mode: 0},
				{command: 1, name: "d/e/big", mode: 0o4755, data: big1(1<<20 + 7)},
				{command: 1, name: "new/dir/x", mode: 0o644, data: "x"},
				{command: 999, name: "", ad: ad(t, `[SubCommand=8; Tag="t"; ReuseList={[FileName="a"]}]`)},
				{command: 999, name: "", ad: ad(t, `[SubCommand=77]`)},
			}
			result, err := f.transfer(s, plainJob).Download(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			f.mustPlay()
			want := map[string]string{
				"in.txt": "640 hello", "empty": "644 ", "run.sh": "755 #!/bin/sh\n", "secret": "600 s", "public": "600 p",
				"future": "444 f", "d/": "751", "d/e/": "700", "d/e/big": "755 1048583 bytes", "new/": "700", "new/dir/": "700", "new/dir/x": "644 x",
			}
			if diff := cmp.Diff(want, contents(t, s.Scratch())); diff != "" {
				t.Error(diff)
			}
			const bytes = 5 + 10 + 1 + 1 + 1 + 1<<20 + 7 + 1
			if result.Bytes != bytes || result.Files != len(f.items) {
				t.Errorf("result %+v", result)
			}
			stats, err := f.ackIn.GetAd("TransferStats")
			must(t, err)
			if got, want := stats.FormatNew(), ad(t, fmt.Sprintf(`[CedarFilesCount=6; CedarSizeBytes=%d; Protocols="cedar"]`, bytes)).FormatNew(); got != want {
				t.Errorf("stats %s, want %s", got, want)
			}
			if f.ackIn.IntOr("Result", 9) != 0 || f.key != "1#secret" || f.asked != 300 {
				t.Errorf("ack %s, key %q, alive interval %d", f.ackIn.FormatNew(), f.key, f.asked)
			}
			if got := f.answered.FormatNew(); got != ad(t, "[Result=1]").FormatNew() {
				t.Errorf("answer to ReuseInfo: %s", got)
			}
		})
	}
}

func TestDownloadNothing(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	result, err := f.transfer(s, plainJob).Download(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	if got, want := result.Stats.FormatNew(), ad(t, `[Protocols=""]`).FormatNew(); got != want {
		t.Errorf("stats %s", got)
	}
}

func TestDownloadHandshake(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.alive, f.waits, f.once = 20, 3, true
	f.items = []sent{{command: 6, name: "d", mode: 0o755}, {command: 1, name: "a", data: "a"}, {command: 1, name: "b", data: "b"}}
	f.once = false
	waited := 0
	tr := f.transfer(s, plainJob)
	tr.config.Progress = func(p Progress) {
		if p.Waiting {
			waited++
		}
	}
	if _, err := tr.Download(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	if waited != 3 {
		t.Errorf("told of %d waits, want 3", waited)
	}
}

// Failures of single items: the rest arrives, and the first failure is reported.
func TestDownloadItemFails(t *testing.T) {
	last := sent{command: 1, name: "last", mode: 0o644, data: "last"}
	blocked := []sent{{command: 1, name: "file", mode: 0o644, data: "x"}}
	for _, c := range []struct {
		name  string
		job   string
		items []sent
		code  int
		sub   int
		text  string
	}{
		{"absolute path", "", []sent{{command: 1, name: "/etc/evil", data: "x"}}, 12, 1, "Attempt to write to illegal sandbox path: /etc/evil"},
		{"dot dot", "", []sent{{command: 1, name: "a/../../evil", data: big1(600000)}}, 12, 1, "illegal sandbox path"},
		{"backslash", "", []sent{{command: 6, name: `..\evil`, mode: 0o755}}, 12, 1, "illegal sandbox path"},
		{"drive", "", []sent{{command: 1, name: `C:\evil`}}, 12, 1, "illegal sandbox path"},
		{"empty name", "", []sent{{command: 1, name: ""}}, 12, 1, "illegal sandbox path"},
		{"file as directory", "", append(blocked, sent{command: 1, name: "file/x", data: "y"}), 12, 20,
			"STARTER at 127.0.0.1 - |Error: writing to file SCRATCH/file/x: (errno 20) Not a directory"},
		{"directory as file", "", []sent{{command: 6, name: "d", mode: 0o755}, {command: 1, name: "d", data: big1(700000)}}, 12, 21,
			"|Error: writing to file SCRATCH/d: (errno 21) Is a directory"},
		{"mkdir below file", "", append(blocked, sent{command: 6, name: "file/d", mode: 0o755}), 12, 20,
			"STARTER at 127.0.0.1 failed to create directory SCRATCH/file/d: Not a directory (errno 20)"},
		{"name too long", "", []sent{{command: 1, name: strings.Repeat("n", 300), data: "x"}}, 12, 36, "(errno 36) File name too long"},
		{"path too long", "", []sent{{command: 1, name: strings.Repeat("d/", 4000) + "x", data: "x"}}, 12, 36, "(errno 36) File name too long"},
		{"url", "", []sent{{command: 5, name: "f", url: "osdf://x/f?token=abc"}}, 12, -1001,
			"|Error: receiving file SCRATCH/f: FILETRANSFER:1:FILETRANSFER: plugin for type osdf not found! ( URL file = osdf://x/f?... )|"},
		{"compound scheme", "", []sent{{command: 5, name: "f", url: "a+b-HTTPS://x"}}, 12, -1001, "plugin for type https not found"},
		{"two failures", "", []sent{{command: 1, name: "/one"}, {command: 1, name: "/two"}}, 12, 1, "/one"},
		{"remap to url", `TransferInputRemaps = "a=http://x/y"`, []sent{{command: 1, name: "a", data: "x"}}, 12, 1, "resulted in a URL: http://x/y"},
		{"remap cycle", `TransferInputRemaps = "a=b;b=a"`, []sent{{command: 1, name: "a", data: "x"}}, 12, 1, "cycle"},
		{"remap outside", `TransferInputRemaps = "a=/etc/a"`, []sent{{command: 1, name: "a", data: "x"}}, 12, 13, "(errno 13) Permission denied- The path or a symbolic link in it leads out of the job's sandbox"},
		{"remap above", `TransferInputRemaps = "a=../a"`, []sent{{command: 1, name: "a", data: "x"}}, 12, 13, "(errno 13) Permission denied- The path"},
		{"directory remapped above", `TransferInputRemaps = "a=../a"`, []sent{{command: 6, name: "a", mode: 0o755}}, 12, 13, "Permission denied (errno 13)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			f.items = append(c.items, last)
			result, err := f.transfer(s, plainJob+c.job+"\n").Download(context.Background())
			f.mustPlay()
			var v *Error
			if !errors.As(err, &v) {
				t.Fatalf("error %v", err)
			}
			text := strings.ReplaceAll(c.text, "SCRATCH", s.Scratch())
			if v.Code != c.code || v.Subcode != c.sub || v.TryAgain || !strings.Contains(v.Text, text) {
				t.Errorf("got %d/%d again=%v %q", v.Code, v.Subcode, v.TryAgain, v.Text)
			}
			if r := f.ackIn.IntOr("Result", 9); r != -1 || f.ackIn.IntOr("HoldReasonCode", 0) != int64(c.code) ||
				f.ackIn.IntOr("HoldReasonSubCode", 0) != int64(c.sub) || f.ackIn.StringOr("HoldReason", "") != v.Text {
				t.Errorf("ack %s", f.ackIn.FormatNew())
			}
			if got := contents(t, s.Scratch())["last"]; got != "644 last" {
				t.Errorf("last file: %q", got)
			}
			if result == nil || result.Files == 0 {
				t.Errorf("result %+v", result)
			}
		})
	}
}

func TestDownloadReplacesWhatIsInTheWay(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.items = []sent{
		{command: 1, name: "x", mode: 0o600, data: "long enough to be seen"}, {command: 1, name: "x", mode: 0o600, data: "short"},
		{command: 1, name: "d", data: "a file"}, {command: 6, name: "d", mode: 0o755}, {command: 1, name: "d/in", mode: 0o600, data: "y"},
		{command: 1, name: historicExec, mode: 0o644, data: "exec"},
	}
	if _, err := f.transfer(s, plainJob).Download(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x": "600 short", "d/": "755", "d/in": "600 y", "run.sh": "755 exec"}
	if diff := cmp.Diff(want, contents(t, s.Scratch())); diff != "" {
		t.Error(diff)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
