package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pilot is a pilot that runs without root, in a container of its own. Its user
// may be the payload's too: nothing but the group tells them apart here, so that a payload
// is never in it (see agent.check), and the pilot always is.
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

// admit gives an open file its mode: what the owner may, but write, the group
// may too. Root is not in need of the capability CHOWN for that, if it is in the
// group (chown(2)). Without a pilot nobody but the owner may anything.
func (p *pilot) admit(fd int, mode uint32) error {
	if p == nil {
		return unix.Fchmod(fd, mode)
	}
	if err := unix.Fchown(fd, -1, p.group); err != nil {
		return p.explain(err)
	}
	return unix.Fchmod(fd, mode|mode>>3&0o050)
}

// admitAt does the same to a socket, to which only those who may write to it
// may connect (unix(7)).
func (p *pilot) admitAt(dir int, name string, mode uint32) error {
	if p == nil {
		return nil // made with the umask
	}
	if err := unix.Fchownat(dir, name, -1, p.group, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return p.explain(err)
	}
	return unix.Fchmodat(dir, name, mode|mode>>3&0o060, 0)
}

func (p *pilot) explain(err error) error {
	return fmt.Errorf("give it to group %d: %w; the container must have the group in supplementalGroups of its pod", p.group, err)
}
