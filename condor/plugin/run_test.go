package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// outfile sets $out to the report file.
const outfile = `while [ $# -gt 0 ]; do case $1 in -infile) in=$2; shift;; -outfile) out=$2; shift;; -upload) up=1;; esac; shift; done
`

const reportOK = `[ TransferUrl = "x://h/a"; TransferFileName = "a"; TransferSuccess = true; TransferProtocol = "x"; TransferTotalBytes = 7; ConnectionTimeSeconds = 1.5 ]`

// TestMany: results of runs by protocol 2; the texts are stock's.
func TestMany(t *testing.T) {
	tests := map[string]struct {
		text     string
		lifetime time.Duration
		job      bool // the plugin is the job's
		refused  bool
		missing  bool

		status   Status
		subcode  int
		tryAgain bool
		said     string // PLUGIN and OUT stand for paths
		reports  int
		ads      int
	}{
		"good":                {text: outfile + `echo '` + reportOK + `' >$out`, reports: 1, ads: 2},
		"good, no truncation": {text: outfile + `printf '%s' '` + reportOK + `' 1<>$out >&1`, reports: 1, ads: 2},
		"exit code": {text: outfile + `echo '[ TransferUrl = "x://h/a?secret=1"; TransferSuccess = false; TransferError = "no way" ]' >$out; exit 11`,
			status: Failed, subcode: 11 << 8, reports: 1, ads: 2,
			said: "FILETRANSFER:1:non-zero exit (11) from PLUGIN. |Error: no way ( URL file = x://h/a?... )|"},
		"two failures, the newest first": {text: outfile + `echo '[ TransferUrl = "x://h/a"; TransferSuccess = false; TransferError = "one" ][ TransferUrl = "x://h/b"; TransferSuccess = false ]' >$out; exit 1`,
			status: Failed, subcode: 256, reports: 2, ads: 3,
			said: "FILETRANSFER:1:non-zero exit (1) from PLUGIN. |Error: File transfer plugin PLUGIN exited unexpectedly without producing an error message  ( URL file = x://h/b )|" +
				"|FILETRANSFER:1:non-zero exit (1) from PLUGIN. |Error: one ( URL file = x://h/a )|"},
		"exit code with good reports": {text: outfile + `echo '` + reportOK + `' >$out; exit 2`,
			status: Failed, subcode: 512, reports: 1, ads: 2,
			said: "FILETRANSFER:1:File transfer plugin PLUGIN failed unexpectedly with exit code 2, did not report a TransferError message."},
		"success with a bad report": {text: outfile + `echo '[ TransferSuccess = false; TransferError = "oh" ]' >$out`, reports: 1, ads: 2},
		"not judged": {text: outfile + `echo '[ TransferUrl = "x://h/a" ]' >$out; exit 3`, status: Failed, subcode: 768, reports: 1, ads: 2,
			said: "FILETRANSFER:1:non-zero exit (3) from PLUGIN. |Error: File transfer plugin PLUGIN exited without producing a TransferSuccess result  (x://h/a)|"},
		"nothing reported": {text: "exit 0", status: Failed, subcode: SubcodeNothingSaid, ads: 1,
			said: "FILETRANSFER:1:|Error: file transfer plugin PLUGIN exited (exit code 0), no valid classads in output file OUT"},
		"nothing reported, exit code": {text: "exit 4", status: Failed, subcode: SubcodeNothingSaid, ads: 1,
			said: "FILETRANSFER:1:|Error: file transfer plugin PLUGIN exited (exit code 4), no valid classads in output file OUT"},
		"report file removed": {text: outfile + "rm $out", status: Failed, ads: 1,
			said: "FILETRANSFER:1:|Error: file transfer plugin PLUGIN exited with code 0, unable to open output file OUT"},
		"malformed": {text: outfile + `echo '[ TransferSuccess = ' >$out`, status: Failed, subcode: SubcodeNothingSaid, ads: 1,
			said: "FILETRANSFER:1:|Error: file transfer plugin PLUGIN exited (exit code 0), no valid classads in output file OUT"},
		"signal": {text: "kill -9 $$", status: Failed, subcode: 9, ads: 1,
			said: "FILETRANSFER:1:|Error: file transfer plugin PLUGIN exited (signal 9), no valid classads in output file OUT"},
		"signal after a report": {text: outfile + `echo '[ TransferUrl = "x://h/a"; TransferSuccess = false; TransferError = "half" ]' >$out; kill -15 $$`, status: Failed, subcode: 15, reports: 1, ads: 2,
			said: "FILETRANSFER:1:non-zero exit (0) from PLUGIN. |Error: half ( URL file = x://h/a )|"},
		"too slow": {text: "exec sleep 600", lifetime: time.Second, status: TimedOut, subcode: 62, ads: 1,
			said: "FILETRANSFER:1:File transfer plugin PLUGIN timed out after 1 seconds.|FILETRANSFER:1:|Error: file transfer plugin PLUGIN exited (exit code 62), no valid classads in output file OUT"},
		"not there": {missing: true, status: NotExecuted, subcode: SubcodeNotExecuted, tryAgain: true,
			said: "FILETRANSFER:1:FILETRANSFER: Failed to execute PLUGIN: No such file or directory"},
		"of the job": {text: outfile + `echo '` + reportOK + `' >$out`, job: true, reports: 1, ads: 2},
		"of the job, refused": {job: true, refused: true, status: Failed, subcode: SubcodeNotAllowed,
			said: "FILETRANSFER:1:user-supplied plugin PLUGIN not allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scratch, dir := t.TempDir(), t.TempDir()
			p := &Plugin{Path: filepath.Join(dir, "x_plugin"), Name: "X", Protocol: 2, Multi: true, FromJob: tt.job, Refused: tt.refused}
			if tt.job {
				dir, p.Path = scratch, "somewhere/x_plugin"
			}
			if !tt.missing {
				script(t, dir, "x_plugin", tt.text)
			}
			r := newRunner(t, scratch)
			if tt.lifetime > 0 {
				r.Lifetime = tt.lifetime
			}
			res, err := r.Run(t.Context(), p, Input, []File{{"x://h/a", scratch + "/a"}}, "")
			if err != nil {
				t.Fatal(err)
			}
			want := &Failure{Subcode: tt.subcode, TryAgain: tt.tryAgain,
				Text: strings.NewReplacer("PLUGIN", p.Path, "OUT", scratch+"/.x_plugin.out").Replace(tt.said)}
			if tt.status == Success {
				want = nil
			}
			if diff := cmp.Diff(want, res.Failure); diff != "" {
				t.Error(diff)
			}
			said := "" // of a success
			if want != nil {
				said = want.Text
			} else if name == "success with a bad report" {
				said = "FILETRANSFER:1:non-zero exit (0) from " + p.Path + ". |Error: oh ( URL file =  )|"
			}
			if diff := cmp.Diff(said, res.Said()); diff != "" {
				t.Error(diff)
			}
			if unexplained := name == "exit code with good reports"; res.Unexplained != unexplained {
				t.Errorf("unexplained: %v", res.Unexplained)
			}
			if res.Status != tt.status || len(res.Reports) != tt.reports || len(res.Ads) != tt.ads {
				t.Errorf("status %d with %d reports and %d ads, want %d, %d, %d", res.Status, len(res.Reports), len(res.Ads), tt.status, tt.reports, tt.ads)
			}
			if tt.status == TimedOut && res.Ads[0].IntOr("ExitSignal", 0) != int64(syscall.SIGKILL) { // execute sends it
				t.Errorf("the invocation's ad does not have the signal: %s", res.Ads[0])
			}
			for _, name := range []string{".x_plugin.in", ".x_plugin.out"} {
				if _, err := os.Lstat(filepath.Join(scratch, name)); err == nil {
					t.Errorf("%s was left behind", name)
				}
			}
		})
	}
}

// TestSilence: a plugin that reports nothing. With input the job goes back to the queue,
// with output it is held.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[Class]int
	}{
		{"exit 0", map[Class]int{Input: SubcodeNothingSaid, Output: 61, Checkpoint: 61}},
		{"exit 4", map[Class]int{Input: SubcodeNothingSaid, Output: 4 << 8, Checkpoint: 4 << 8}},
		{"kill -9 $$", map[Class]int{Input: 9, Output: 9, Checkpoint: 9}},
		{outfile + "echo '[ TransferSuccess = ' >$out", map[Class]int{Input: SubcodeNothingSaid, Output: 61, Checkpoint: 61}},
	} {
		got := map[Class]int{}
		for class := range c.want {
			scratch, dir := t.TempDir(), t.TempDir()
			p := &Plugin{Path: script(t, dir, "x_plugin", c.text), Name: "X", Protocol: 2, Multi: true}
			res, err := newRunner(t, scratch).Run(t.Context(), p, class, []File{{"x://h/a", scratch + "/a"}}, "")
			if err != nil || res.Failure == nil || res.Failure.TryAgain {
				t.Fatalf("%s: %+v, %v", c.text, res, err)
			}
			got[class] = res.Failure.Subcode
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

// TestOutput: a plugin's output is logged in one line, only its end if it is long.
func TestOutput(t *testing.T) {
	scratch, dir := t.TempDir(), t.TempDir()
	for text, want := range map[string]string{
		"echo out; echo err >&2; exit 3":                                 "false FILETRANSFER: plugin PATH exit=3 stdout: out\nerr\n",
		"echo out; echo '[ TransferSuccess = true ]' >.x_plugin.out":     "true FILETRANSFER: plugin PATH exit=0 stdout: out\n",
		"echo out; kill -9 $$":                                           "false FILETRANSFER: plugin PATH signal=9 stdout: out\n",
		"echo begin; head -c 20000 /dev/zero | tr '\\0' x; echo; exit 1": "false FILETRANSFER: plugin PATH exit=1 stdout, the last 16 KiB: " + strings.Repeat("x", 16<<10-1) + "\n",
		"exit 1": "",
	} {
		p := &Plugin{Path: script(t, dir, "x_plugin", text), Name: "X", Protocol: 2, Multi: true}
		r, got := newRunner(t, scratch), ""
		r.Output = func(success bool, line string) { got += fmt.Sprint(success, " ", line) }
		if _, err := r.Run(t.Context(), p, Input, []File{{"x://h/a", "/s/a"}}, ""); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Replace(want, "PATH", p.Path, 1), got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestInvocation: arguments, input and environment of a plugin.
func TestInvocation(t *testing.T) {
	scratch, dir := t.TempDir(), t.TempDir()
	p := &Plugin{Path: script(t, dir, "my_plugin.sh", `exec >args 2>&1; echo "$@"; pwd; wc -c <.my_plugin.sh.out; env | grep -v -e ^PWD -e ^_= -e ^SHLVL -e ^OLDPWD | sort
cp .my_plugin.sh.in in; echo '[ TransferSuccess = true ]' >.my_plugin.sh.out`), Name: "MY", Protocol: 2, Multi: true}
	r := newRunner(t, scratch)
	r.Job = mustAd(t, `Environment = "MY_ONE=1 my_two=2 MYTHREE=3 OTHER_MY_=4"
PluginData = "all"
x_PluginData = [ a = 1 ]
y_PluginData = "other"`)
	r.Extra = []string{"_CONDOR_CREDS=/creds"}
	if _, err := r.Run(t.Context(), p, Output, []File{{`x+X://h/"a"`, "/s/a"}, {"x://h/b", "/s/b"}}, "/proxy"); err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(scratch, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := "-infile " + scratch + "/.my_plugin.sh.in -outfile " + scratch + "/.my_plugin.sh.out -upload\n" + scratch + "\n19264\n" +
		"MY_ONE=1\nPATH=/usr/bin:/bin\nX509_USER_PROXY=/proxy\n_CONDOR_CREDS=/creds\nmy_two=2\n"
	if diff := cmp.Diff(want, text("args")); diff != "" {
		t.Error(diff)
	}
	const in = `[ PluginData = "all"; x_PluginData = [ a = 1 ]; Url = "x+X://h/\"a\""; LocalFileName = "/s/a" ][ PluginData = "all"; x_PluginData = [ a = 1 ]; Url = "x://h/b"; LocalFileName = "/s/b" ]`
	if diff := cmp.Diff(in, text("in")); diff != "" {
		t.Error(diff)
	}
}

// TestInput: the input file of other protocols.
func TestInput(t *testing.T) {
	job := mustAd(t, "PluginData = 1\nx_PluginData = 2\nz_PluginData = 3")
	files := []File{{"x://h", "/a"}, {"y://h", "/b"}}
	const plain = `[ Url = "x://h"; LocalFileName = "/a" ][ Url = "y://h"; LocalFileName = "/b" ]`
	for _, tt := range []struct {
		protocol int
		plain    bool
		want     string
	}{
		{2, false, plain},
		{3, true, plain},
		{4, true, `[ PluginData = 1 ][ Protocol = "x"; x_PluginData = 2 ]` + plain},
		{5, true, plain},
	} {
		if diff := cmp.Diff(tt.want, string((&Plugin{Protocol: tt.protocol}).input(job, files, tt.plain))); diff != "" {
			t.Errorf("protocol %d: %s", tt.protocol, diff)
		}
	}
}

// TestJobsPluginHasNothingOfTheSites: a program that a job brings does not get the
// pilot's environment.
func TestJobsPluginHasNothingOfTheSites(t *testing.T) {
	r := newRunner(t, t.TempDir())
	r.Environ = []string{"PATH=/bin", "POOL_PASSWORD=secret", "https_proxy=p", "LC_ALL=C"}
	r.Job = mustAd(t, `Environment = "X_OWN=1"`)
	got := r.environment(&Plugin{Name: "X", FromJob: true, Multi: true}, "")
	if diff := cmp.Diff([]string{"LC_ALL=C", "PATH=/bin", "X_OWN=1", "https_proxy=p"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestOne is protocol 1.
func TestOne(t *testing.T) {
	tests := map[string]struct {
		text     string
		lifetime time.Duration
		class    Class
		status   Status
		subcode  int
		said     string
	}{
		"good":    {text: `[ "$1 $2" = "x://h/a /s/a" ] && printf 'TransferSuccess = true\nTransferTotalBytes = 5\nTransferProtocol = "x"\nnonsense\n'`},
		"upload":  {class: Output, text: `[ "$1 $2" = "/s/a x://h/a" ]`},
		"code":    {text: `echo 'TransferError = "no"'; exit 3`, status: Failed, subcode: 768, said: "FILETRANSFER:1:non-zero exit (3) from PLUGIN. |Error: no ( URL file = x://h/a )|"},
		"silence": {text: `exit 255`, status: Failed, subcode: 65280, said: "FILETRANSFER:1:non-zero exit (255) from PLUGIN. |Error: File transfer plugin PLUGIN exited unexpectedly without producing an error message  ( URL file = x://h/a )|"},
		"signal":  {text: `kill -6 $$`, status: Failed, subcode: 6, said: "FILETRANSFER:1:exit by signal 6 from PLUGIN. |Error: File transfer plugin PLUGIN exited unexpectedly without producing an error message  ( URL file = x://h/a )|"},
		"slow":    {text: `exec sleep 600`, lifetime: time.Second, status: TimedOut, subcode: 62, said: "FILETRANSFER:1:File transfer plugin PLUGIN timed out after 1 seconds."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := &Plugin{Path: script(t, dir, "x_plugin", tt.text), Protocol: 1}
			r := newRunner(t, dir)
			if tt.lifetime > 0 {
				r.Lifetime = tt.lifetime
			}
			if tt.class == 0 {
				tt.class = Input
			}
			res, err := r.Run(t.Context(), p, tt.class, []File{{"x://h/a", "/s/a"}}, "")
			if err != nil {
				t.Fatal(err)
			}
			var want *Failure
			if tt.status != Success {
				want = &Failure{Subcode: tt.subcode, Text: strings.ReplaceAll(tt.said, "PLUGIN", p.Path)}
			}
			if diff := cmp.Diff(want, res.Failure); diff != "" {
				t.Error(diff)
			}
			if len(res.Ads) != 0 {
				t.Errorf("the shadow gets %v; stock sends nothing for protocol 1", res.Ads)
			}
			if name == "good" {
				if got := res.Reports[0]; got.Protocol != "X" || got.Bytes != 5 || !got.Success {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}

// TestCancelled: the order to end the job ends the plugin.
func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := &Plugin{Path: script(t, dir, "x_plugin", "exec sleep 600"), Protocol: 2, Multi: true}
	r := newRunner(t, dir)
	begun := r.Exec
	r.Exec = func(ctx context.Context, p Program) (Outcome, error) {
		cancel(why)
		return begun(ctx, p)
	}
	if _, err := r.Run(ctx, p, Input, []File{{"x://h/a", "/s/a"}}, ""); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestNotExecuted: a plugin whose file is busy, or for which there is no process, is tried a few
// times more, and then fails for now. One that cannot be executed at all is not.
func TestNotExecuted(t *testing.T) {
	for errno, tries := range map[syscall.Errno]int{syscall.ETXTBSY: executeTries, syscall.EAGAIN: executeTries, syscall.ENOMEM: executeTries, syscall.ENOEXEC: 1} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			r := newRunner(t, dir)
			n := 0
			r.Exec = func(context.Context, Program) (Outcome, error) {
				if n++; n > 2*executeTries {
					return Outcome{Took: time.Second}, nil // an end of this test
				}
				return Outcome{}, &os.PathError{Op: "fork/exec", Path: "p", Err: errno}
			}
			began := time.Now()
			res, err := r.Run(t.Context(), &Plugin{Path: "/p", Protocol: 2, Multi: true}, Input, []File{{URL: "x://h/f", Path: dir + "/f"}}, "")
			if err != nil || n != tries || res.Failure == nil || res.Failure.Subcode != SubcodeNotExecuted || !res.Failure.TryAgain || !strings.Contains(res.Failure.Text, "Failed to execute /p: ") {
				t.Errorf("%v: %d tries, want %d, and %+v, %v", errno, n, tries, res, err)
			}
			if took, want := time.Since(began), time.Duration(tries*(tries-1)/2)*executePause; took != want {
				t.Errorf("%v: the pauses are %v together, want %v", errno, took, want)
			}
		})
	}
}
