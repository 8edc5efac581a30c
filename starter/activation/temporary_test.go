package activation

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"testing"

	"podstarter/starter/hostprog"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// TestTemporaryFilesWithoutPod: on a machine, what programs of a job have left goes, if the job's user is nobody else, as under root. The next
// job of this number may be another user's. Without root, the user is somebody who has files of their own.
func TestTemporaryFilesWithoutPod(t *testing.T) {
	uid, apart := os.Getuid(), os.Getuid() == 0
	if apart {
		uid = 1_994_000_000 + os.Getpid() // nobody's
	}
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		var files [2]string // of the job's user, and of this one
		for i := range files {
			f, err := os.CreateTemp(dir, "left")
			if err != nil {
				t.Fatal(err)
			}
			files[i] = f.Name()
			t.Cleanup(func() { _ = os.Remove(f.Name()) })
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if apart {
			if err := os.Chown(files[0], uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		set := settings.Settings{Backend: settings.BackendLocal}
		o := Options{Settings: set, Host: hostprog.New(hostprog.Options{SeparateUsers: set.SeparateUsers()}), Log: slog.New(slog.DiscardHandler)}
		a := &activation{opt: o, log: o.Log, job: payloadrun.Job{UID: uid}}
		if err := a.removeTemporary(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(files[0]); errors.Is(err, fs.ErrNotExist) != apart {
			t.Errorf("%s, a file of user %d: %v", files[0], uid, err)
		}
		if _, err := os.Lstat(files[1]); err != nil {
			t.Errorf("%s, of somebody else: %v", files[1], err)
		}
	}
}

func TestLeftoversAreTheJobs(t *testing.T) {
	for _, tt := range []struct{ root, pod, dataSlot, want bool }{
		{root: true, want: true},
		{root: true, pod: true, want: true},
		{root: true, pod: true, dataSlot: true, want: true},
		{pod: true, want: true},
		{pod: true, dataSlot: true},
		{},
		{dataSlot: true},
	} {
		if got := leftoversAreTheJobs(tt.root, tt.pod, tt.dataSlot); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
