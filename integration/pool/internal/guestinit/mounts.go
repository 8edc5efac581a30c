package guestinit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/pool/internal/guest"
)

const (
	// diskDevice is the first disk of a User-Mode Linux machine.
	diskDevice = "/dev/ubda"
	// diskDir is where the disk is mounted.
	diskDir = "/disk"
	// stage is a directory of the host's root that every machine has. The new root is put together in it, on a file
	// system in memory, because the host's root is read-only.
	stage = "/mnt"
)

// A mount is one call of mount(2), at a directory that is made if it does not exist.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", cmp.Or(m.kind, m.source), m.target, err)
	}
	return nil
}

func mountAll(mounts ...mount) error {
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	return nil
}

// buildRoot leaves the host's root directory, in which the kernel started this process, for the guest's own: that of the
// configuration, with a layer of the guest's disk over it. The host's is then at guest.HostRoot.
func buildRoot(c guest.Config) error {
	root, lower, disk := filepath.Join(stage, "root"), filepath.Join(stage, "lower"), filepath.Join(stage, "disk")
	// A guest may be killed at any time. Without delayed allocation a file has its contents as soon as it has its name: the
	// next boot would find unpacked images with empty files otherwise.
	err := mountAll(
		mount{source: "proc", target: "/proc", kind: "proc"},
		mount{source: "stage", target: stage, kind: "tmpfs", data: "mode=755"},
		mount{source: diskDevice, target: disk, kind: "ext4", data: "noinit_itable,nodelalloc"},
		mount{source: "lower", target: lower, kind: "hostfs", flags: unix.MS_RDONLY, data: c.Root},
	)
	if err != nil {
		return err
	}
	// Nothing would find a module that the kernel asks for in the host's root.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := mountAll(mount{source: "/proc", target: filepath.Join(lower, "proc"), flags: unix.MS_BIND}); err != nil {
		return err
	}
	if err := command(ctx, lower, "/usr/sbin/modprobe", "overlay"); err != nil {
		return err
	}
	if err := unix.Unmount(filepath.Join(lower, "proc"), unix.MNT_DETACH); err != nil {
		return err
	}
	if err := overlay(c.Root, lower, disk, root); err != nil {
		return err
	}
	if err := mountAll(mount{source: disk, target: filepath.Join(root, diskDir), flags: unix.MS_MOVE}); err != nil {
		return err
	}
	old := filepath.Join(root, guest.HostRoot)
	if err := os.MkdirAll(old, 0o755); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, old); err != nil {
		return fmt.Errorf("changing the root directory: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// What was mounted on the host's root is mounted afresh. The layers stay, without a path: a node's agent would find the
	// disk at the first of its paths.
	for _, dir := range []string{"/dev", "/proc", stage} {
		if err := unix.Unmount(filepath.Join(guest.HostRoot, dir), unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting the old %s: %w", dir, err)
		}
	}
	// As on machines with systemd: pods may ask to see the mounts of others.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts: %w", err)
	}
	return nil
}

// overlay mounts the directory lower at target, with a layer of the disk over it. Another name has another layer.
func overlay(name, lower, disk, target string) error {
	sum := sha256.Sum256([]byte(name))
	layer := filepath.Join(disk, "layers", hex.EncodeToString(sum[:8]))
	upper, work := filepath.Join(layer, "upper"), filepath.Join(layer, "work")
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return mount{
		source: "overlay", target: target, kind: "overlay",
		data: fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work),
	}.do()
}

// mountKernel mounts what a Linux machine has everywhere. cgroup v2 is the only hierarchy.
func mountKernel(guest.Config) error {
	const hidden = unix.MS_NOSUID | unix.MS_NODEV
	err := mountAll(
		mount{source: "proc", target: "/proc", kind: "proc", flags: hidden | unix.MS_NOEXEC},
		mount{source: "sysfs", target: "/sys", kind: "sysfs", flags: hidden | unix.MS_NOEXEC},
		mount{source: "devtmpfs", target: "/dev", kind: "devtmpfs", flags: unix.MS_NOSUID, data: "mode=755"},
		mount{source: "devpts", target: "/dev/pts", kind: "devpts", flags: unix.MS_NOSUID | unix.MS_NOEXEC, data: "ptmxmode=666,mode=620,gid=5"},
		mount{source: "tmpfs", target: "/dev/shm", kind: "tmpfs", flags: hidden, data: "mode=1777"},
		mount{source: "tmpfs", target: "/run", kind: "tmpfs", flags: hidden, data: "mode=755"},
		mount{source: "tmpfs", target: "/tmp", kind: "tmpfs", flags: hidden, data: "mode=1777"},
		mount{source: "cgroup2", target: "/sys/fs/cgroup", kind: "cgroup2", flags: hidden | unix.MS_NOEXEC},
	)
	if err != nil {
		return err
	}
	for link, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return coverCPUInfo()
}

// coverCPUInfo gives the processors a clock speed; the kubelet does not start without one.
func coverCPUInfo() error {
	const path, copied = "/proc/cpuinfo", "/run/cpuinfo"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(copied, []byte(withSpeed(string(text))), 0o444); err != nil {
		return err
	}
	if err := unix.Mount(copied, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("covering %s: %w", path, err)
	}
	// A container with a user namespace can mount a proc only while the machine has one that nothing covers
	// (fs/namespace.c:mount_too_revealing).
	return mountAll(mount{source: "proc", target: "/run/proc", kind: "proc", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC})
}

// mountShares mounts the host's directories at their own paths, those above before those below, and the guest's own ones
// over them.
func mountShares(c guest.Config) error {
	shares := slices.Clone(c.Shares)
	slices.SortStableFunc(shares, func(a, b guest.Share) int { return len(a.Path) - len(b.Path) })
	for _, s := range shares {
		if err := mountShare(s); err != nil {
			return err
		}
	}
	for _, path := range c.Private {
		source := filepath.Join(diskDir, "private", path)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if err := mountAll(mount{source: source, target: path, flags: unix.MS_BIND}); err != nil {
			return err
		}
	}
	return nil
}

func mountShare(s guest.Share) error {
	switch s.Mode {
	case guest.ReadOnly:
		return mount{source: "host", target: s.Path, kind: "hostfs", flags: unix.MS_RDONLY, data: s.Path}.do()
	case guest.ReadWrite:
		return mount{source: "host", target: s.Path, kind: "hostfs", data: s.Path}.do()
	case guest.Layered:
		return overlay(s.Path, filepath.Join(guest.HostRoot, s.Path), diskDir, s.Path)
	}
	return fmt.Errorf("the share %s has the unknown mode %q", s.Path, s.Mode)
}
