//go:build pool

package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// TestPlainJob is a vanilla job that names no image: it runs in the default one,
// with its arguments, environment, standard input and input files.
func TestPlainJob(t *testing.T) {
	s := job(`peek=/run/podstarter/control peek=/opt/podstarter peek=/proc/1/environ file=new:n file=dir/sub/leaf:l file=mapped:m err=complaint facts exit=7 -- one 'two words' 'it''s' ""quoted"" $(DOLLAR)dollar back\slash * ''`,
		"environment = \"PLAIN=1 SPACES='a b  c' QUOTE='it''s' DOUBLE=\"\"x\"\" EMPTY= SEMI=a;b UMLAUT=\u00e4\"",
		"input = stdin",
		"transfer_input_files = plain.txt, tree, script",
		"transfer_output_files = new, dir, mapped",
		`transfer_output_remaps = "mapped=elsewhere"`)
	s.Files = append(s.Files,
		harness.File{Name: "stdin", Content: []byte("a line for standard input\n")},
		harness.File{Name: "plain.txt", Content: []byte("a file\n")},
		harness.File{Name: "tree/deep/leaf", Content: []byte("a leaf\n")},
		harness.File{Name: "script", Mode: 0o755, Content: []byte("#!/bin/sh\n")})
	job := submit(t, s)[0]
	mustExit(t, job, 7)

	seen, err := job.Facts("out")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two words", "it's", `"quoted"`, "$dollar", `back\slash`, "*", ""}; !slices.Equal(want, after(seen.Args, "--")) {
		t.Errorf("arguments:\n%s", cmp.Diff(want, after(seen.Args, "--")))
	}
	for name, want := range map[string]string{
		"PLAIN": "1", "SPACES": "a b  c", "QUOTE": "it's", "DOUBLE": `"x"`, "EMPTY": "", "SEMI": "a;b", "UMLAUT": "\u00e4",
		"BATCH_SYSTEM": "HTCondor", "_CONDOR_SCRATCH_DIR": seen.Dir, "_CONDOR_JOB_AD": seen.Dir + "/.job.ad",
	} {
		if got, ok := environment(seen)[name]; !ok || got != want {
			t.Errorf("environment: %s is %q (there: %v), want %q", name, got, ok, want)
		}
	}
	if seen.Stdin != "a line for standard input\n" {
		t.Errorf("standard input was %q", seen.Stdin)
	}
	for name, want := range map[string]string{
		"plain.txt": "-rw-r--r-- 7", "tree": "drwxr-xr-x", "tree/deep/leaf": "-rw-r--r-- 7", "script": "-rwxr-xr-x 10",
	} {
		if got := seen.Files[name]; got != want {
			t.Errorf("input %s: %q in the sandbox, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"err": "complaint\n", "new": "n", "dir/sub/leaf": "l", "elsewhere": "m"} {
		if got := output(t, job, name); got != want {
			t.Errorf("output %s: %q, want %q", name, got, want)
		}
	}
	checkRights(t, seen)
	if side == harness.Ours {
		if seen.Image != pool.DefaultImage {
			t.Errorf("a job without an image ran in %q, want %q", seen.Image, pool.DefaultImage)
		}
		for path, got := range seen.Peeks {
			if path != "/opt/podstarter" && got != "permission denied" {
				t.Errorf("the payload tried to read %s: %s, want permission denied", path, got)
			}
		}
	}
}

// checkRights holds for each payload, whatever its image.
func checkRights(t *testing.T, seen facts.Facts) {
	t.Helper()
	uid := seen.UID
	if !pool.IsPayloadUID(side, uid) {
		t.Errorf("the payload runs as user %d, want %d or that of another payload container", uid, pool.PayloadUID(side))
	}
	want := map[string]string{"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000"}
	if side == harness.Ours {
		ids := strings.TrimSpace(strings.Repeat(strconv.Itoa(uid)+" ", 4))
		want["Uid"], want["Gid"] = ids, ids
		want["CapBnd"] = "0000000000000000"
		want["NoNewPrivs"] = "1"
	}
	for name, value := range want {
		if seen.Status[name] != value {
			t.Errorf("%s of the payload is %q, want %q", name, seen.Status[name], value)
		}
	}
	if seen.Umask != 0o022 {
		t.Errorf("umask %#o, want 022", seen.Umask)
	}
	if !seen.Session {
		t.Error("the payload does not lead a session of its own")
	}
	if seen.Limits["Max core file size"] != "0" {
		t.Errorf("limit of the core file: %s, want 0", seen.Limits["Max core file size"])
	}
	for number, target := range seen.Descriptor {
		if number != "0" && number != "1" && number != "2" {
			t.Errorf("the payload inherited descriptor %s, %s", number, target)
		}
	}
}

// TestExits: each way to end is reported as it happened.
func TestExits(t *testing.T) {
	cases := []struct {
		steps string
		want  string
	}{
		{"out=fine", "exit code 0"},
		{"exit=255", "exit code 255"},
		{"signal=9", "signal 9"},
		{"signal=15", "signal 15"},
	}
	jobs := make([]harness.Job, len(cases))
	for i, c := range cases {
		jobs[i] = submit(t, job(c.steps))[0]
	}
	for i, c := range cases {
		if got := ending(t, jobs[i]).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.steps, got, c.want)
		}
		ad, err := jobs[i].History(soon(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		kind, code, _ := strings.Cut(c.want, " ")
		bySignal := kind == "signal"
		if got, err := ad.GetBool("ExitBySignal"); err != nil || got != bySignal {
			t.Errorf("%s: ExitBySignal = %v (%v), want %v", c.steps, got, err, bySignal)
		}
		attribute := map[bool]string{false: "ExitCode", true: "ExitSignal"}[bySignal]
		want, _ := strconv.ParseInt(code[strings.LastIndexByte(code, ' ')+1:], 10, 64)
		if got, err := ad.GetInt(attribute); err != nil || got != want {
			t.Errorf("%s: %s = %d (%v), want %d", c.steps, attribute, got, err, want)
		}
	}
}

// after is what follows the first such element.
func after(list []string, element string) []string {
	return list[slices.Index(list, element)+1:]
}

func environment(seen facts.Facts) map[string]string {
	variables := map[string]string{}
	for _, v := range seen.Env {
		name, value, _ := strings.Cut(v, "=")
		variables[name] = value
	}
	return variables
}
