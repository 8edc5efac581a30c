package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesMissing: a plugin runs again if it failed while the file of host names
// changed, and only then.
func TestNamesMissing(t *testing.T) {
	// count counts the runs; names stands in for the kubelet.
	const count = outfile + `echo run >>COUNT; n=$(wc -l <COUNT)
good() { echo '` + reportOK + `' >$out; exit 0; }
names() { echo "127.0.0.1 run$n run$n" >>HOSTS; }
`
	tests := map[string]struct {
		text, hosts string
		class       Class // Input by default
		status      Status
		runs        int
	}{
		"crash":                   {text: `[ $n -eq 2 ] && good; names; kill -6 $$`, hosts: "127.0.0.1 me\n", runs: 2},
		"exit":                    {text: `[ $n -eq 2 ] && good; names; exit 1`, hosts: "127.0.0.1 me\n", runs: 2},
		"crash that stores":       {text: `[ $n -eq 2 ] && good; names; kill -6 $$`, hosts: "127.0.0.1 me\n", class: Output, runs: 2},
		"exit that stores":        {text: `names; exit 1`, hosts: "127.0.0.1 me\n", class: Output, status: Failed, runs: 1},
		"crash, nothing changed":  {text: `kill -6 $$`, hosts: "127.0.0.1 me\n", status: Failed, runs: 1},
		"success, though changed": {text: `names; good`, hosts: "127.0.0.1 me\n", runs: 1},
		"always":                  {text: `names; kill -6 $$`, hosts: "127.0.0.1 me\n", status: Failed, runs: nameTries},
		"empty":                   {text: `[ $n -eq 3 ] && good; exit 1`, runs: 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scratch, dir := t.TempDir(), t.TempDir()
			hosts, runs := filepath.Join(dir, "hosts"), filepath.Join(dir, "runs")
			if err := os.WriteFile(hosts, []byte(tt.hosts), 0o644); err != nil {
				t.Fatal(err)
			}
			p := &Plugin{Path: filepath.Join(dir, "x_plugin"), Name: "X", Protocol: 2, Multi: true}
			script(t, dir, "x_plugin", strings.NewReplacer("HOSTS", hosts, "COUNT", runs).Replace(count+tt.text+"\n"))
			r := newRunner(t, scratch)
			r.Hosts = hosts
			res, err := r.Run(t.Context(), p, max(tt.class, Input), []File{{"x://h/a", scratch + "/a"}}, "")
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(runs)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(text), "\n"); res.Status != tt.status || got != tt.runs {
				t.Errorf("status %d after %d runs, want %d after %d", res.Status, got, tt.status, tt.runs)
			}
		})
	}
}
