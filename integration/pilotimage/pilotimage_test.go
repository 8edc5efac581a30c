//go:build pool

package pilotimage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

var pool *harness.Pool

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var err error
		if pool, err = harness.Open(ctx); err == nil {
			// The pool has this file in each image that it packs itself.
			if _, notBuilt := pool.EP(ctx, harness.Ours, "cat", "/image-name"); notBuilt == nil {
				err = fmt.Errorf("the execution point's image is not that of deploy/image/Dockerfile; start one with `pool up --dockerfile`")
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// pilot runs a shell's command in the pilot container.
func pilot(t *testing.T, command string) string {
	t.Helper()
	out, err := pool.EP(t.Context(), harness.Ours, "sh", "-c", command)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// TestVersion: the image has the HTCondor that the Dockerfile names.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../deploy/image/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^ARG CONDOR=(.+)$`).FindSubmatch(text)
	if want == nil {
		t.Fatal("the Dockerfile has no default of CONDOR")
	}
	if got := pilot(t, `dpkg-query -W -f '${Version}' condor`); got != string(want[1]) {
		t.Errorf("HTCondor %s, want %s", got, want[1])
	}
}

// TestLibraries: no program and no library that is left lacks a library that is not.
func TestLibraries(t *testing.T) {
	out := pilot(t, `find /usr/bin /usr/sbin /usr/lib /usr/libexec /opt -type f \( -perm -100 -o -name '*.so*' \) -exec ldd {} + 2>/dev/null || true`)
	programs := 0
	var file string
	for line := range strings.Lines(out) {
		switch line = strings.TrimSpace(line); {
		case strings.HasSuffix(line, ":"):
			file = strings.TrimSuffix(line, ":")
			programs++
		case strings.Contains(line, "not found"):
			t.Errorf("%s: %s", file, line)
		}
	}
	if programs < 300 {
		t.Errorf("looked at %d programs and libraries only", programs)
	}
}

// TestPlugins: each plugin of HTCondor's package says what it transfers.
func TestPlugins(t *testing.T) {
	schemes := map[string]bool{}
	for path := range strings.SplitSeq(pilot(t, "condor_config_val FILETRANSFER_PLUGINS"), ",") {
		path = strings.TrimSpace(path)
		if filepath.Base(path) == "stash_plugin" {
			continue // named by the configuration, and in no package of Debian
		}
		_, methods, found := strings.Cut(pilot(t, path+" -classad"), "SupportedMethods = ")
		if !found {
			t.Errorf("%s does not say which methods it supports", path)
			continue
		}
		line, _, _ := strings.Cut(methods, "\n")
		for scheme := range strings.SplitSeq(strings.Trim(line, `" `), ",") {
			schemes[scheme] = true
		}
	}
	for _, want := range []string{"https", "data", "box", "gdrive", "onedrive"} {
		if !schemes[want] {
			t.Errorf("no plugin for %s: only %v", want, schemes)
		}
	}
}

// TestLeftOut: what no execution point runs is not there, and the image is as small as docs/admin/image.md says.
func TestLeftOut(t *testing.T) {
	for _, path := range []string{"/usr/sbin/condor_schedd", "/usr/sbin/condor_shadow", "/usr/share/perl", "/usr/lib/systemd/systemd", "/usr/sbin/sshd", "/var/lib/apt/lists/lock"} {
		if out := pilot(t, "ls -d "+path+" 2>/dev/null || true"); out != "" {
			t.Errorf("%s is in the image", out)
		}
	}
	t.Log(pilot(t, "du -xsm --apparent-size / --exclude=/proc --exclude=/sys --exclude=/var/log --exclude=/run | cut -f 1") + " MiB of files")
}

// TestPackagesCanBeAdded: Debian's tools still work, so that a site can add packages in an image of its own.
func TestPackagesCanBeAdded(t *testing.T) {
	out := pilot(t, `set -e; dpkg --audit; dpkg --configure -a; echo 'site site/q string a' | debconf-set-selections; adduser --system --no-create-home --quiet visitor; id -u visitor; deluser --quiet visitor 2>/dev/null || userdel visitor; apt-get check -qq`)
	if !regexp.MustCompile(`^[0-9]+$`).MatchString(out) {
		t.Errorf("Debian's tools say %q, want the number of a user", out)
	}
}
