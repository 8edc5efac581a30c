//go:build pool

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestImages runs the probe in every image of the pool, asked for in both ways
// that HTCondor knows.
func TestImages(t *testing.T) {
	oursOnly(t)
	ways := map[string]func(image string) string{
		"docker":    func(image string) string { return "universe = docker\ndocker_image = " + image },
		"container": func(image string) string { return "universe = container\ncontainer_image = docker://" + image },
	}
	type run struct {
		name, image string
		job         harness.Job
	}
	var runs []run
	for _, image := range []string{"busybox", "debian", "probe", "hostile"} {
		for way, commands := range ways {
			steps := "facts"
			if image == "hostile" {
				steps = "suid=/bin/rootsh facts"
			}
			s := job(steps, commands(pool.Image(image)))
			s.Name = "image-" + way + "-" + image
			runs = append(runs, run{way + "/" + image, image, submit(t, s)[0]})
		}
	}
	layers := map[string]string{}
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			if r.image == "hostile" && pool.Crun {
				// It has a link in the place of a directory above the sandboxes. What that names does not exist; runc makes it.
				end := ending(t, r.job)
				if !end.Held || end.Code != holdInvalidDockerImage || end.Subcode != 6 || !strings.Contains(end.Reason, "it must have no link") {
					t.Errorf("%s; want held with code %d, subcode 6, because of the link", end, holdInvalidDockerImage)
				}
				return
			}
			mustExit(t, r.job, 0)
			seen, err := r.job.Facts("out")
			if err != nil {
				t.Fatal(err)
			}
			if seen.Image != r.image {
				t.Errorf("asked for %s, ran in %q", r.image, seen.Image)
			}
			if seen.Layer == "" || layers[seen.Layer] != "" {
				t.Errorf("the root file system %q was already that of %s", seen.Layer, layers[seen.Layer])
			}
			layers[seen.Layer] = r.name
			checkRights(t, seen)
			if r.image != "hostile" {
				return
			}
			shell := seen.Setuid["/bin/rootsh"]
			if !strings.HasPrefix(shell.Mode, "u") || shell.Owner != 0 {
				t.Fatalf("the hostile image's shell is not a setuid-root program (%s, owner %d): the test shows nothing", shell.Mode, shell.Owner)
			}
			if shell.Effective != seen.UID {
				t.Errorf("a setuid-root shell ran as user %d, want %d (%s)", shell.Effective, seen.UID, shell.Error)
			}
		})
	}
}

// TestProgramOfTheImage: the executable is the image's own and is not transferred.
func TestProgramOfTheImage(t *testing.T) {
	oursOnly(t)
	s := harness.Submission{Commands: strings.Join([]string{
		"universe = docker",
		"docker_image = " + pool.Image("probe"),
		"executable = /probe",
		"transfer_executable = false",
		"arguments = facts",
		"should_transfer_files = YES",
		"output = out",
	}, "\n")}
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	seen, err := job.Facts("out")
	if err != nil {
		t.Fatal(err)
	}
	if seen.Image != "probe" || seen.Args[0] != "/probe" {
		t.Errorf("%q of the image %q ran, want /probe of probe", seen.Args[0], seen.Image)
	}
}

// TestSeries: many jobs in a row, in changing images. None is lost, each has its
// own output, and each has a fresh container.
func TestSeries(t *testing.T) {
	oursOnly(t)
	const count = 40
	images := []string{"busybox", "debian", "probe"}
	s := job("file=result.$(Process):$(Process) facts exit=$(code) -- $(Process)",
		"universe = docker",
		"output = out.$(Process)",
		"docker_image = $(image)",
		"transfer_output_files = result.$(Process)")
	var queue strings.Builder
	queue.WriteString("queue code,image from (\n")
	for i := range count {
		fmt.Fprintf(&queue, "%d, %s\n", i%3, pool.Image(images[i%len(images)]))
	}
	queue.WriteString(")")
	s.Queue, s.Count = queue.String(), count
	layers := map[string]int{}
	for i, job := range submit(t, s) {
		end, err := job.WaitEnding(soon(t, 2*patience))
		if err != nil {
			t.Fatal(err)
		}
		if !end.Exited || end.Code != i%3 {
			t.Errorf("job %s: %s, want exit code %d\n%s", job.ID(), end, i%3, output(t, job, "err"))
			continue
		}
		if got := output(t, job, fmt.Sprintf("result.%d", i)); got != fmt.Sprint(i) {
			t.Errorf("job %s: its result is %q, want %d", job.ID(), got, i)
		}
		seen, err := job.Facts(fmt.Sprintf("out.%d", i))
		if err != nil {
			t.Error(err)
			continue
		}
		if want := images[i%len(images)]; seen.Image != want {
			t.Errorf("job %s asked for %s and ran in %q", job.ID(), want, seen.Image)
		}
		if arguments := after(seen.Args, "--"); len(arguments) != 1 || arguments[0] != fmt.Sprint(i) {
			t.Errorf("job %s got the arguments of another: %q", job.ID(), arguments)
		}
		if before, ok := layers[seen.Layer]; ok || seen.Layer == "" {
			t.Errorf("job %s ran in the container (%q) of job number %d", job.ID(), seen.Layer, before)
		}
		layers[seen.Layer] = i
		events, err := job.Events()
		if err != nil {
			t.Fatal(err)
		}
		if runs := executions(events); runs != 1 {
			t.Errorf("job %s was started %d times: %s", job.ID(), runs, harness.Headlines(events))
		}
	}
}

// TestNothingStaysBehind: everything that the containers of a pod share, above all
// memory, is as empty for a job as it was for the one before.
func TestNothingStaysBehind(t *testing.T) {
	for code, steps := range map[int]string{1: "mark=/dev/shm/mark", 2: "shm=7"} {
		s := job(fmt.Sprintf("%s exit=%d", steps, code))
		for n, job := range []harness.Job{submit(t, s)[0], submit(t, s)[0]} {
			if end := ending(t, job); !end.Exited || end.Code != code {
				t.Errorf("%s, job %d: %s: %s", steps, n+1, end, output(t, job, "err"))
			}
		}
	}
}

func executions(events []harness.Event) int {
	n := 0
	for _, e := range events {
		if e.Number == harness.EventExecute {
			n++
		}
	}
	return n
}
