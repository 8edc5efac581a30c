package agent

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// takeIdentity makes this thread the payload's user for good: only the requested groups, no
// capabilities, and no way to gain any by execve (no_new_privs).
func takeIdentity(s *payload.Spec, switchUser bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if !switchUser {
		return nil
	}
	if err := dropBoundingSet(); err != nil {
		return err
	}
	if s.AsRoot {
		return remainRoot()
	}
	groups := make([]uint32, len(s.Groups))
	for i, g := range s.Groups {
		groups[i] = uint32(g)
	}
	first := unsafe.Pointer(unsafe.SliceData(groups))
	// Raw system calls: the Go functions would change all threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {
		return fmt.Errorf("set %d supplementary groups: %w; the container needs the capability SETGID", len(groups), errno)
	}
	gid, uid := uintptr(s.GID), uintptr(s.UID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return fmt.Errorf("become group %d: %w; the container needs the capability SETGID", s.GID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("become user %d: %w; the container needs the capability SETUID", s.UID, errno)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return checkIdentity(s.UID, s.GID)
}

// remainRoot makes this thread root without groups and capabilities. Without no_new_privs,
// a program that root executes would get the bounding set's capabilities again
// (capabilities(7), prctl(2)).
func remainRoot() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leave all supplementary groups: %w; the container needs the capability SETGID", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0); errno != 0 {
		return fmt.Errorf("become group 0: %w", errno)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return checkIdentity(0, 0)
}

// lastCapability bounds the search for the kernel's last capability.
const lastCapability = 63

// dropBoundingSet empties the capability bounding set. This needs CAP_SETPCAP, which the
// pod may have dropped; then no_new_privs must suffice.
func dropBoundingSet() error {
	for c := range lastCapability + 1 {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		switch {
		case errors.Is(err, unix.EINVAL): // past the last capability
			return nil
		case errors.Is(err, unix.EPERM):
			return nil
		case err != nil:
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	return nil
}

// dropCapabilities empties the other sets. The change of user has already emptied the
// permitted and effective sets, unless "securebits" prevent it.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: Linux before 4.3
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// checkIdentity checks the result: this is the last moment to notice a mistake.
func checkIdentity(user, group int) error {
	var ids [6]uint32
	_, _, errUID := unix.RawSyscall(unix.SYS_GETRESUID, uintptr(unsafe.Pointer(&ids[0])), uintptr(unsafe.Pointer(&ids[1])), uintptr(unsafe.Pointer(&ids[2])))
	_, _, errGID := unix.RawSyscall(unix.SYS_GETRESGID, uintptr(unsafe.Pointer(&ids[3])), uintptr(unsafe.Pointer(&ids[4])), uintptr(unsafe.Pointer(&ids[5])))
	uid, gid := uint32(user), uint32(group)
	if errUID != 0 || errGID != 0 || ids != [6]uint32{uid, uid, uid, gid, gid, gid} {
		return fmt.Errorf("the change to user %d, group %d left %v: %w", user, group, ids, unix.EPERM)
	}
	return nil
}
