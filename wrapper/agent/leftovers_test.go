package agent

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestObjectsOf(t *testing.T) {
	const shm = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n" +
		"         0          3   600                  4096  1234  1234      0 10001 10001 10001 10001          0          0 1795210936                  4096                     0\n" +
		"         0          4   600                  4096  1234  1234      0 10002 10002 10002 10002          0          0 1795210936                  4096                     0\n"
	const sem = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n" +
		"         0          7   600          1 10001 10001 10001 10001          0 1795210936\n"
	tests := map[string]struct {
		table string
		want  []uintptr
		bad   bool
	}{
		"shared memory":    {shm, []uintptr{3}, false},
		"given away":       {"key msqid uid cuid\n0 1 10002 10001\n0 2 10002 10002\n", []uintptr{1}, false},
		"semaphores":       {sem, []uintptr{7}, false},
		"nothing":          {"", nil, false},
		"an unknown table": {"key id\n0 1\n", nil, true},
		"no creator":       {"key semid uid\n0 1 10001\n", nil, true},
		"no number":        {"key semid uid cuid\n0 x 10001 10001\n", nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := objectsOf(bufio.NewScanner(strings.NewReader(tt.table)), 10001)
			if (err != nil) != tt.bad || !tt.bad && !cmp.Equal(tt.want, got) {
				t.Errorf("got %v, error %v; want %v", got, err, tt.want)
			}
		})
	}
}

// TestRemoveLeftovers leaves things as a payload would, and checks that they are removed
// and others' things are not.
func TestRemoveLeftovers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const uid, other = 54321, 54322
	leave := func(uid int, name string) string {
		t.Helper()
		dir := filepath.Join("/dev/shm", fmt.Sprintf("%s-%d", name, os.Getpid()))
		for _, d := range []string{dir, filepath.Join(dir, "in")} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(d) })
		}
		for _, path := range []string{filepath.Join(dir, "in", "f"), filepath.Join(dir, "in"), dir} {
			if strings.HasSuffix(path, "f") {
				if err := os.WriteFile(path, nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chown(path, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, "in"), 0); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	mine, theirs := leave(uid, "leftover-mine"), leave(other, "leftover-theirs")
	id := sharedMemoryOf(t, uid)

	if err := removeLeftovers(uid, uid); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(mine); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", mine, err)
	}
	if _, err := os.Lstat(theirs); err != nil {
		t.Errorf("what belongs to another user is gone: %v", err)
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, new(unix.SysvShmDesc)); err == nil {
		t.Errorf("shared memory segment %d is still there", id)
	}
	if os.Geteuid() != 0 {
		t.Error("the process is no longer root")
	}
}

// TestRemoveTemporary: the payload's own files of any kind are removed, but nothing that
// they link to; with too many files, none is removed.
func TestRemoveTemporary(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const uid = 54321
	dir, err := os.MkdirTemp("/dev/shm", "temporary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for _, make := range []func() error{
		func() error { return os.WriteFile(outside, nil, 0o666) },
		func() error { return os.WriteFile(filepath.Join(dir, "image's"), nil, 0o666) },
		func() error { return os.WriteFile(filepath.Join(dir, "mine"), nil, 0) },
		func() error { return os.Symlink(outside, filepath.Join(dir, "link")) },
		func() error { return os.Mkdir(filepath.Join(dir, "locked"), 0) },
		func() error { return os.Symlink(dir, filepath.Join(dir, "locked", "loop")) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"mine", "link", "locked", "locked/loop"} {
		if err := os.Lchown(filepath.Join(dir, name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeTemporary([]string{dir, "/nonexistent"}, 3, uid, uid); err == nil || !strings.Contains(err.Error(), "more than 3") {
		t.Errorf("too many files: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "mine")); err != nil {
		t.Error(err)
	}
	deep := filepath.Join(dir, "deep")
	for _, d := range []struct {
		levels int
		bad    bool
	}{{maxTemporaryDepth + 1, true}, {maxTemporaryDepth, false}} {
		path := deep
		for range d.levels {
			if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, uid, uid)); err != nil {
				t.Fatal(err)
			}
			path = filepath.Join(path, "in")
		}
		err := removeTemporary([]string{dir, "/nonexistent"}, 100, uid, uid)
		if bad := err != nil && strings.Contains(err.Error(), "too deep"); bad != d.bad || err != nil && !bad {
			t.Errorf("directories %d deep: %v", d.levels, err)
		}
		os.RemoveAll(deep)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "image's" {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Lstat(outside); err != nil {
		t.Error(err)
	}
}

// TestRemoveGivenAway: System V objects that the payload made and gave to another user can
// still be used by the payload: the kernel gives a creator the owner's rights (ipcperms in
// ipc/util.c).
func TestRemoveGivenAway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const uid, other = 54321, 54322
	type object struct {
		name          string
		get, ctl      uintptr
		a, b          uintptr // arguments of get after the key
		number, extra uintptr // ctl(id, command, buffer) or ctl(id, 0, command, buffer)
	}
	objects := []*object{
		{name: "shared memory", get: unix.SYS_SHMGET, ctl: unix.SYS_SHMCTL, a: 4096, b: unix.IPC_CREAT | 0o600},
		{name: "semaphores", get: unix.SYS_SEMGET, ctl: unix.SYS_SEMCTL, a: 1, b: unix.IPC_CREAT | 0o600, extra: 1},
		{name: "message queue", get: unix.SYS_MSGGET, ctl: unix.SYS_MSGCTL, a: unix.IPC_CREAT | 0o600},
	}
	control := func(o *object, command int, buffer unsafe.Pointer) (errno syscall.Errno) {
		if o.extra != 0 {
			_, _, errno = unix.Syscall6(o.ctl, o.number, 0, uintptr(command), uintptr(buffer), 0, 0)
		} else {
			_, _, errno = unix.Syscall(o.ctl, o.number, uintptr(command), uintptr(buffer))
		}
		return errno
	}
	var room [256]byte // struct shmid64_ds and the like; struct ipc64_perm comes first
	perm := (*unix.SysvIpcPerm)(unsafe.Pointer(&room))
	err := asPayload(uid, uid, func() error {
		for _, o := range objects {
			id, _, errno := unix.Syscall(o.get, unix.IPC_PRIVATE, o.a, o.b)
			if errno != 0 {
				return fmt.Errorf("make %s: %w", o.name, errno)
			}
			o.number = id
			t.Cleanup(func() { control(o, unix.IPC_RMID, nil) })
			if errno := control(o, unix.IPC_STAT, unsafe.Pointer(&room)); errno != 0 {
				return fmt.Errorf("look at %s: %w", o.name, errno)
			}
			perm.Uid, perm.Gid = other, other
			if errno := control(o, unix.IPC_SET, unsafe.Pointer(&room)); errno != 0 {
				return fmt.Errorf("give %s away: %w", o.name, errno)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := removeLeftovers(uid, uid); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if errno := control(o, unix.IPC_STAT, unsafe.Pointer(&room)); errno == 0 {
			t.Errorf("%s of user %d, made by user %d, is still there", o.name, perm.Uid, perm.Cuid)
		}
	}
}

// sharedMemoryOf makes a System V shared memory segment that belongs to a user.
func sharedMemoryOf(t *testing.T, uid uint32) int {
	t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	var desc unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &desc); err != nil {
		t.Fatal(err)
	}
	desc.Perm.Uid, desc.Perm.Gid = uid, uid
	if _, err := unix.SysvShmCtl(id, unix.IPC_SET, &desc); err != nil {
		t.Fatal(err)
	}
	return id
}
