// Package vmroot makes the root file system of a machine that runs virtual machines for HTCondor (integration/vmuniverse): Debian's packages of
// HTCondor with condor_vm-gahp, libvirt, and QEMU, which emulates a processor where there is no KVM.
package vmroot

import (
	"context"
	"io"
	"path/filepath"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/debian"
)

// Submitter is the user of the root file system that submits jobs.
const Submitter = "submitter"

var root = debian.RootFS{
	Suite: "forky", Variant: "minbase",
	Packages: []string{"condor", "condor-vm-gahp", "libvirt-daemon", "libvirt-daemon-driver-qemu", "qemu-system-x86", "procps"},
	Customize: []string{
		`chroot "$1" useradd --create-home --shell /bin/sh ` + Submitter,
		`rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/condor/config.d/*`,
	},
}

// Make returns the directory of the root file system, from the user's cache or freshly made. Nothing may write to it.
func Make(ctx context.Context, log io.Writer) (string, error) {
	store, err := cache.User()
	if err != nil {
		return "", err
	}
	dir, err := store.Dir(ctx, "rootfs-vm", root.Suite+"-"+cache.Key(root.Key()), func(ctx context.Context, dir string) error {
		return root.Make(ctx, log, filepath.Join(dir, "root"), filepath.Join(dir, "tmp"))
	})
	return filepath.Join(dir, "root"), err
}
