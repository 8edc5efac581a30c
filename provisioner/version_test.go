package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Jobs may require the version of HTCondor that the pilots have, which is that of the
// provisioner's image.
func TestVersionOfSlots(t *testing.T) {
	args, m := site(t)
	dir := filepath.Dir(args[1])
	tool := func(name, script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tool("condor_q", `printf 'Requirements = versionGE(split(TARGET.CondorVersion)[1],"25.12.0")\nUser = "alice@x"\nJobCount = 3\nJobIds = "1.0 ... 1.2"\n\n'`)
	for _, c := range []struct {
		script string
		want   int
	}{
		{"exit 1", 0},
		{`echo '$CondorVersion: 24.0.1 2024-10-31 $'`, 0},
		{`echo '$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $'; echo '$CondorPlatform: X86_64-Debian_ $'`, 3},
	} {
		tool("condor_version", c.script)
		if _, words, err := start(t.Context(), m, append(args, "-once")...); err != nil || count(t, m) != c.want {
			t.Errorf("%s: %d pods are there, want %d: %v\n%s", c.script, count(t, m), c.want, err, words)
		}
	}
}
