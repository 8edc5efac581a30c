package kube

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the manifest says stays, and the payload containers get the shape.
func TestManifests(t *testing.T) {
	for _, text := range []string{podManifest, jobManifest} {
		m, err := parse(templates(text)[0], "example.org/gpu")
		if err != nil {
			t.Fatal(err)
		}
		job, pod := m.build("site", "ns", spec1)
		object, inner, podSpec := metav1.Object(pod), metav1.Object(pod), (*corev1.PodSpec)(nil)
		if job != nil {
			object, inner, podSpec = job, &job.Spec.Template, &job.Spec.Template.Spec
		} else {
			podSpec = &pod.Spec
		}
		if object.GetName() != "site-plain-1" || object.GetNamespace() != "ns" || inner.GetLabels()["app"] != "glidein" || inner.GetLabels()[labelUnit] != "site-plain-1" {
			t.Errorf("the object is %s/%s with labels %v", object.GetNamespace(), object.GetName(), inner.GetLabels())
		}
		if _, bad := inner.GetLabels()[noteUser]; bad {
			t.Error("the user is a label")
		}
		for _, c := range payloads(podSpec) {
			got := map[string]string{}
			for name, q := range c.Resources.Limits {
				got[string(name)] = q.String()
			}
			want := map[string]string{"cpu": "2", "memory": "2Gi", "ephemeral-storage": "1Gi", "example.org/gpu": "1"}
			if strings.Contains(text, "fuse") {
				want["example.org/fuse"] = "1"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
		for _, c := range podSpec.Containers {
			if c.Name == "pilot" && len(c.Resources.Limits) != 0 {
				t.Errorf("the pilot got %v", c.Resources.Limits)
			}
		}
	}
}

// Spares have the size of the others, and are none of the template's slots.
func TestSpares(t *testing.T) {
	text := podManifest + "  - {name: payload-2, image: default}\n  - {name: payload-3, image: default}\n"
	all := templates(text)
	if _, err := parse(all[0], DefaultGPU); err == nil || !strings.Contains(err.Error(), "it has 3 containers") {
		t.Errorf("the error is %v", err)
	}
	all[0].Spares = 2
	m, err := parse(all[0], DefaultGPU)
	if err != nil {
		t.Fatal(err)
	}
	_, p := m.build("site", "ns", spec1)
	for _, c := range payloads(&p.Spec) {
		if n := c.Resources.Limits.Cpu().Value(); n != 2 {
			t.Errorf("%s has %d CPUs", c.Name, n)
		}
	}
}

func TestManifestsThatAreWrong(t *testing.T) {
	for want, text := range map[string]string{
		"a Deployment of apps/v1; one must be a Job of batch/v1 or a Pod of v1": "apiVersion: apps/v1\nkind: Deployment\n",
		"no object":             "# Nothing.\n",
		"more than one":         podManifest + "---\n" + jobManifest,
		"unknown field":         strings.Replace(podManifest, "image: pilot", "image: pilot, imag: x", 1),
		"slots: 1":              strings.Replace(podManifest, "name: payload", "name: other", 1),
		"parallelism 3":         strings.Replace(jobManifest, "spec:\n", "spec:\n  parallelism: 3\n", 1),
		"completions 2":         strings.Replace(jobManifest, "spec:\n", "spec:\n  completions: 2\n", 1),
		"backoffLimit 4":        strings.Replace(jobManifest, "spec:\n", "spec:\n  backoffLimit: 4\n", 1),
		"error converting YAML": "\t",
	} {
		if _, err := parse(templates(text)[0], DefaultGPU); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "glidein.yaml of the template plain") {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// A manifest can be what kustomize prints: the Job with all that its pods need.
func TestManifestAmongOthers(t *testing.T) {
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: glidein}\n---\n"
	m, err := parse(templates("# Of kustomize.\n---\n" + account + jobManifest + "---\n" + account)[0], DefaultGPU)
	if err != nil || m.job == nil || m.pod != nil || m.job.Spec.Template.Spec.Containers[0].Name != "pilot" {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
}

// A site may request less than the limits; that part stays in each size.
func TestRequestsThatAreLess(t *testing.T) {
	text := strings.Replace(podManifest, "{limits: {example.org/fuse: 1, memory: 5Gi}}",
		"{requests: {cpu: 500m, memory: 1Gi, ephemeral-storage: 3Gi}, limits: {cpu: 2, memory: 3Gi, ephemeral-storage: 2Gi}}", 1)
	m, err := parse(templates(text)[0], DefaultGPU)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second unit is as the first
		_, pod := m.build("site", "ns", spec1)
		c := payloads(&pod.Spec)[0].Resources
		got := map[string]string{}
		for name, q := range c.Requests {
			limit := c.Limits[name]
			got[string(name)] = q.String() + " of " + limit.String()
		}
		// More than the limit makes no sense; no fraction of a byte, and a whole GPU.
		want := map[string]string{"cpu": "500m of 2", "memory": "715827883 of 2Gi", "ephemeral-storage": "1Gi of 1Gi", "nvidia.com/gpu": "1 of 1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// The Job controller makes no pod in the place of one that failed: how often that is
// tried is up to the back-off of the template.
func TestJobTriesOnce(t *testing.T) {
	for policy, want := range map[string]int32{"Never": 0, "OnFailure": math.MaxInt32} {
		text := strings.Replace(jobManifest, "    spec:\n", "    spec:\n      restartPolicy: "+policy+"\n", 1)
		m, err := parse(templates(text)[0], DefaultGPU)
		if err != nil {
			t.Fatal(err)
		}
		job, _ := m.build("site", "ns", spec1)
		if n := job.Spec.BackoffLimit; n == nil || *n != want {
			t.Errorf("restartPolicy %s: backoffLimit is %v, want %d", policy, n, want)
		}
		text = strings.Replace(text, "\nspec:\n", "\nspec:\n  backoffLimit: 4\n", 1)
		if _, err := parse(templates(text)[0], DefaultGPU); err == nil || !strings.Contains(err.Error(), "backoffLimit 4") {
			t.Errorf("restartPolicy %s: the error is %v", policy, err)
		}
	}
}
