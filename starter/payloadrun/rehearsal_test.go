package payloadrun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
)

// TestRehearsed: only a job with a standard file that may fail to open pays for a rehearsal,
// and that opens no other.
func TestRehearsed(t *testing.T) {
	j := aJob(t, "", nil)
	box := j.Sandbox.Scratch()
	for name, mode := range map[string]os.FileMode{"regular": 0o600, "read-only": 0o400, "write-only": 0o200} {
		must(t, os.WriteFile(filepath.Join(box, name), nil, mode))
	}
	must(t, os.Mkdir(box+"/dir", 0o700))
	must(t, os.Symlink("regular", box+"/link"))
	must(t, syscall.Mkfifo(box+"/fifo", 0o600))
	for name, tt := range map[string]struct{ stdin, stdout, stderr, want payload.Spec }{
		"none":                  {},
		"ordinary":              {stdin: in(box + "/regular"), stdout: out(box + "/out"), stderr: diag(box + "/err")},
		"ordinary, again":       {stdin: in(box + "/read-only"), stdout: out(box + "/regular"), stderr: diag(box + "/write-only")},
		"input that is missing": {stdin: in(box + "/gone"), want: in(box + "/gone")},
		"unreadable input":      {stdin: in(box + "/write-only"), want: in(box + "/write-only")},
		"unwritable output":     {stdin: in(box + "/regular"), stdout: out(box + "/read-only"), want: out(box + "/read-only")},
		"elsewhere":             {stdin: in(box + "/regular"), stdout: out("/shared/out"), stderr: diag(box + "/err"), want: out("/shared/out")},
		"all elsewhere": {stdin: in("/shared/in"), stdout: out("/shared/out"), stderr: diag("/shared/out"),
			want: payload.Spec{Stdin: "/shared/in", Stdout: "/shared/out", Stderr: "/shared/out"}},
		"the sandbox's neighbour": {stdout: out(box + "2/out"), want: out(box + "2/out")},
		"out of the sandbox":      {stdout: out(box + "/../out"), want: out(box + "/../out")},
		"deeper":                  {stdout: out(box + "/dir/out"), want: out(box + "/dir/out")},
		"a directory":             {stdout: out(box + "/dir"), want: out(box + "/dir")},
		"a link":                  {stderr: diag(box + "/link"), want: diag(box + "/link")},
		"a FIFO":                  {stdout: out(box + "/fifo"), want: out(box + "/fifo")},
		"relative":                {stdout: out("out")}, // to a directory that may not be there
	} {
		t.Run(name, func(t *testing.T) {
			w := &wrapper{}
			c, _, _, _ := container(t, w)
			spec := payload.Spec{
				Activation: "a-1", UID: 7, GID: 8, Groups: []int{8, 9}, Path: "/bin/job", Args: []string{"/bin/job", "x"}, Env: []string{"A=b"},
				Dir: "/home/alice", Links: []payload.Link{{At: "/srv", To: box}}, Umask: 0o022, Append: true, Nice: 3, MaxTasks: 5, ImageEnv: true,
				Stdin: tt.stdin.Stdin, Stdout: tt.stdout.Stdout, Stderr: tt.stderr.Stderr,
			}
			must(t, j.Rehearse(t.Context(), c, spec))
			var want []payload.Spec
			if !cmp.Equal(tt.want, payload.Spec{}) {
				want = []payload.Spec{{
					Activation: "a-1.stdio", UID: 7, GID: 8, Groups: []int{8, 9}, Path: "/bin/job",
					Dir: "/", Links: []payload.Link{{At: "/srv", To: box}}, Umask: 0o022, Append: true, Rehearse: true,
					Stdin: tt.want.Stdin, Stdout: tt.want.Stdout, Stderr: tt.want.Stderr,
				}}
			}
			if diff := cmp.Diff(want, w.specs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func in(path string) payload.Spec   { return payload.Spec{Stdin: path} }
func out(path string) payload.Spec  { return payload.Spec{Stdout: path} }
func diag(path string) payload.Spec { return payload.Spec{Stderr: path} }

// TestRehearsalFails: what becomes of a rehearsal is told as it is of a start.
func TestRehearsalFails(t *testing.T) {
	notOpened := &payload.StartError{Stage: payload.StageStdout, Path: "/no/out", Errno: syscall.ENOENT}
	j := aJob(t, "", nil)
	spec := payload.Spec{Activation: "a", Path: "/bin/job", Dir: "/", Stdout: "/no/out"}
	for name, tt := range map[string]struct {
		w    *wrapper
		want error // nil: some
	}{
		"not opened":   {&wrapper{startErr: notOpened}, notOpened},
		"lost":         {&wrapper{startErr: payload.ErrLost}, payload.ErrLost},
		"lost at last": {&wrapper{waitErr: payload.ErrLost}, payload.ErrLost},
		"killed":       {&wrapper{exit: payload.Exit{WaitStatus: int(syscall.SIGKILL), Killed: payload.KilledLeaving}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _, _ := container(t, tt.w)
			if err := j.Rehearse(t.Context(), c, spec); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if c.Vacant() {
				t.Error("nobody has proven that nothing is left")
			}
		})
	}
}

// TestRehearsalIsCut: an order does not wait for a rehearsal.
func TestRehearsalIsCut(t *testing.T) {
	j := aJob(t, "", nil)
	c, _, _, _ := container(t, &wrapper{hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Rehearse(ctx, c, payload.Spec{Activation: "a", Path: "/bin/job", Dir: "/", Stdout: "/no/out"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
