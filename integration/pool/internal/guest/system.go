package guest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/tool"
)

// System is what guests boot: a kernel, and a root file system that several of them can use at the same time.
type System struct {
	// Kernel is the path of an executable.
	Kernel string
	// Root is a directory.
	Root string
}

// root has the kernel, its modules where modprobe looks for them, and what a node of the cluster needs. mmdebstrap is among
// it because `pool up` looks for it; patchelf and mke2fs are used from the outside, see System.command.
var root = debian.RootFS{
	Suite: "forky", Variant: "minbase",
	Packages: []string{
		"user-mode-linux", "containerd", "runc", "crun", "mmdebstrap", "iproute2", "kmod", "ca-certificates", "procps", "util-linux", "mount",
		"e2fsprogs", "patchelf",
		// For pods with networks of their own.
		"containernetworking-plugins",
		// A kubelet asks logind to wait with a shutdown until its pods have ended (org.freedesktop.login1). elogind is logind for
		// machines that systemd does not run.
		"dbus-daemon", "dbus-system-bus-common", "elogind",
	},
	Customize: []string{
		`mkdir -p "$1"/lib/modules && mv "$1"/usr/lib/uml/modules/* "$1"/lib/modules/ && chroot "$1" depmod "$(ls "$1"/lib/modules)"`,
		`rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*`,
	},
}

// MakeSystem returns the system, from the cache or freshly made.
func MakeSystem(ctx context.Context, store cache.Cache, log io.Writer) (System, error) {
	key := root.Suite + "-" + cache.Key(root.Key())
	dir, err := store.Dir(ctx, "guest-root", key, func(ctx context.Context, dir string) error {
		return root.Make(ctx, log, filepath.Join(dir, "root"), filepath.Join(dir, "tmp"))
	})
	if err != nil {
		return System{}, err
	}
	s := System{Root: filepath.Join(dir, "root")}
	// The kernel has the path of its libraries in it, so a cache that was moved needs another one.
	dir, err = store.Dir(ctx, "guest-kernel", cache.Key(key, s.Root), func(ctx context.Context, dir string) error {
		return s.adaptKernel(ctx, filepath.Join(dir, "linux"))
	})
	s.Kernel = filepath.Join(dir, "linux")
	return s, err
}

// Programs of the root file system may need a later C library than the host has.
func (s System) loader() string    { return filepath.Join(s.Root, "lib64", "ld-linux-x86-64.so.2") }
func (s System) libraries() string { return filepath.Join(s.Root, "usr", "lib", "x86_64-linux-gnu") }

// command runs a program of the root file system on the host. It needs no right that the caller does not have.
func (s System) command(ctx context.Context, program string, args ...string) error {
	all := append([]string{s.loader(), "--library-path", s.libraries(), filepath.Join(s.Root, program)}, args...)
	return tool.Run(ctx, tool.Command{Args: all})
}

// adaptKernel copies the kernel to path, with the loader and the libraries of the root file system. It cannot be given
// to the loader as other programs can, because it executes itself again.
func (s System) adaptKernel(ctx context.Context, path string) error {
	data, err := os.ReadFile(filepath.Join(s.Root, "usr", "bin", "linux.uml"))
	if err != nil {
		return fmt.Errorf("copying the guests' kernel: %w", err)
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		return fmt.Errorf("copying the guests' kernel: %w", err)
	}
	return s.command(ctx, "usr/bin/patchelf", "--set-interpreter", s.loader(), "--set-rpath", s.libraries(), path)
}

// diskSize is that of a guest's disk in bytes. The file is sparse.
const diskSize = 20 << 30

// MakeDisk makes the file at path, which a guest has as its disk, unless there is one.
func (s System) MakeDisk(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making a guest's disk: %w", err)
	}
	tmp := path + ".new"
	f, err := os.Create(tmp)
	if err != nil {
		return fmt.Errorf("making a guest's disk: %w", err)
	}
	defer os.Remove(tmp)
	err = f.Truncate(diskSize)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = s.command(ctx, "usr/sbin/mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-m", "0", tmp)
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("making a guest's disk: %w", err)
	}
	return nil
}
