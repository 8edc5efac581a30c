package debian

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// RootFS describes a root file system made of packages.
type RootFS struct {
	Suite string
	// Variant is one of mmdebstrap's: minbase for a system, extract to unpack packages and nothing more.
	Variant  string
	Packages []string
	// Customize are shell commands that run at the end; "$1" is the root directory.
	Customize []string
}

// excluded is what no test needs and what makes an image big.
var excluded = []string{
	"/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/help/*", "/usr/share/lintian/*",
}

// args are mmdebstrap's arguments.
func (r RootFS) args(target, mirror string) []string {
	args := []string{
		"mmdebstrap", "--mode=root", "--variant=" + r.Variant,
		// A mirror that is a snapshot serves release files past their date.
		`--aptopt=Acquire::Check-Valid-Until "false"`,
	}
	if len(r.Packages) > 0 {
		args = append(args, "--include="+strings.Join(r.Packages, ","))
	}
	for _, path := range excluded {
		args = append(args, "--dpkgopt=path-exclude="+path)
	}
	for _, c := range r.Customize {
		args = append(args, "--customize-hook="+c)
	}
	return append(args, r.Suite, target, mirror)
}

// Key is all that goes into the root file system, except the present contents of the mirror.
func (r RootFS) Key() string {
	return strings.Join(r.args("", ""), "\x00")
}

// Make writes the root file system to target: a tar file if its name ends in .tar, else a directory. tmp is a directory
// for the work in between.
func (r RootFS) Make(ctx context.Context, log io.Writer, target, tmp string) error {
	mirror, err := Mirror(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return fmt.Errorf("making a root file system: %w", err)
	}
	defer os.RemoveAll(tmp)
	// Its own mount and pid namespace: whatever kills this program or mmdebstrap also takes the mounts and processes that
	// are left in the chroot.
	args := append([]string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "env", "TMPDIR=" + tmp}, r.args(target, mirror)...)
	return run(ctx, log, "", args...)
}

// WithSid adds packages of Debian's unstable distribution to a root file system of forky, and nothing else of it that is not
// needed for them: forky has no Apptainer.
func (r RootFS) WithSid(packages ...string) RootFS {
	r.Customize = append([]string{
		`sed 's/ forky / sid /' "$1"/etc/apt/sources.list >"$1"/etc/apt/sources.list.d/sid.list`,
		`printf 'Package: *\nPin: release n=sid\nPin-Priority: 100\n' >"$1"/etc/apt/preferences.d/sid`,
		`chroot "$1" apt-get update -q`,
		`chroot "$1" apt-get install -q -y --no-install-recommends ` + strings.Join(packages, " "),
	}, r.Customize...)
	return r
}
