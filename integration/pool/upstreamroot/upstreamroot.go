// Package upstreamroot makes the root file system in which HTCondor's own tests run (integration/upstream): HTCondor of
// Debian's packages, the programs that its tests start, and pytest.
package upstreamroot

import (
	"context"
	"io"
	"path/filepath"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/debian"
)

// Users of the root file system: tests run as Tester, who may use sudo.
const (
	Tester = "tester"
	// Release is HTCondor's, of the Debian release below.
	Release = "25.14"
)

var root = debian.RootFS{
	Suite: "forky", Variant: "minbase",
	Packages: []string{
		"condor", "condor-test", // condor-test has the programs that HTCondor's build makes for its tests
		"python3-pytest", "python3-pytest-httpserver", "python3-psutil",
		"openssh-client", "openssh-server", "procps", "iproute2", "strace", "sudo", "curl", "file", "git", "perl", "gcc", "libc6-dev", "openssl", "util-linux",
	},
	Customize: []string{
		// Some tests of common files submit as this user.
		`chroot "$1" useradd --uid 20002 --create-home --shell /bin/bash tlmiller`,
		`chroot "$1" useradd --uid 20001 --create-home --shell /bin/bash ` + Tester,
		`printf 'Defaults !env_reset, !secure_path, !requiretty\n` + Tester + ` ALL=(ALL) NOPASSWD: ALL\n' >"$1"/etc/sudoers.d/tester && chmod 440 "$1"/etc/sudoers.d/tester`,
		`rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/condor/config.d/*`,
	},
}.WithSid("apptainer", "squashfuse", "fuse2fs", "squashfs-tools")

// Make returns the directory of the root file system, from the user's cache or freshly made. Nothing may write to it.
func Make(ctx context.Context, log io.Writer) (string, error) {
	store, err := cache.User()
	if err != nil {
		return "", err
	}
	dir, err := store.Dir(ctx, "rootfs-upstream", root.Suite+"-"+cache.Key(root.Key()), func(ctx context.Context, dir string) error {
		return root.Make(ctx, log, filepath.Join(dir, "root"), filepath.Join(dir, "tmp"))
	})
	return filepath.Join(dir, "root"), err
}
