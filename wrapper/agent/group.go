package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// group is the payload's own control group on a machine without containers. This process is outside of it, so that the kernel spares it
// when the payload runs out of memory. Whatever it starts for the payload is in the group from its first moment (CLONE_INTO_CGROUP).
type group struct {
	dir  string   // NAME.slice, with limits and figures
	join *os.File // NAME.scope in it, for the processes
}

// openGroup opens the group that a starter has made in a directory.
func openGroup(dir string) (*group, error) {
	name, ok := strings.CutSuffix(filepath.Base(dir), ".slice")
	if !ok || !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%.200q is not the absolute path of a control group NAME.slice", dir)
	}
	join, err := os.Open(filepath.Join(dir, name+".scope"))
	if err != nil {
		return nil, fmt.Errorf("open the payload's control group: %w", err)
	}
	return &group{dir: dir, join: join}, nil
}

// attributes are those of a new process of the payload.
func (g *group) attributes() *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if g != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(g.join.Fd())
	}
	return sys
}

// figures reads the group's figures. The limits of groups above are the machine's, as under the stock starter, and not the payload's.
func (g *group) figures() *cgroup { return &cgroup{version: 2, dirs: map[string]string{"": g.dir}} }

// openFigures finds the payload's control group: its own, or that of the container. Beside other programs, without a group of its own, it has
// none.
func (a *agent) openFigures() {
	switch {
	case a.cgroup != nil:
		return
	case a.group != nil:
		a.cgroup = a.group.figures()
	case !a.companion:
		a.cgroup = openCgroup("/")
	}
	if a.cgroup != nil {
		a.cgroup.openPeak()
	}
}
