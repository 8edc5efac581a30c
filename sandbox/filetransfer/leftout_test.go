package filetransfer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
)

// What the job did not name itself is left out, if it cannot be sent; all else arrives.
func TestUploadLeavesOut(t *testing.T) {
	const begins = "Left out of the job's output, because it cannot be sent: "
	for _, c := range []struct {
		name  string
		job   string
		u     Upload
		leave func(dir string) error
		got   []string // beside _condor_stdout
		left  string
	}{
		{"unreadable directory below", `TransferOutput = "d"`, Upload{}, func(d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.WriteFile(d+"/d/f", nil, 0o600), os.Mkdir(d+"/d/e", 0))
		}, []string{"1 d/f 600", "6 d 755", "6 d/e 0"}, begins + "d/e (Permission denied)."},
		{"directory below that may be listed, but not entered", `TransferOutput = "d/"`, Upload{}, func(d string) error {
			return errors.Join(os.MkdirAll(d+"/d/e", 0o755), os.WriteFile(d+"/d/e/f", nil, 0o600), os.Chmod(d+"/d/e", 0o600))
		}, []string{"6 e 600"}, begins + "d/e/f (Permission denied)."},
		{"links out below", `TransferOutput = "d"`, Upload{}, func(d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.Symlink("/etc/passwd", d+"/d/l"), os.Symlink("../../..", d+"/d/up"),
				os.Symlink("nothing", d+"/d/broken"), os.Symlink("round", d+"/d/round"))
		}, []string{"6 d 755"}, begins + "d/l (leads out of the job's sandbox), d/up (leads out of the job's sandbox)."},
		{"link into a closed directory below", `TransferOutput = "d"`, Upload{}, func(d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.Symlink("../closed/f", d+"/d/l"), os.Mkdir(d+"/closed", 0))
		}, []string{"6 d 755"}, begins + "d/l (Permission denied)."},
		{"changed files", "", Upload{}, func(d string) error {
			return errors.Join(os.WriteFile(d+"/f", nil, 0o644), os.Symlink("/etc/passwd", d+"/l"), os.Symlink("/etc/passwd", d+"/run.sh"),
				os.Symlink("/etc/passwd", d+"/.job.ad"), os.Symlink("nothing", d+"/broken"))
		}, []string{"1 f 644"}, begins + "l (leads out of the job's sandbox)."},
		{"closed sandbox", "", Upload{}, func(d string) error { return os.Chmod(d, 0) }, nil,
			begins + "all of it, as the job's sandbox itself cannot be listed (Permission denied)."},
		{"sandbox that may be listed, but not entered", "", Upload{}, func(d string) error {
			return errors.Join(os.WriteFile(d+"/f", nil, 0o644), os.Remove(d+"/_condor_stdout"), os.Chmod(d, 0o600))
		}, nil, begins + "all of it, as the job's sandbox itself cannot be listed (Permission denied)."},
		{"many", `TransferOutput = "d"`, Upload{}, func(d string) error {
			err := os.Mkdir(d+"/d", 0o755)
			for i := range 200 {
				err = errors.Join(err, os.Symlink("/etc/passwd", fmt.Sprintf("%s/d/%03d%s", d, i, strings.Repeat("x", 200))))
			}
			return err
		}, []string{"6 d 755"}, " and 195 more."},
		{"odd name", `TransferOutput = "d"`, Upload{}, func(d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.Symlink("/etc/passwd", d+"/d/\x1b[31m\n...\n005\xff"))
		}, []string{"6 d 755"}, begins + `d/\x1b[31m\n...\n005? (leads out of the job's sandbox).`},
		{"a checkpoint", `TransferCheckpoint = "d"`, Upload{Kind: jobfiles.Checkpoint}, func(d string) error {
			return errors.Join(os.Mkdir(d+"/d", 0o755), os.Mkdir(d+"/d/e", 0))
		}, []string{"6 d 755", "6 d/e 0"}, "Left out of the job's checkpoint, because it cannot be sent: d/e (Permission denied)."},
		{"nothing", `TransferOutput = "d"`, Upload{}, func(d string) error { return os.Mkdir(d+"/d", 0o755) }, []string{"6 d 755"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			if os.Geteuid() == 0 && !s.Payload().Switches() {
				t.Skip("root may read everything")
			}
			tr := f.transfer(s, plainJob+c.job+"\n")
			must(t, tr.Recatalog(t.Context()))
			sandboxtest.Put(t, s, map[string]string{"_condor_stdout": "o"})
			sandboxtest.As(t, s, c.leave)
			result, err := tr.Upload(t.Context(), c.u)
			must(t, err)
			f.mustPlay()
			got := slices.DeleteFunc(gotten(f, false), func(x string) bool { return strings.Contains(x, jobfiles.StdoutName) })
			if diff := cmp.Diff(c.got, got); diff != "" {
				t.Error(diff)
			}
			if len(result.LeftOut) > 1000 || c.name != "many" && result.LeftOut != c.left || !strings.HasSuffix(result.LeftOut, c.left) {
				t.Errorf("%d bytes: %s\nwant: %s", len(result.LeftOut), result.LeftOut, c.left)
			}
		})
	}
}
