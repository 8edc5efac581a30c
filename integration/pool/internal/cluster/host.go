package cluster

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// sysctls are what a kubelet sets when it starts (pkg/kubelet/cm/container_manager_linux.go setupKernelTunables).
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// fixedDirs are the directories that containerd, its shims and the kubelet make at places that cannot be configured.
var fixedDirs = []string{"/run/containerd", "/var/log/containers", "/var/lib/kubelet", "/opt/cni", "/etc/cni"}

// ReadSysctls returns the kernel settings that the kubelet is about to change.
func ReadSysctls() map[string]string {
	values := map[string]string{}
	for _, name := range sysctls {
		if text, err := os.ReadFile("/proc/sys/" + name); err == nil {
			values[name] = strings.TrimSpace(string(text))
		}
	}
	return values
}

// RestoreSysctls sets the kernel settings back.
func RestoreSysctls(values map[string]string) error {
	var errs *multierror.Error
	for name, v := range values {
		path := "/proc/sys/" + name
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == v {
			continue
		}
		if err := os.WriteFile(path, []byte(v), 0); err != nil {
			errs = multierror.Append(errs, fmt.Errorf("setting %s back: %w", name, err))
		}
	}
	return errs.ErrorOrNil()
}

// AbsentDirs returns those directories at fixed places that do not exist yet.
func AbsentDirs() []string {
	var absent []string
	for _, dir := range fixedDirs {
		if _, err := os.Lstat(dir); err != nil {
			absent = append(absent, dir)
		}
	}
	return absent
}

// UnmountBelow unmounts everything below the directories, the innermost first.
func UnmountBelow(dirs ...string) error {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !slices.ContainsFunc(dirs, func(dir string) bool {
			return m.Mountpoint == dir || strings.HasPrefix(m.Mountpoint, dir+"/")
		}), false
	})
	if err != nil {
		return fmt.Errorf("listing mounts: %w", err)
	}
	slices.Reverse(mounts)
	var errs *multierror.Error
	for _, m := range mounts {
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil {
			errs = multierror.Append(errs, fmt.Errorf("unmounting %s: %w", m.Mountpoint, err))
		}
	}
	return errs.ErrorOrNil()
}

// RemoveIdle removes unused entries below dir, and dir itself if nothing is left: links to nowhere, sockets that nobody
// listens on, empty directories.
func RemoveIdle(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			RemoveIdle(path)
		case e.Type()&os.ModeSymlink != 0:
			if _, err := os.Stat(path); err != nil {
				_ = os.Remove(path)
			}
		case e.Type()&os.ModeSocket != 0:
			if conn, err := net.Dial("unix", path); err == nil {
				conn.Close()
			} else {
				_ = os.Remove(path)
			}
		}
	}
	// Fails when something is left, as it should.
	_ = os.Remove(dir)
}
