package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/sandbox"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/manifest"
	"podstarter/sandbox/sandboxtest"
)

// fakePlugin is a plugin for some methods. It keeps what it was given.
type fakePlugin struct {
	methods []string
	single  bool
	path    string
	stored  [][]URLFile
	read    []string // contents of the files, as the plugin found them
	class   PluginClass
	outcome func(files []URLFile) *PluginRun
}

func (f *fakePlugin) For(_ context.Context, url string) (Plugin, *PluginFailure) {
	if !slices.Contains(f.methods, jobfiles.URLMethod(url)) {
		return nil, &PluginFailure{Subcode: SubcodeNoPlugin, Text: noPlugin(url)}
	}
	return f, nil
}

func (f *fakePlugin) Path() string { return f.path }
func (f *fakePlugin) Many() bool   { return !f.single }

func (f *fakePlugin) Run(ctx context.Context, class PluginClass, files []URLFile, _ string) (*PluginRun, error) {
	f.class = class
	f.stored = append(f.stored, slices.Clone(files))
	for _, file := range files {
		data, _ := os.ReadFile(file.Path)
		f.read = append(f.read, string(data))
	}
	if f.outcome != nil {
		return f.outcome(files), context.Cause(ctx)
	}
	return wellStored(files), nil
}

// wellStored is the report of a plugin that succeeds.
func wellStored(files []URLFile) *PluginRun {
	run := &PluginRun{Results: []*classads.Ad{classads.NewAd()}}
	for _, file := range files {
		run.Reports = append(run.Reports, PluginReport{URL: file.URL, FileName: jobfiles.BaseName(file.Path), Success: true, Judged: true, Protocol: "KEEP", Sized: true, Bytes: 10})
	}
	return run
}

// storing is a Transfer with a plugin for keep://.
func storing(t *testing.T, f *fakeShadow, s *sandbox.Sandbox, job string) (*Transfer, *fakePlugin) {
	t.Helper()
	tr := f.transfer(s, plainJob+job)
	p := &fakePlugin{methods: []string{"keep", "https"}, path: "/libexec/keep_plugin"}
	tr.config.Plugins, tr.config.SignURLs = p, true
	return tr, p
}

// told renders what the shadow heard, with what matters of ads.
func told(f *fakeShadow) []string {
	var out []string
	for _, r := range f.got {
		line := fmt.Sprintf("%d %s", r.Command, r.Name)
		if r.Ad != "" {
			ad, err := classads.ParseOld(r.Ad)
			if err != nil {
				f.t.Fatal(err)
			}
			line += fmt.Sprintf(": %s to %s, result %d", ad.StringOr("Filename", "?"), ad.StringOr("OutputDestination", "?"), ad.IntOr("Result", -99))
			if why := ad.StringOr("ErrorString", ""); why != "" {
				line += ", " + why
			}
			if ad.BoolOr("CheckpointURL", false) {
				line += ", of a checkpoint"
			}
		}
		out = append(out, line)
	}
	return out
}

func urls(files []URLFile) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.URL)
	}
	return out
}

func TestOutputDestination(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": "A", "d/b": "B", "d/sub/c": "C", "_condor_stdout": "o"})
	tr, p := storing(t, f, s, "OutputDestination = \"keep://host/base/\"\nTransferOutput = \"a,d\"\nTransferOutputRemaps = \"a=keep://never\"\n")
	result, err := tr.Upload(context.Background(), Upload{})
	if err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	want := []string{
		"999 a: a to keep://host/base/a, result 0",
		"999 d/b: b to keep://host/base/d/b, result 0",
		"999 d/sub/c: c to keep://host/base/d/sub/c, result 0",
		"1 _condor_stdout",
	}
	if diff := cmp.Diff(want, sortedBut(told(f), 3)); diff != "" {
		t.Error(diff)
	}
	if len(p.stored) != 1 || len(p.stored[0]) != 3 {
		t.Errorf("runs of the plugin: %v", p.stored)
	}
	slices.Sort(p.read)
	if diff := cmp.Diff([]string{"A", "B", "C"}, p.read); diff != "" {
		t.Errorf("the plugin has not found the files: %s", diff)
	}
	stats, err := f.ackIn.GetAd("TransferStats")
	must(t, err)
	if got, want := stats.FormatNew(), ad(t, `[CedarFilesCount=1; CedarSizeBytes=1; KEEPFilesCount=3; KEEPSizeBytes=30; Protocols="cedar,KEEP"]`).FormatNew(); got != want {
		t.Errorf("stats %s, want %s", got, want)
	}
	if result.Bytes != 31 || result.Files != 4 || len(result.Spooled) != 0 || len(result.Plugins) != 1 {
		t.Errorf("%+v", result)
	}
}

// sortedBut sorts the first n lines, which come in the order of a directory.
func sortedBut(lines []string, n int) []string {
	slices.Sort(lines[:min(n, len(lines))])
	return lines
}

// Items of another plugin, or of none, end a run; a remap that is no URL is for the
// access point.
func TestRemapsToURLs(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": "A", "b": "B", "c": "C", "e": "E", "_condor_stdout": "o"})
	tr, p := storing(t, f, s, "TransferOutput = \"a,b,c,e\"\nTransferOutputRemaps = \"a=keep://1/x\\;y;c=keep://2/z;b=there;e=x+https://4/e?k=v\"\n")
	if _, err := tr.Upload(context.Background(), Upload{}); err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	want := []string{
		"999 a: a to keep://1/x;y, result 0", "999 c: c to keep://2/z, result 0", "999 e: e to x+https://4/e?k=v, result 0",
		"1 b", "1 _condor_stdout",
	}
	if diff := cmp.Diff(want, told(f)); diff != "" {
		t.Error(diff)
	}
	if len(p.stored) != 1 { // one plugin has both methods
		t.Errorf("runs: %v", p.stored)
	}
}

func TestStoringFails(t *testing.T) {
	const text = "FILETRANSFER:1:non-zero exit (3) from /libexec/keep_plugin. |Error: no ( URL file = keep://h/a )|"
	for _, c := range []struct {
		what    string
		outcome func([]URLFile) *PluginRun
		code    int // 0: this side finds nothing wrong
		subcode int
		text    string
		told    []string
	}{
		{"exit status", func(files []URLFile) *PluginRun {
			run := wellStored(files)
			run.Failure = &PluginFailure{Subcode: 3 << 8, Text: text}
			run.Reports[0].Success, run.Reports[0].Error = false, "no"
			return run
		}, 13, 768, ": : " + text, []string{"999 a: a to keep://h/a, result 1, no", "999 b: b to keep://h/b, result 0"}},
		{"killed, nothing said", func([]URLFile) *PluginRun { return &PluginRun{Failure: &PluginFailure{Subcode: 9, Text: "killed"}} }, 13, 9, ": : killed",
			[]string{"999 a: a to keep://h/a, result 1, the plugin reported nothing of it", "999 b: b to keep://h/b, result 1, the plugin reported nothing of it"}},
		{"nothing said", func([]URLFile) *PluginRun {
			return &PluginRun{Failure: &PluginFailure{Subcode: SubcodeNoReport, Text: "nothing"}}
		}, 13, 61, ": : FILETRANSFER:1:|Error: file transfer plugin /libexec/keep_plugin did not report file SCRATCH/a (2 of 2 files without a report) ( URL file = keep://h/a )||nothing",
			[]string{"999 a: a to keep://h/a, result 1, the plugin reported nothing of it", "999 b: b to keep://h/b, result 1, the plugin reported nothing of it"}},
		{"too little said", func(files []URLFile) *PluginRun {
			run := wellStored(files)
			run.Reports = run.Reports[1:]
			return run
		}, 13, 61, "file transfer plugin /libexec/keep_plugin did not report file SCRATCH/a (1 of 2 files without a report) ( URL file = keep://h/a )", []string{"999 a: a to keep://h/a, result 1, the plugin reported nothing of it", "999 b: b to keep://h/b, result 0"}},
		{"too much said", func(files []URLFile) *PluginRun {
			run := wellStored(append(slices.Clone(files), files...))
			run.Reports = append(run.Reports, PluginReport{URL: "other://", FileName: "/etc/passwd"})
			return run
		}, 0, 0, "", []string{"999 a: a to keep://h/a, result 0", "999 b: b to keep://h/b, result 0"}},
		{"other names", func(files []URLFile) *PluginRun {
			run := wellStored(files)
			run.Reports[0].URL, run.Reports[0].FileName = "https://real/place", files[0].Path
			run.Reports[1].URL, run.Reports[1].FileName = "https://real/other", "../../x"
			slices.Reverse(run.Reports)
			return run
		}, 0, 0, "", []string{"999 a: a to keep://h/a, result 0", "999 b: b to keep://h/b, result 0"}},
		{"failed but well ended", func(files []URLFile) *PluginRun {
			run := wellStored(files)
			run.Reports[1].Success, run.Reports[1].Error = false, "disk\nfull"
			return run
		}, 0, 0, "", []string{"999 a: a to keep://h/a, result 0", `999 b: b to keep://h/b, result 1, disk\nfull`}},
		{"incomplete reports", func(files []URLFile) *PluginRun {
			run := wellStored(files)
			run.Reports[0] = PluginReport{FileName: "a"}
			run.Reports[1] = PluginReport{URL: files[1].URL, Judged: true}
			return run
		}, 13, 0, ": : FILETRANSFER:1:Multi-file plugin at /libexec/keep_plugin did not produce valid response; missing TransferError for failed transfer|" +
			"FILETRANSFER:1:Multi-file plugin at /libexec/keep_plugin did not produce valid response; missing TransferFileName|" +
			"FILETRANSFER:1:Multi-file plugin at /libexec/keep_plugin did not produce valid response; missing TransferSuccess|" +
			"FILETRANSFER:1:Multi-file plugin at /libexec/keep_plugin did not produce valid response; missing TransferUrl",
			[]string{"999 a: a to keep://h/a, result 1", "999 b: b to keep://h/b, result 1"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			sandboxtest.Put(t, s, map[string]string{"a": "A", "b": "B", "_condor_stdout": "o"})
			tr, p := storing(t, f, s, "OutputDestination = \"keep://h\"\nTransferOutput = \"a,b\"\n")
			p.outcome = c.outcome
			_, err := tr.Upload(context.Background(), Upload{})
			f.mustPlay()
			var e *Error
			if c.code == 0 && err != nil || c.code != 0 && (!errors.As(err, &e) || e.Code != c.code || e.Subcode != c.subcode || e.TryAgain || !strings.Contains(e.Text, strings.ReplaceAll(c.text, "SCRATCH", s.Scratch()))) {
				t.Errorf("%#v", err)
			}
			if diff := cmp.Diff(append(c.told, "1 _condor_stdout"), told(f)); diff != "" {
				t.Error(diff)
			}
			if got := f.ackIn.IntOr("Result", 9); (got == 0) != (c.code == 0) {
				t.Errorf("acknowledged with %d", got)
			}
		})
	}
}

// A plugin of protocol 1 gets one file at a time; without a plugin all else is
// sent.
func TestStoringOneByOne(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": "A", "b": "B", "c": "C", "_condor_stdout": "o"})
	tr, p := storing(t, f, s, "TransferOutput = \"a,b,c\"\nTransferOutputRemaps = \"a=keep://a;b=keep://b;c=none://c\"\n")
	p.single = true
	p.outcome = func(files []URLFile) *PluginRun {
		run := &PluginRun{Reports: []PluginReport{{Protocol: "KEEP", Bytes: 1}}}
		if files[0].URL == "keep://b" {
			run.Failure = &PluginFailure{Subcode: 256, Text: "broken"}
		}
		return run
	}
	_, err := tr.Upload(context.Background(), Upload{})
	f.mustPlay()
	want := []string{"999 a: a to keep://a, result 0", "999 b: b to keep://b, result -4, broken",
		"999 c: c to none://c, result -4, " + noPlugin("none://c"), "1 _condor_stdout"}
	if diff := cmp.Diff(want, told(f)); diff != "" {
		t.Error(diff)
	}
	var e *Error
	if !errors.As(err, &e) || e.Subcode != 256 || !strings.Contains(e.Text, "|Error: 2 total failures: first failure: sending file "+s.Scratch()+"/b: broken") {
		t.Error(err)
	}
}

// A plugin never gets a link that leads out of the sandbox: it would follow it in the
// pilot.
func TestNothingOutsideIsStored(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"a": "A", "out": "->/etc/passwd", "_condor_stdout": "o"})
	tr, p := storing(t, f, s, "OutputDestination = \"keep://h\"\nTransferOutput = \"a,out,missing,http://u/x\"\n")
	_, err := tr.Upload(context.Background(), Upload{})
	f.mustPlay()
	if diff := cmp.Diff([]string{"keep://h/a", "keep://h/missing"}, urls(p.stored[0])); diff != "" {
		t.Error(diff)
	}
	var e *Error
	if !errors.As(err, &e) || e.Subcode != 1 || !strings.Contains(e.Text, "2 total failures: first failure: reading from file "+s.Scratch()+"/out: (errno 1) Operation not permitted- The path or a symbolic link") {
		t.Error(err)
	}
}

func TestStoringInSeveralRuns(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	files := map[string]string{"_condor_stdout": "o"}
	for i := range 20 {
		files[fmt.Sprintf("d/%02d", i)] = "x"
	}
	sandboxtest.Put(t, s, files)
	f.once = true // a go-ahead for each item: no item can wait for the next
	tr, p := storing(t, f, s, "OutputDestination = \"keep://h\"\nTransferOutput = \"d\"\n")
	if _, err := tr.Upload(context.Background(), Upload{}); err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	if len(p.stored) != 20 || len(f.got) != 21 {
		t.Errorf("%d runs, %d items", len(p.stored), len(f.got))
	}
}

func TestCheckpointDestination(t *testing.T) {
	const job = "CheckpointDestination = \"keep://h/ckpt\"\nGlobalJobId = \"ap#12.0#17\"\nTransferCheckpoint = \"state d\"\nOutputDestination = \"keep://never\"\n"
	f, s := newShadow(t), sandboxtest.New(t)
	sandboxtest.Put(t, s, map[string]string{"state": "S", "d/f": "F", "other": "", "_condor_stdout": "o"})
	tr, p := storing(t, f, s, job)
	if _, err := tr.Upload(context.Background(), Upload{Kind: jobfiles.Checkpoint, Number: 3}); err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	const base = "keep://h/ckpt/ap_12.0_17/0003/"
	want := []string{
		"999 state: state to " + base + "state, result 0, of a checkpoint",
		"999 d/f: f to " + base + "d/f, result 0, of a checkpoint",
		"999 _condor_stdout: _condor_stdout to " + base + "_condor_stdout, result 0, of a checkpoint",
		"1 _condor_checkpoint_MANIFEST.0003",
	}
	if diff := cmp.Diff(want, told(f)); diff != "" {
		t.Error(diff)
	}
	if f.final != 0 || p.class != PluginCheckpoint {
		t.Error("it was final")
	}
	if got, want := f.got[3].Data, manifestOf(3, "state", "S", "d/f", "F", "_condor_stdout", "o"); got != want || f.got[3].Mode != 0o600 {
		t.Errorf("manifest, mode %o:\n%s", f.got[3].Mode, cmp.Diff(want, got))
	}
	if _, err := os.Lstat(s.Scratch() + "/" + manifest.Name(3)); err == nil {
		t.Error("the manifest is in the sandbox")
	}

	// Without files there is nothing to list, and an unreadable file is not stored.
	p.stored, f.got = nil, nil
	sandboxtest.As(t, s, func(dir string) error { return os.Remove(dir + "/state") })
	_, err := tr.Upload(context.Background(), Upload{Kind: jobfiles.Checkpoint, Number: 4})
	f.mustPlay()
	var e *Error
	if !errors.As(err, &e) || e.Subcode != 2 || e.TryAgain {
		t.Error(err)
	}
	if len(p.stored) != 1 || len(p.stored[0]) != 2 || len(f.got) != 3 {
		t.Errorf("%v, %v", p.stored, told(f))
	}

	for _, bad := range []string{"CheckpointDestination = \"/no/url\"\nGlobalJobId = \"x\"\n", "CheckpointDestination = \"keep://h\"\n"} {
		tr, _ := storing(t, f, s, bad)
		if _, err := tr.Upload(context.Background(), Upload{Kind: jobfiles.Checkpoint}); !errors.As(err, &e) || e.TryAgain {
			t.Errorf("%s: %v", bad, err)
		}
	}

	// The destination of output is not for checkpoints.
	f.got = nil
	tr, p = storing(t, f, s, "OutputDestination = \"keep://h\"\nTransferCheckpoint = \"other\"\n")
	if _, err := tr.Upload(context.Background(), Upload{Kind: jobfiles.Checkpoint}); err != nil || len(p.stored) != 0 {
		t.Error(err, p.stored)
	}
	f.mustPlay()
}

// FuzzReports lets a plugin report anything about files.
func FuzzReports(f *testing.F) {
	f.Add("u1", "a", "u2", "b", true, 3)
	f.Add("", "", "u1", "/x/a", false, 0)
	f.Fuzz(func(t *testing.T, url1, file1, url2, file2 string, success bool, n int) {
		files := []URLFile{{"u1", "/x/a"}, {"u2", "/x/b"}, {"u2", "/x/b"}}
		var reports []PluginReport
		for i := range min(max(n, 0), 6) {
			reports = append(reports, PluginReport{URL: []string{url1, url2}[i%2], FileName: []string{file1, file2}[i/2%2], Success: success, Judged: i%3 == 0, Bytes: int64(n)})
		}
		of, missing := assign(reports, files)
		seen := map[*PluginReport]bool{}
		found := 0
		for _, r := range of {
			if r != nil {
				found++
				if seen[r] {
					t.Error("a report counts twice")
				}
				seen[r] = true
				judge(classads.NewAd(), r, func(string) {})
			}
		}
		if found+missing != len(files) || found != min(len(files), len(reports)) {
			t.Errorf("%d reports for %d files: %d found, %d missing", len(reports), len(files), found, missing)
		}
	})
}
