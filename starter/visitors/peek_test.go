package visitors_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// peek is what condor_tail does: the answer, and the contents of the files.
func (d *served) peek(t *testing.T, session *cedar.Session, request string) (*classads.Ad, []string) {
	t.Helper()
	s, answer, err := d.begin(t, session, cedar.StarterPeek, parsed(t, request))
	must(t, err)
	if !answer.BoolOr("Result", false) {
		return answer, nil
	}
	list, err := answer.GetList("TransferFiles")
	must(t, err)
	var contents []string
	for range list {
		var b bytes.Buffer
		_, err := s.GetFile(&b, 1<<20)
		must(t, err)
		contents = append(contents, b.String())
	}
	n, err := s.GetInt()
	must(t, errors.Join(err, s.EndOfMessage()))
	if n != int64(len(contents)) {
		contents = append(contents, "not all of them were there")
	}
	return answer, contents
}

// TestPeek: the owner sees what the job writes, from the time when there is a sandbox
// until nothing of the job runs any more.
func TestPeek(t *testing.T) {
	d := serve(t, nil)
	job := jobOf(alice, secret)
	job.Update(parsed(t, `Out = "_condor_stdout"`+"\n"+`Err = "_condor_stderr"`+"\n"+`TransferOutput = "data, none, astray, dir/under, closed"`))
	d.Know(job, version)
	session := d.tool(t)
	refused := func(when, request, why string, retry bool) {
		t.Helper()
		answer, files := d.peek(t, session, request)
		if got := answer.StringOr("ErrorString", ""); !strings.Contains(got, why) || answer.BoolOr("Retry", false) != retry || files != nil {
			t.Errorf("%s: %q, retry %v, want %q, %v", when, got, answer.BoolOr("Retry", false), why, retry)
		}
	}
	refused("before", "Out = true", "not yet ready", true)

	box := newSandbox(t)
	in := func(name string) string { return filepath.Join(box.Scratch(), name) }
	must(t, errors.Join(os.WriteFile(in("_condor_stdout"), []byte("first line\n"), 0o600), os.WriteFile(in("data"), []byte("0123456789"), 0o600),
		os.Symlink("/etc/passwd", in("astray")), os.Mkdir(in("closed"), 0o700)))
	d.Ready(job, classads.NewAd(), box)
	for name, tt := range map[string]struct {
		request string
		want    []string
	}{
		"its output":       {"Out = true", []string{"first line\n"}},
		"a file":           {`TransferFiles = { "data" }`, []string{"0123456789"}},
		"the end of it":    {"TransferFiles = { \"data\" }\nMaxTransferBytes = 3", []string{"789"}},
		"both":             {"Out = true\nTransferFiles = { \"data\" }\nTransferOffsets = { 8 }", []string{"first line\n", "89"}},
		"nothing":          {"", nil},
		"not to be opened": {`TransferFiles = { "closed" }`, []string{"", "not all of them were there"}},
	} {
		if _, got := d.peek(t, session, tt.request); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	refused("not the job's output", `TransferFiles = { "secret" }`, "not authorized", false)
	refused("a link out of the sandbox", `TransferFiles = { "astray" }`, "Invalid symlink or filename (astray) outside sandbox ("+box.Scratch()+")", false)
	refused("not there yet", "Err = true", "Unable to resolve file _condor_stderr to real path. (errno=2, No such file or directory)", true)
	refused("below what is not there", `TransferFiles = { "dir/under" }`, "Unable to resolve file dir/under", true)

	if left := openBelow(t, box.Scratch()); left != nil {
		t.Errorf("%q are left open", left)
	}

	d.Finish()
	refused("after", "Out = true", "the job is finished", false)
}

// openBelow lists what this process has open below a directory.
func openBelow(t *testing.T, dir string) (list []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, dir+"/") {
			list = append(list, name)
		}
	}
	return list
}

// TestPeekOff: a site may let nobody look, as a decision about slot and job.
func TestPeekOff(t *testing.T) {
	for knob, refused := range map[string]bool{"": false, "false": true, "TARGET.Open": false, "MY.Cpus > 1": true, "1 +": false} {
		d := serve(t, map[string]string{"ENABLE_PEEK_JOB": knob})
		job := jobOf(alice, secret)
		job.Update(parsed(t, "Open = true"))
		d.Know(job, version)
		d.Ready(job, parsed(t, "Cpus = 1"), newSandbox(t))
		answer, _ := d.peek(t, d.tool(t), "")
		if got := answer.StringOr("ErrorString", ""); (got == "Rejecting request, because ENABLE_PEEK_JOB=false") != refused || answer.BoolOr("Result", false) == refused {
			t.Errorf("%q: %s", knob, answer.FormatOld())
		}
	}
}
