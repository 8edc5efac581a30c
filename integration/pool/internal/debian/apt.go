// Package debian takes programs and root file systems from Debian's packages, through the mirror that the machine's own
// apt is set up for.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"podstarter/integration/pool/internal/tool"
)

// Programs are what a machine must have, each with the package that brings it.
var programs = []struct{ name, pkg string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"mmdebstrap", "mmdebstrap"},
	{"unshare", "util-linux"},
	{"mount", "mount"},
}

// Install installs the packages of those programs that are missing, and, when link says that a network interface has to be
// made, iproute2. It returns the packages that it installed.
func Install(ctx context.Context, log io.Writer, link bool) ([]string, error) {
	wanted := programs
	if link {
		wanted = append(wanted[:len(wanted):len(wanted)], struct{ name, pkg string }{"ip", "iproute2"})
	}
	var missing []string
	for _, p := range wanted {
		if _, err := exec.LookPath(p.name); err != nil && (len(missing) == 0 || missing[len(missing)-1] != p.pkg) {
			missing = append(missing, p.pkg)
		}
	}
	return missing, install(ctx, log, missing)
}

// InstallProgram installs the package of the same name if the machine does not have the program, and says whether it did.
func InstallProgram(ctx context.Context, log io.Writer, name string) (bool, error) {
	if _, err := exec.LookPath(name); err == nil {
		return false, nil
	}
	return true, install(ctx, log, []string{name})
}

// install installs packages.
func install(ctx context.Context, log io.Writer, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	install := append([]string{"apt-get", "install", "-y", "-q", "--no-install-recommends"}, missing...)
	// The package lists of a fresh machine are absent or old; asking for them first costs seconds once.
	for _, args := range [][]string{{"apt-get", "update", "-q"}, install} {
		if err := run(ctx, log, "", args...); err != nil {
			return fmt.Errorf("installing %s: %w", strings.Join(missing, ", "), err)
		}
	}
	return nil
}

func run(ctx context.Context, log io.Writer, dir string, args ...string) error {
	return tool.Run(ctx, tool.Command{Args: args, Dir: dir, Log: log, Env: []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}})
}

// Mirror returns the address that apt takes the main archive from.
func Mirror(ctx context.Context) (string, error) {
	out, err := tool.Output(ctx, tool.Command{Args: []string{"apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"}})
	if err != nil {
		return "", fmt.Errorf("asking apt for its mirror: %w", err)
	}
	return parseMirror(out)
}

// parseMirror picks the site of the main archive. Other sites, if any, only have updates to it, and their release's
// name says so.
func parseMirror(out string) (string, error) {
	for line := range strings.Lines(out) {
		site, release, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && site != "" && !strings.Contains(release, "-") {
			return site, nil
		}
	}
	return "", errors.New("apt knows no site with a whole Debian release; this program needs a Debian machine with working package sources")
}

// Package fetches one package of the machine's own release and unpacks it into dir.
func Package(ctx context.Context, log io.Writer, name, dir string) error {
	tmp, err := os.MkdirTemp(dir, ".deb-*")
	if err != nil {
		return fmt.Errorf("fetching %s: %w", name, err)
	}
	defer os.RemoveAll(tmp)
	// apt fetches as the user _apt and complains when that one may not write here.
	if err := os.Chmod(tmp, 0o777); err != nil {
		return fmt.Errorf("fetching %s: %w", name, err)
	}
	if err := run(ctx, log, tmp, "apt-get", "download", "-q", name); err != nil {
		// No package lists yet, or the lists name a version that the mirror has replaced.
		if err := run(ctx, log, tmp, "apt-get", "update", "-q"); err != nil {
			return err
		}
		if err := run(ctx, log, tmp, "apt-get", "download", "-q", name); err != nil {
			return err
		}
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("fetching %s: apt-get download left %d packages, not one", name, len(debs))
	}
	return run(ctx, log, "", "dpkg-deb", "-x", debs[0], dir)
}
