package imagetree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestAccount(t *testing.T) {
	const line = "slot1:x:10001:10002::/scratch:/bin/sh\n"
	big := strings.Repeat("#", maxList+1)
	for name, tt := range map[string]struct {
		passwd string // empty for none
		link   string // what it is a link to
		want   string
	}{
		"added":                 {passwd: "root:x:0:0::/:/bin/sh\n", want: "root:x:0:0::/:/bin/sh\n" + line},
		"no last line feed":     {passwd: "root:x:0:0::/:/bin/sh", want: "root:x:0:0::/:/bin/sh\n" + line},
		"empty":                 {passwd: " ", want: " \n" + line},
		"known":                 {passwd: "alice:x:10001:5::/:/bin/sh\n", want: "alice:x:10001:5::/:/bin/sh\n"},
		"no list":               {},
		"a link":                {passwd: "x\n", link: "other", want: "x\n"},
		"a link that leads out": {passwd: "x\n", link: "../../outside", want: "x\n"},
		"too long":              {passwd: big, want: big},
		"no lines":              {passwd: "\x00:::\n:::", want: "\x00:::\n:::\n" + line},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			etc := filepath.Join(top, "root", "etc")
			must(t, os.MkdirAll(etc, 0o755))
			file := filepath.Join(etc, "passwd")
			if tt.link != "" {
				must(t, os.Symlink(tt.link, file))
			}
			if tt.passwd != "" {
				must(t, os.WriteFile(file, []byte(tt.passwd), 0o644))
			}
			root, err := unix.Open(filepath.Join(top, "root"), unix.O_PATH|unix.O_DIRECTORY, 0)
			must(t, err)
			defer func() { _ = unix.Close(root) }()
			must(t, Account{Name: "slot1", UID: 10001, GID: 10002, Home: "/scratch"}.add(root, false))
			got, err := os.ReadFile(file)
			if tt.passwd != "" {
				must(t, err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%.2000s", diff)
			}
		})
	}
	t.Run("again", func(t *testing.T) {
		top := t.TempDir()
		file := filepath.Join(top, "etc", "passwd")
		must(t, os.Mkdir(filepath.Join(top, "etc"), 0o755))
		root, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		defer func() { _ = unix.Close(root) }()
		const image = "root:x:0:0::/:/bin/sh\n"
		account := Account{Name: "slot1", UID: 10001, GID: 10002, Home: "/second"}
		for before, want := range map[string]string{
			image + "slot1:x:10001:10002::/first:/bin/sh\n":        image + "slot1:x:10001:10002::/second:/bin/sh\n",
			image + "slot1:x:10001:10002::/first:/bin/sh":          image + "slot1:x:10001:10002::/second:/bin/sh\n",
			"slot1:x:10001:10002::/first:/bin/sh\n":                "slot1:x:10001:10002::/second:/bin/sh\n",
			image:                                                  image + "slot1:x:10001:10002::/second:/bin/sh\n",
			image + "alice:x:10001:5:Alice:/home/alice:/bin/zsh\n": image + "alice:x:10001:5:Alice:/home/alice:/bin/zsh\n", // the image's own
			"slot1:x:10001:10002::/first:/bin/sh\n" + image:        "slot1:x:10001:10002::/first:/bin/sh\n" + image,        // not the last: the image's own
		} {
			must(t, os.WriteFile(file, []byte(before), 0o644))
			must(t, account.add(root, true))
			got, err := os.ReadFile(file)
			must(t, err)
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("after %q (-want +got):\n%s", before, diff)
			}
		}
	})
	t.Run("a FIFO", func(t *testing.T) { // that nobody reads must not delay anything
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "etc"), 0o755), unix.Mkfifo(filepath.Join(dir, "etc/passwd"), 0o644))
		root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		defer func() { _ = unix.Close(root) }()
		must(t, Account{Name: "u", UID: 1, GID: 1}.add(root, false))
	})
}
