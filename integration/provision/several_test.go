//go:build pool

package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// long is how long jobs run that a test removes.
const long = "arguments = \"sleep=15m\"\n"

// running waits until all of some jobs run.
func running(ctx context.Context, t *testing.T, jobs []harness.Job) {
	t.Helper()
	for _, job := range jobs {
		if _, err := job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
			t.Fatalf("%v\n%s", err, job.Describe())
		}
	}
}

// count counts the Jobs that were made, by template.
func count(diary *Diary) map[string]int {
	n := map[string]int{}
	for _, j := range diary.Jobs() {
		n[j.Template]++
	}
	return n
}

// TestSeveralJobsInAPod: a pod has room for as many jobs as it has payload containers, which the provisioner knows before there is one,
// and from pods that run. It makes no pod too many, and leaves no job without.
func TestSeveralJobsInAPod(t *testing.T) {
	for _, c := range []struct {
		name string
		Template
	}{
		// By CPUs and memory alone one pod would do for six jobs.
		{"partitionable", Template{Name: "cut", Containers: 3, Partitionable: true, Text: "shapes:\n- {name: wide, cpus: 2, memory: 256Mi, disk: 64Mi}\n"}},
		{"fixed", Template{Name: "fixed", Containers: 2, Text: "shapes:\n- {name: small, cpus: 1, memory: 160Mi, disk: 64Mi}\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := soon(t)
			s := start(ctx, t, unlimited, c.Template)
			diary, err := Follow(ctx, pool)
			if err != nil {
				t.Fatal(err)
			}
			const image = "docker_image = $(IMAGE_busybox)\n" + long
			places := c.Containers
			made := 0
			for _, step := range []struct {
				jobs, pods int
				why        string
			}{
				{2*places + 1, 3, "jobs for two pods and one container"},
				{places - 1, 0, "jobs for the containers that are free"},
				{1, 1, "one job more than there are containers"},
			} {
				jobs := submit(ctx, t, s, c.name, image, "", step.jobs)
				running(ctx, t, jobs)
				rounds(ctx, t, s, 2)
				made += step.pods
				if got := count(diary)[c.Template.Name]; got != made {
					t.Errorf("after %s, %d pods were made in all, want %d", step.why, got, made)
				}
				if made == 3 && step.pods == 3 {
					likeTheTemplates(ctx, t, s, c.Template)
				}
			}
			// No pod has more jobs than containers.
			out, err := pool.AP(ctx, "condor_status", "-constraint", Attribute+" =?= \""+s.Mark+"\" && State == \"Claimed\" && PartitionableSlot =!= true", "-af", "K8SPodName")
			if err != nil {
				t.Fatal(err)
			}
			jobs := map[string]int{}
			for _, name := range strings.Fields(out) {
				jobs[name]++
			}
			if len(jobs) != made || slices.Max(append([]int{0}, values(jobs)...)) > places {
				t.Errorf("the jobs are in these pods, of %d places each: %v", places, jobs)
			}
		})
	}
}

func values(m map[string]int) []int {
	var all []int
	for _, n := range m {
		all = append(all, n)
	}
	return all
}

// TestGPUs: jobs that request no GPU get no pod with some, although they would match, and wait where there is no other. One that requests a
// GPU gets such a pod, and has its device.
func TestGPUs(t *testing.T) {
	if pool.GPUs == 0 {
		t.Fatal("the pool has no devices; start it with --gpus 1")
	}
	const image = "docker_image = $(IMAGE_busybox)\n"
	for _, c := range []struct {
		name string
		gpu  Template
		why  string // what -explain says of a job without a GPU
	}{
		{"fixed", Template{Name: "gpu", GPUs: true, Containers: 1}, "pods with GPUs are made for jobs that request GPUs"},
		{"partitionable", Template{Name: "gpu", GPUs: true, Containers: 2, Partitionable: true}, "TARGET.RequestGPUs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := soon(t)
			c.gpu.Text = "shapes:\n- {name: one, cpus: 1, memory: 256Mi, disk: 64Mi, gpus: 1}\n"
			s := start(ctx, t, unlimited, Template{Name: "plain", Text: "maxPods: 1\nshapes:\n- {name: small, cpus: 1, memory: 160Mi, disk: 64Mi}\n"}, c.gpu)
			diary, err := Follow(ctx, pool)
			if err != nil {
				t.Fatal(err)
			}
			plain := submit(ctx, t, s, "plain", image+long, "", 3)
			running(ctx, t, plain[:1])
			if _, err := s.WaitState(ctx, "two jobs that wait", func(is State) bool { return is.Waiting == 2 }); err != nil {
				t.Fatal(err)
			}
			rounds(ctx, t, s, 2)
			if n := count(diary); n["plain"] != 1 || n["gpu"] != 0 {
				t.Errorf("for jobs without GPUs these pods are made: %v", n)
			}
			// More than the plain template has.
			large := submit(ctx, t, s, "large", image+"request_memory = 200\n", "", 1)
			rounds(ctx, t, s, 2)
			if text := why(ctx, t, s, large[0].Cluster); !strings.Contains(text, c.why) || count(diary)["gpu"] != 0 {
				t.Errorf("of a job without a GPU that is too large for other pods -explain says, without %q, after %v:\n%s", c.why, count(diary), text)
			}
			removeJobs(plain)
			removeJobs(large)

			jobs := submit(ctx, t, s, "gpu", image+"request_gpus = 1\narguments = \"cat=.machine.ad sleep=20s\"\n", "", 2)
			seen := map[string]bool{}
			for _, job := range jobs {
				ending, err := job.WaitEnding(ctx)
				if err != nil {
					t.Fatal(err)
				}
				out, err := job.Output(fmt.Sprintf("out.%d", job.Proc))
				for line := range strings.Lines(out) {
					if name, value, _ := strings.Cut(strings.TrimSpace(line), " = "); name == "AssignedGPUs" {
						seen[value] = true
					}
				}
				if err != nil || ending.String() != "exit code 0" {
					t.Errorf("job %s: %s, %v", job.ID(), ending, err)
				}
			}
			if want := 2 / c.gpu.Containers; len(seen) != 2 || count(diary)["gpu"] != want {
				t.Errorf("two jobs had the GPUs %v, in these pods: %v, want %d with GPUs", seen, count(diary), want)
			}
			err = diary.Wait(ctx, "the end of all pods", func(all []Job) bool { return !slices.ContainsFunc(all, func(j Job) bool { return !j.Over() }) })
			if err != nil {
				t.Fatal(err)
			}
			before := count(diary)["gpu"]
			rounds(ctx, t, s, 2)
			if after := count(diary)["gpu"]; after != before {
				t.Errorf("without a job that waits %d pods with GPUs are made", after-before)
			}
		})
	}
}
