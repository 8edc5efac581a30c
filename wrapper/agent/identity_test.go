package agent

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

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

// TestGroupsAreLeft: supplementary groups are given up before anything else. The kernel
// refuses that call to an ordinary user. If the call were missing, all later ones would
// succeed, since they ask for the present identity.
func TestGroupsAreLeft(t *testing.T) {
	own := payload.Spec{UID: os.Geteuid(), GID: os.Getegid()}
	if own.UID == 0 {
		own.UID, own.GID = 1_990_000_000+os.Getpid(), 1_990_000_000+os.Getpid()
	}
	asRoot := own
	asRoot.AsRoot = true
	for name, become := range map[string]func() error{
		"a payload":              func() error { return takeIdentity(&own, true) },
		"container-root":         func() error { return takeIdentity(&asRoot, true) },
		"the removal of a thing": func() error { return becomeOnThread(own.UID, own.GID) },
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			var groups []int
			onThread(func() {
				foreign := [1]uint32{1_980_000_000}
				_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&foreign)), 0)
				err = become()
				groups, _ = unix.Getgroups() // of this thread
			})
			if os.Geteuid() != 0 {
				if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "groups") {
					t.Errorf("%v, want a refusal to change the groups", err)
				}
				return
			}
			if err != nil || len(groups) > 0 {
				t.Errorf("groups %v are left, %v", groups, err)
			}
		})
	}
}

// TestIdentityIsChecked: the check compares the kernel's answer for both user and group.
func TestIdentityIsChecked(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	if err := checkIdentity(uid, gid); err != nil {
		t.Error(err)
	}
	for _, ids := range [][2]int{{uid + 1, gid}, {uid, gid + 1}} {
		if err := checkIdentity(ids[0], ids[1]); !errors.Is(err, unix.EPERM) {
			t.Errorf("user %d, group %d passed as %v: %v", uid, gid, ids, err)
		}
	}
}

// TestWhoIsServed: the wrapper serves root, this user and the pilot's user.
func TestWhoIsServed(t *testing.T) {
	own := os.Geteuid()
	const stranger, piloting = 1_990_000_001, 1_990_000_002
	for _, tt := range []struct {
		pilot *pilot
		uid   int
		want  bool
	}{
		{nil, 0, true}, {nil, own, true}, {nil, stranger, false}, {nil, piloting, false}, {nil, -1, false},
		{&pilot{uid: piloting}, piloting, true}, {&pilot{uid: piloting}, stranger, false},
	} {
		if got := (&agent{pilot: tt.pilot}).trusts(tt.uid); got != tt.want {
			t.Errorf("user %d, with pilot %+v: %v", tt.uid, tt.pilot, got)
		}
	}
}

// TestPilotsGroupIsTheirs: no payload may have the group that may enter the control
// directory, not even as a supplementary group.
func TestPilotsGroupIsTheirs(t *testing.T) {
	const pilots = 1_990_000_003
	for _, s := range []payload.Spec{{GID: pilots}, {GID: 5, Groups: []int{6, pilots}}} {
		s.Activation, s.UID, s.Path, s.Dir = "test", 7, "/bin/true", "/"
		failure := (&agent{pilot: &pilot{uid: 1, group: pilots}}).check(&s)
		if failure == nil || failure.Stage != payload.StageIdentity || !strings.Contains(failure.Detail, "control directory") {
			t.Errorf("group %d, groups %v: %+v", s.GID, s.Groups, failure)
		}
	}
}
