//go:build pool

package controllers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/integration/harness"
)

// replicas are the pods of the Deployment, with one slot each.
const replicas = 2

// deployed is the Deployment with its budget.
func deployed() site {
	return site{
		source: "glidein-deployment", components: []string{"disruption-budget"}, kind: "Deployment",
		spec: object{"replicas": replicas},
	}
}

// diaries starts a site with so many pods, and a job that keeps a diary in each of them.
func diaries(ctx context.Context, t *testing.T, s site, pods int) []harness.Job {
	t.Helper()
	s.apply(ctx, t)
	s.slots(ctx, t, pods)
	jobs := s.submit(ctx, t, harness.Submission{
		Files: []harness.File{{Name: "job", Mode: 0o755, Content: []byte(diary)}}, Count: pods,
		Commands: "executable = job\ndocker_image = $(IMAGE_busybox)\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\n" +
			"transfer_output_files = diary\ntransfer_output_remaps = \"diary=diary.$(ProcId)\"\n",
	})
	for _, job := range jobs {
		if _, err := job.WaitEvent(ctx, harness.EventExecute, 1); err != nil {
			t.Fatal(err)
		}
	}
	return jobs
}

// ranAgain checks that each job was told to end, once, ended, and ran to its end in another pod, and never in two at once. Its user reads
// why.
func ranAgain(ctx context.Context, t *testing.T, jobs []harness.Job, why string) {
	t.Helper()
	for _, job := range jobs {
		events := ended(ctx, t, job, 2)
		if hosts := slotsOf(events); len(hosts) != 2 || hosts[0] == hosts[1] {
			t.Errorf("job %s ran in the slots %q, want those of two pods", job.ID(), hosts)
		}
		for _, e := range events {
			if e.Number == harness.EventEvicted && !strings.Contains(e.Text(), why) {
				t.Errorf("job %s was evicted with the words\n%s\nwant %q", job.ID(), e.Text(), why)
			}
		}
		text, err := job.Output("diary." + strconv.Itoa(job.Proc))
		if err != nil {
			t.Error(err)
			continue
		}
		if err := once(text); err != nil {
			t.Errorf("job %s: %v; it noted:\n%s", job.ID(), err, text)
		}
	}
}

// byDrain is what is known of a pod that is drained.
const byDrain = "PodDeleted: EvictionByEvictionAPI"

// slotsOf are the slots in which a job ran.
func slotsOf(events []harness.Event) []string {
	var names []string
	for _, e := range events {
		for _, line := range e.Body {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "SlotName: "); ok && e.Number == harness.EventExecute {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestDrained: the node is drained with kubectl. The budget lets one pod go; the other and its job go on until the replacement runs. Both
// jobs are told, and run again to their ends.
func TestDrained(t *testing.T) {
	ctx := soon(t)
	s := deployed()
	jobs := diaries(ctx, t, s, replicas)
	before := await(ctx, t, "the pods", func(all []pod) bool { return len(all) == replicas })
	node := before[0].Spec.NodeName
	uncordonLater(t, node)
	drained := make(chan error, 1)
	began := time.Now()
	go func() {
		// The pool's own pods have no controller, and stay.
		_, err := pool.Kubectl(ctx, nil, "drain", node, "--delete-emptydir-data", "--pod-selector=pod-template-hash", "--timeout=5m")
		drained <- err
	}()
	// No node takes the replacement.
	all := await(ctx, t, "a replacement that no node takes", func(all []pod) bool {
		return len(all) == replicas && slices.ContainsFunc(all, func(p pod) bool { return p.is("PodScheduled", "False") })
	})
	t.Logf("the first pod has gone, and its replacement waits, after %v", time.Since(began).Round(100*time.Millisecond))
	left := slices.IndexFunc(all, func(p pod) bool { return p.is("Ready", "True") })
	if left < 0 || !slices.ContainsFunc(before, func(p pod) bool { return p.Metadata.UID == all[left].Metadata.UID }) {
		t.Fatalf("no pod is left as it was: %+v", all)
	}
	stay := 0
	for _, job := range jobs {
		events, err := job.Events()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(slotsOf(events)[0], "@"+all[left].Metadata.Name+"@") {
			if _, err := job.WaitEvent(ctx, harness.EventEvicted, 1); err != nil {
				t.Fatal(err)
			}
			continue
		}
		stay++
		if often(events, harness.EventEvicted) > 0 {
			t.Errorf("job %s was evicted, but its pod is there\n%s", job.ID(), harness.Headlines(events))
		}
	}
	if stay != 1 {
		t.Errorf("%d jobs run in the pod that is left, want one", stay)
	}
	select {
	case err := <-drained:
		t.Fatalf("kubectl drain did not wait for the replacement: %v", err)
	default:
	}
	if _, err := pool.Kubectl(ctx, nil, "uncordon", node); err != nil {
		t.Fatal(err)
	}
	if err := <-drained; err != nil {
		t.Errorf("draining: %v", err)
	}
	t.Logf("drained after %v", time.Since(began).Round(100*time.Millisecond))
	ranAgain(ctx, t, jobs, byDrain)
	replaced(ctx, t, before)
	t.Logf("all jobs have ended after %v", time.Since(began).Round(100*time.Millisecond))
}

// TestRestarted: the pods are replaced one after the other, as after a change of the manifest.
func TestRestarted(t *testing.T) {
	ctx := soon(t)
	s := deployed()
	jobs := diaries(ctx, t, s, replicas)
	before := await(ctx, t, "the pods", func(all []pod) bool { return len(all) == replicas })
	began := time.Now()
	kubectl(ctx, t, "rollout", "restart", s.owner())
	kubectl(ctx, t, "rollout", "status", s.owner(), "--timeout=4m")
	t.Logf("rolled out after %v", time.Since(began).Round(100*time.Millisecond))
	ranAgain(ctx, t, jobs, "PodDeleted: the pod is being deleted")
	replaced(ctx, t, before)
	t.Logf("all jobs have ended after %v", time.Since(began).Round(100*time.Millisecond))
}

// uncordonLater lets pods onto the node again when the test ends, if it has not done so itself.
func uncordonLater(t *testing.T, node string) {
	t.Cleanup(func() {
		if _, err := pool.Kubectl(context.Background(), nil, "uncordon", node); err != nil {
			t.Error(err)
		}
	})
}

// replaced waits until as many other pods run as there were, and none of those.
func replaced(ctx context.Context, t *testing.T, before []pod) {
	t.Helper()
	await(ctx, t, "the replacements", func(all []pod) bool {
		return len(all) == len(before) && !slices.ContainsFunc(all, func(p pod) bool {
			return !p.is("Ready", "True") || slices.ContainsFunc(before, func(old pod) bool { return old.Metadata.UID == p.Metadata.UID })
		})
	})
}
