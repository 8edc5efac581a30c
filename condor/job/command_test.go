package job

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInImage: docker's table of ENTRYPOINT and CMD, with the job's own command in the place of CMD.
func TestInImage(t *testing.T) {
	entry, shell, cmd := []string{"/entry", "-x"}, []string{"/bin/sh", "-c", "exec tool"}, []string{"serve", "--all"}
	tests := map[string]struct {
		job        Command
		entry, cmd []string
		want       Command
		wantErr    string
	}{
		"nothing but the image": {entry: entry, cmd: cmd, want: Command{Path: "/entry", Args: []string{"-x", "serve", "--all"}}},
		"arguments replace CMD": {job: Command{Args: []string{"a"}}, entry: entry, cmd: cmd, want: Command{Path: "/entry", Args: []string{"-x", "a"}}},
		"CMD alone":             {cmd: cmd, want: Command{Path: "serve", Args: []string{"--all"}, Search: true}},
		"arguments alone":       {job: Command{Args: []string{"a", "b"}}, cmd: cmd, want: Command{Path: "a", Args: []string{"b"}, Search: true}},
		"a program of the image": {job: Command{Path: "tool", Args: []string{"a"}, Search: true}, entry: entry, cmd: cmd,
			want: Command{Path: "/entry", Args: []string{"-x", "tool", "a"}}},
		"a transferred program": {job: Command{Path: "./job", Args: []string{"a"}, Transferred: true}, entry: entry,
			want: Command{Path: "/entry", Args: []string{"-x", "./job", "a"}}},
		"a shell line": {job: Command{Path: "./job", Transferred: true}, entry: shell, want: Command{Path: "/bin/sh", Args: []string{"-c", "exec tool", "./job"}}},
		"no entry point": {job: Command{Path: "./job", Args: []string{"a"}, Transferred: true}, cmd: cmd,
			want: Command{Path: "./job", Args: []string{"a"}, Transferred: true}},
		"the job's own entry point": {job: Command{Path: "/tool", Entrypoint: true}, entry: entry, cmd: cmd, want: Command{Path: "/tool", Entrypoint: true}},
		"an entry point of PATH":    {entry: []string{"tini", "--"}, cmd: cmd, want: Command{Path: "tini", Args: []string{"--", "serve", "--all"}, Search: true}},
		"one in the sandbox":        {entry: []string{"./x"}, want: Command{Path: "./x", Args: []string{}}},
		"nothing at all":            {wantErr: "neither ENTRYPOINT nor CMD"},
		"an empty word":             {cmd: []string{"", "x"}, wantErr: "is the empty word"},
		"an entry point taken back": {job: Command{Path: "/bin/job", Args: []string{"a"}}, entry: []string{""}, want: Command{Path: "/bin/job", Args: []string{"a"}}},
		"one taken back, and CMD":   {entry: []string{""}, cmd: cmd, want: Command{Path: "serve", Args: []string{"--all"}, Search: true}},
	}
	for name, tt := range tests {
		got, err := tt.job.InImage(tt.entry, tt.cmd)
		if tt.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%s: %+v, %v; want %q", name, got, err, tt.wantErr)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if diff := cmp.Diff([]string{"/entry", "-x"}, entry); diff != "" {
		t.Errorf("the image's list was changed (-want +got):\n%s", diff)
	}
}
