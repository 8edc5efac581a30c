package k8sexec

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
)

// TestUsersForFiles: a lease for files only has a user after those of the containers, of whom nothing runs, and the
// pod is not to blame if there are no more.
func TestUsersForFiles(t *testing.T) {
	w := newWorld(t, nil)
	var ended []int
	w.backend.killUser = func(_ context.Context, uid int) error { ended = append(ended, uid); return nil }
	first := w.backend.opt.BaseUID + len(w.backend.opt.Containers)
	var want []int
	for i := range maxFileUsers {
		l, err := w.backend.Lease(t.Context(), payload.Wish{FilesOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Release(context.Background()) }()
		want = append(want, first+i)
		if uid, gid := l.Owner(); uid != first+i || gid != uid {
			t.Errorf("lease %d has user %d:%d", i, uid, gid)
		}
	}
	if diff := cmp.Diff(want, ended); diff != "" {
		t.Errorf("users whose processes were ended (-want +got):\n%s", diff)
	}
	_, err := w.backend.Lease(t.Context(), payload.Wish{FilesOnly: true})
	if v := (*payload.Verdict)(nil); !errors.As(err, &v) || v.Blame != payload.Unknown {
		t.Errorf("one too many: %v", err)
	}
}

// TestUserForFilesHangs: a user of whom a process does not die gets no files, and may be leased again.
func TestUserForFilesHangs(t *testing.T) {
	w := newWorld(t, nil)
	hangs := errors.New("process 7 hangs")
	w.backend.killUser = func(context.Context, int) error { return hangs }
	_, err := w.backend.Lease(t.Context(), payload.Wish{FilesOnly: true})
	if v := (*payload.Verdict)(nil); !errors.As(err, &v) || v.Blame != payload.Unknown {
		t.Errorf("%v", err)
	}
	w.backend.killUser = func(context.Context, int) error { return nil }
	l, err := w.backend.Lease(t.Context(), payload.Wish{FilesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if uid, _ := l.Owner(); uid != w.backend.opt.BaseUID+len(w.backend.opt.Containers) {
		t.Errorf("user %d", uid)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFilesWithoutRoot: a pilot without root keeps common files as its own user, for any number of data slots, and
// takes no slot.
func TestFilesWithoutRoot(t *testing.T) {
	w := newWorld(t, nil)
	w.backend.self.UID, w.backend.self.GID = 1000, 1001
	w.backend.killUser = func(context.Context, int) error { t.Error("the pilot's own processes are killed"); return nil }
	for range 2 {
		l, err := w.backend.Lease(t.Context(), payload.Wish{FilesOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if uid, gid := l.Owner(); uid != 1000 || gid != 1001 {
			t.Errorf("user %d:%d", uid, gid)
		}
		if _, err := l.Bind(t.Context(), payload.BindRequest{}); err == nil {
			t.Error("it has a container")
		}
		defer func() {
			for range 2 {
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}()
	}
}
