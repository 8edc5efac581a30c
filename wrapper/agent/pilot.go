package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pilot is a pilot that runs without root, in its own container. It may have the payload's
// user. Only the group tells them apart: the pilot is always in it, a payload never (see
// agent.check).
type pilot struct {
	uid, group int
}

// parsePilot reads UID:GROUP.
func parsePilot(text string) (*pilot, error) {
	user, group, found := strings.Cut(text, ":")
	uid, errU := strconv.ParseUint(user, 10, 31)
	gid, errG := strconv.ParseUint(group, 10, 31)
	if !found || errU != nil || errG != nil || uid == 0 || gid == 0 {
		return nil, fmt.Errorf("%.40q is not UID:GROUP, two numbers above 0", text)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("a wrapper that is user %d cannot serve another one; it must be root", os.Geteuid())
	}
	return &pilot{uid: int(uid), group: int(gid)}, nil
}

// admit sets the mode of an open file: the group gets the owner's permissions except write.
// Root in that group does not need the capability CHOWN for this (chown(2)). Without a
// pilot only the owner has access.
func (p *pilot) admit(fd int, mode uint32) error {
	if p == nil {
		return unix.Fchmod(fd, mode)
	}
	if err := unix.Fchown(fd, -1, p.group); err != nil {
		return p.explain(err)
	}
	return unix.Fchmod(fd, mode|mode>>3&0o050)
}

// admitAt does the same to a socket; connecting to it takes write permission (unix(7)).
func (p *pilot) admitAt(dir int, name string, mode uint32) error {
	if p == nil {
		return nil // the umask gave it its mode
	}
	if err := unix.Fchownat(dir, name, -1, p.group, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return p.explain(err)
	}
	return unix.Fchmodat(dir, name, mode|mode>>3&0o060, 0)
}

func (p *pilot) explain(err error) error {
	return fmt.Errorf("give it to group %d: %w; the container must have the group in supplementalGroups of its pod", p.group, err)
}
