package guest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandLine(t *testing.T) {
	m := Machine{
		Name: "one", Dir: "/run/x/guests", Memory: 512, Disk: "/state/disk", MAC: "52:54:00:12:00:02",
		Init: "/state/bin/pool", Config: "/state/config.json",
	}
	first := []string{
		"mem=512M", "seccomp=on", "umid=one", "uml_dir=/run/x/guests", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
		"init=/state/bin/pool", "con=null", "con0=null,fd:1", "ssl=null", "quiet", "panic=-1", "ubd0=/state/disk",
	}
	last := []string{"--", "guest-init", "/state/config.json"}
	if diff := cmp.Diff(append(first[:len(first):len(first)], last...), m.commandLine()); diff != "" {
		t.Errorf("without a network (-want +got):\n%s", diff)
	}
	m.Wire = os.Stdin
	want := append(append(first[:len(first):len(first)], "vec0:transport=fd,fd=3,mac=52:54:00:12:00:02,depth=64"), last...)
	if diff := cmp.Diff(want, m.commandLine()); diff != "" {
		t.Errorf("with a network (-want +got):\n%s", diff)
	}
}

// No machine has this much memory, so none has room for it in /dev/shm.
func TestMemoryThatHasNoRoom(t *testing.T) {
	const exbibyte = 1 << 40 // in MiB
	if got := memoryDir(exbibyte, "/fallback"); got != "/fallback" {
		t.Errorf("an EiB of memory goes to %s", got)
	}
}

func TestConfigRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	want := Config{
		Hostname: "one", Root: "/cache/root", Shares: []Share{{"/a", ReadOnly}, {"/b", Layered}}, Private: []string{"/b/c"},
		Network: &Network{Address: "198.18.0.2/24", MTU: 1400}, Args: []string{"server", "x"}, Env: []string{"A=b"},
	}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the configuration changed on the way (-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	const boots = "#!/bin/sh\necho 'Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000'\necho Call Trace:\nkill -ABRT $$\n"
	for _, tc := range []struct {
		name, kernel, err string
		unable            bool
	}{
		{"boots", boots, "", false},
		{"says why not", "#!/bin/sh\necho looking for seccomp\necho no seccomp here >&2\nexit 1\n", ": exit status 1: no seccomp here", true},
		{"says nothing", "#!/bin/sh\nexit 1\n", ": exit status 1: it said nothing", true},
		{"crashes", "#!/bin/sh\necho oh >&2\nkill -ABRT $$\n", ": signal: aborted: oh", false},
		{"runs no program", strings.Replace(boots, "0x00000000", "0x0000000b", 1), ": signal: aborted: Call Trace:", false},
		{"ends", "#!/bin/sh\necho 7.2\n", ": it ended as if that were its work: 7.2", false},
		{"is no program", "", ": permission denied: it said nothing", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := System{Kernel: filepath.Join(t.TempDir(), "linux")}
			mode := os.FileMode(0o755)
			if tc.kernel == "" {
				mode = 0o644
			}
			if err := os.WriteFile(s.Kernel, []byte(tc.kernel), mode); err != nil {
				t.Fatal(err)
			}
			err := s.Check(t.Context())
			got := errorText(err)
			if tc.err == "" && got != "" || !strings.HasSuffix(got, tc.err) || tc.err != "" && !strings.Contains(got, s.Kernel) {
				t.Errorf("Check: %q, want … %q", got, tc.err)
			}
			if errors.Is(err, ErrUnable) != tc.unable {
				t.Errorf("Check: %q; says that the machine is unable: %t, want %t", got, !tc.unable, tc.unable)
			}
		})
	}
}
