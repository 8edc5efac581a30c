package beneath

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDoActsAsOwner(t *testing.T) {
	needRoot(t)
	top := tree(t)
	owner := Owner{UID: payloadUID, GID: payloadUID, Groups: []int{payloadUID, 20001}}
	shared := filepath.Join(filepath.Dir(top), "group")
	must(t, os.WriteFile(shared, []byte("x"), 0o640))
	must(t, os.Chown(shared, 0, 20001))
	secret := filepath.Join(filepath.Dir(top), "secret")
	must(t, os.WriteFile(secret, []byte("x"), 0o600))

	var wg sync.WaitGroup
	for range 8 { // also: threads of earlier rounds must not be reused
		wg.Go(func() {
			err := owner.Do(func() error {
				if _, err := unix.Open(secret, unix.O_RDONLY, 0); err != unix.EACCES {
					t.Errorf("root's file as payload: %v, want EACCES", err)
				}
				fd, err := unix.Open(shared, unix.O_RDONLY, 0)
				if err != nil {
					t.Errorf("group's file as payload: %v", err)
				}
				unix.Close(fd)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			fd, err := unix.Open(secret, unix.O_RDONLY, 0)
			if err != nil {
				t.Errorf("root's file as root: %v", err)
			}
			unix.Close(fd)
		})
	}
	wg.Wait()

	must(t, owner.Do(func() error {
		r, err := OpenRoot(top)
		if err != nil {
			return err
		}
		defer r.Close()
		f, err := r.Create("a/b", 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	}))
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(top, "a/b"), &st))
	if st.Uid != payloadUID || st.Gid != payloadUID || st.Mode&0o777 != 0o600 {
		t.Errorf("file made by payload: uid %d gid %d mode %o", st.Uid, st.Gid, st.Mode)
	}
}

// TestDoGivesTheIdentityBack: no thread is left with the identity of a job, and none is
// used up.
func TestDoGivesTheIdentityBack(t *testing.T) {
	needRoot(t)
	owner := Owner{UID: payloadUID, GID: payloadUID, Groups: []int{20001, 20002}}
	threads := func() map[string]string {
		t.Helper()
		list := make(map[string]string)
		names, err := os.ReadDir("/proc/self/task")
		must(t, err)
		for _, name := range names {
			status, err := os.ReadFile(filepath.Join("/proc/self/task", name.Name(), "status"))
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
				continue
			}
			must(t, err)
			for line := range strings.Lines(string(status)) {
				for _, field := range []string{"Uid:", "Gid:", "Groups:", "CapEff:"} {
					if strings.HasPrefix(line, field) {
						list[name.Name()] += line
					}
				}
			}
		}
		return list
	}
	first := threads()
	var want string
	for _, is := range first {
		want = is
	}
	used := make(map[int]bool)
	for range 100 {
		must(t, owner.Do(func() error {
			used[unix.Gettid()] = true
			return nil
		}))
	}
	for id, is := range threads() {
		if is != want {
			t.Errorf("thread %s is\n%s, want\n%s", id, is, want)
		}
	}
	if len(used) > 50 {
		t.Errorf("%d threads were used for 100 calls, one after the other", len(used))
	}
}

func TestDoPassesErrorsAndSurvivesGoexit(t *testing.T) {
	needRoot(t)
	owner := Owner{UID: payloadUID, GID: payloadUID}
	want := errors.New("mine")
	if got := owner.Do(func() error { return want }); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := Self().Do(func() error { return want }); err != want {
		t.Errorf("as self: got %v, want %v", err, want)
	}
}

// onThread calls what on a thread that ends with it.
func onThread(what func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		if unix.Gettid() == unix.Getpid() {
			onThread(what) // Go cannot end the first thread
			runtime.UnlockOSThread()
			return
		}
		what()
	}()
	<-done
}

// TestGroupsAreReplaced: the process's groups give no access to files that are not the
// owner's. An ordinary user may not set groups, and fails there. Without that call the
// rest would succeed: it asks for the identity that the process already has.
func TestGroupsAreReplaced(t *testing.T) {
	owner := Owner{UID: os.Geteuid(), GID: os.Getegid()}
	if owner.UID == 0 {
		owner.UID, owner.GID = payloadUID, payloadUID
	}
	var err error
	var groups []int
	onThread(func() {
		err = owner.assume()
		groups, _ = unix.Getgroups() // of this thread
	})
	if os.Geteuid() != 0 {
		if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "groups") {
			t.Errorf("%v, want a refusal to change the groups", err)
		}
		return
	}
	if err != nil || len(groups) != 1 || groups[0] != owner.GID {
		t.Errorf("groups %v, %v", groups, err)
	}
}

func TestDoWithoutRoot(t *testing.T) {
	if !asPayload(t) {
		return
	}
	if err := (Owner{UID: payloadUID, GID: payloadUID}).Do(func() error { return nil }); err != nil {
		t.Errorf("own uid: %v", err)
	}
	err := Owner{UID: payloadUID + 1, GID: payloadUID}.Do(func() error { t.Error("ran"); return nil })
	if err == nil || !strings.Contains(err.Error(), "not as root") {
		t.Errorf("other uid: %v", err)
	}
}

// TestBecome: where the kernel asks for the effective user, as at /proc/sys, root's is not what it sees.
func TestBecome(t *testing.T) {
	needRoot(t)
	const sysctl = "/proc/sys/kernel/domainname" // root's, mode 0644; opening it changes nothing
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("x"), 0o600))
	owner := Owner{UID: payloadUID, GID: payloadUID, Groups: []int{payloadUID, 20001}}
	var wg sync.WaitGroup
	for range 8 { // also: threads of earlier rounds must have root's identity again
		wg.Go(func() {
			if err := owner.Become(func() error {
				if uid, gid := os.Geteuid(), os.Getegid(); uid != payloadUID || gid != payloadUID {
					t.Errorf("effective user %d, group %d", uid, gid)
				}
				for _, path := range []string{sysctl, secret} {
					if fd, err := unix.Open(path, unix.O_WRONLY, 0); err == nil {
						unix.Close(fd)
						t.Errorf("%s was opened", path)
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			fd, err := unix.Open(secret, unix.O_WRONLY, 0)
			if err != nil || os.Geteuid() != 0 || os.Getegid() != os.Getgid() {
				t.Errorf("afterwards: %v, effective user %d, group %d", err, os.Geteuid(), os.Getegid())
			}
			unix.Close(fd)
		})
	}
	wg.Wait()
	want := errors.New("x")
	if err := owner.Become(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	if err := Self().Become(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("as the process: %v", err)
	}
}
