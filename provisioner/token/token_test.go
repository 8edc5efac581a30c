package token

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/template"
)

func TestCommand(t *testing.T) {
	fetched := template.Token{Lifetime: time.Hour, Authorizations: []string{"READ", "ADVERTISE_STARTD"}}
	signed := fetched
	signed.Key, signed.Identity = "POOL", "condor@example.org"
	for _, c := range []struct {
		token     template.Token
		collector string
		want      string
	}{
		{fetched, "", "condor_token_fetch -type COLLECTOR -lifetime 3600 -authz READ -authz ADVERTISE_STARTD"},
		{fetched, "cm:9618", "condor_token_fetch -type COLLECTOR -pool cm:9618 -lifetime 3600 -authz READ -authz ADVERTISE_STARTD"},
		{signed, "cm:9618", "condor_token_create -identity condor@example.org -key POOL -lifetime 3600 -authz READ -authz ADVERTISE_STARTD"},
	} {
		tool, args := Command(c.token, c.collector)
		if diff := cmp.Diff(c.want, tool+" "+strings.Join(args, " ")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// tool puts a tool into the path.
func tool(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "condor_token_fetch"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestMake(t *testing.T) {
	tool(t, "echo eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln-_")
	got, err := Maker{}.Make(t.Context(), template.Token{})
	if err != nil || got != "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln-_" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestMakeMistakes(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'a.secret.c and more'": "20 bytes that are no token",
		"":                           "0 bytes that are no token",
		"yes a.b.c | head -c 100000": "bytes that are no token",
		"echo a.secret.c; echo 'ERROR: no right' >&2; exit 1": "exit status 1: ERROR: no right",
	} {
		tool(t, script)
		_, err := Maker{}.Make(t.Context(), template.Token{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want one with %q", script, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("what was printed is in the error: %v", err)
		}
	}
}
