//go:build pool

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/condor/image"
	"podstarter/integration/harness"
)

// TestImageChoice: a job's image depends on what the job names and on the site's
// knobs, all of them set at once.
func TestImageChoice(t *testing.T) {
	oursOnly(t)
	const mapFile = "/etc/condor/e2e-images.map"
	rules := strings.Join([]string{
		`* /^\/cvmfs\/images\.example\.org\/(.+)$/ ` + repository(pool.Image("busybox")) + `/\1`,
		`* tools.sif docker://` + pool.Image("probe"),
	}, "\n")
	t.Cleanup(func() { reconfigure(t, false) }) // after the configuration is as it was
	write(t, mapFile, rules)
	configure(t,
		image.KnobMap+" = "+mapFile,
		image.KnobDenied+" = */*hostile*",
		image.KnobMirrors+" = mirrored.example/some="+repository(pool.Image("probe")),
		image.KnobDefault+` = ifThenElse(TARGET.WantsProbe ?: false, "`+pool.Image("probe")+`", "`+pool.Image("busybox")+`")`,
	)
	reconfigure(t, true)
	base := func(name string) string {
		return strings.TrimPrefix(pool.Image(name), repository(pool.Image(name))+"/")
	}
	singularity := func(name string) string { return "+SingularityImage = " + classads.QuoteOld(name) }
	cases := []struct {
		name, commands, image string
		words                 []string // of the hold reason, when image is empty
	}{
		{"path in cvmfs", singularity("/cvmfs/images.example.org/" + base("busybox")), "busybox", nil},
		{"name of a file", singularity("tools.sif"), "probe", nil},
		{"file that is transferred", "universe = container\ncontainer_image = tools.sif", "probe", nil},
		{"with scheme", singularity("docker://" + pool.Image("debian")), "debian", nil},
		{"without scheme", singularity(pool.Image("debian")), "debian", nil},
		{"mirrored", "universe = docker\ndocker_image = mirrored.example/some/" + base("probe"), "probe", nil},
		{"default for some", "+WantsProbe = true", "probe", nil},
		{"default for all", "", "busybox", nil},
		{"denied", "universe = container\ncontainer_image = docker://" + pool.Image("hostile"), "", []string{"*/*hostile*", image.KnobDenied, "ask"}},
		{"denied by its mirror", "universe = docker\ndocker_image = mirrored.example/some/" + base("hostile"), "", []string{"mirrored.example", "*/*hostile*"}},
	}
	jobs := make([]harness.Job, len(cases))
	for i, c := range cases {
		s := job("facts", c.commands)
		s.Name = "choice-" + strings.ReplaceAll(c.name, " ", "-")
		s.Files = append(s.Files, harness.File{Name: "tools.sif", Content: []byte("no image at all")})
		jobs[i] = submit(t, s)[0]
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.image == "" {
				end := ending(t, jobs[i])
				if !end.Held || end.Code != holdInvalidDockerImage || end.Subcode != image.SubcodeNotAllowed {
					t.Errorf("%s; want held with code %d, subcode %d", end, holdInvalidDockerImage, image.SubcodeNotAllowed)
				}
				for _, word := range c.words {
					if !strings.Contains(end.Reason, word) {
						t.Errorf("the reason %q does not contain %q", end.Reason, word)
					}
				}
				t.Log(end.Reason)
				return
			}
			mustExit(t, jobs[i], 0)
			seen, err := jobs[i].Facts("out")
			if err != nil {
				t.Fatal(err)
			}
			if seen.Image != c.image {
				t.Errorf("ran in %q, want %s", seen.Image, c.image)
			}
		})
	}
}

// TestImagePolicy: a job that a site refuses goes back to the queue with the reason
// in its log, is not held, and runs when it may.
func TestImagePolicy(t *testing.T) {
	oursOnly(t)
	named := "+SingularityImage = " + classads.QuoteOld(pool.Image("busybox"))
	for _, c := range []struct {
		policy       image.Policy
		wrong, right string
	}{
		{image.PolicyNever, named, ""},
		{image.PolicyRequired, "", named},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			configure(t, image.KnobPolicy+" = "+string(c.policy))
			refused := submit(t, job("facts", c.wrong))[0]
			events, err := refused.WaitEvents(soon(t, patience), "an attempt that fails", failed)
			if err != nil {
				t.Fatal(err)
			}
			givenBack(t, events, image.KnobPolicy)
			if err := refused.Tool(t.Context(), "condor_rm"); err != nil {
				t.Fatal(err)
			}
			mustExit(t, submit(t, job("exit=3", c.right))[0], 3)
		})
	}
}

// reconfigure makes the startd ask the starter again what it can do, and waits
// until all its slots say whether they accept .sif files.
func reconfigure(t *testing.T, sif bool) {
	t.Helper()
	ctx := background(t)
	if out, err := pool.EP(ctx, side, "condor_reconfig"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	err := harness.Poll(ctx, fmt.Sprintf("the slots to say that they take .sif files: %v", sif), func() (bool, error) {
		out, err := pool.AP(ctx, "condor_status", "-constraint", "HasPodStarter", "-af", "(HasSIF ?: false)")
		if out == "" || err != nil {
			return false, err
		}
		for slot := range strings.Lines(out) {
			if strings.TrimSpace(slot) != fmt.Sprint(sif) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// write puts a file into the pilot's container until the test ends.
func write(t *testing.T, path, text string) {
	t.Helper()
	if _, err := pool.EPInput(t.Context(), side, strings.NewReader(text+"\n"), "sh", "-c", `cat > "$1"`, "write", path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(context.Background(), side, "rm", "-f", path); err != nil {
			t.Error(err)
		}
	})
}

// TestTargetDir: the sandbox has the name in the container that the job wants,
// unless something else has it.
func TestTargetDir(t *testing.T) {
	oursOnly(t)
	script := harness.File{Name: "script", Mode: 0o755, Content: []byte("#!/bin/sh\npwd; echo $_CONDOR_SCRATCH_DIR; cat \"$1\"; echo made > /srv/job/made\n")}
	into := func(dir string) harness.Submission {
		return harness.Submission{
			Name:  "target-" + strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"),
			Files: []harness.File{script, {Name: "input", Content: []byte("hello\n")}},
			Commands: strings.Join([]string{
				"universe = container",
				"container_image = docker://" + pool.Image("debian"),
				"container_target_dir = " + dir,
				"executable = script",
				"arguments = /srv/job/input",
				"transfer_input_files = input",
				"should_transfer_files = YES",
				"output = out",
			}, "\n"),
		}
	}
	good, bad := submit(t, into("/srv/job"))[0], submit(t, into("/etc"))[0]
	mustExit(t, good, 0)
	if got, want := output(t, good, "out"), "/srv/job\n/srv/job\nhello\n"; got != want {
		t.Errorf("the job sees %q, want %q", got, want)
	}
	if got := output(t, good, "made"); got != "made\n" {
		t.Errorf("what it wrote is %q", got)
	}
	end := ending(t, bad)
	if !end.Held || end.Code != holdFailedToCreateProcess || !strings.Contains(end.Reason, "container_target_dir") || !strings.Contains(end.Reason, "/etc") {
		t.Errorf("%s; want held with code %d and a reason about container_target_dir", end, holdFailedToCreateProcess)
	}
	t.Log(end.Reason)
}
