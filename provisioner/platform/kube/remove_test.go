package kube

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/podapi"
	payloadapi "podstarter/payload"
	"podstarter/provisioner/platform"
)

// A unit that runs is ended with its Job, which would make another pod.
func TestEnd(t *testing.T) {
	for _, manifest := range []string{podManifest, jobManifest} {
		w := newWorld(t, manifest)
		if err := w.cluster.Create(t.Context(), spec1); err != nil {
			t.Fatal(err)
		}
		w.Begin(spec1.Name)
		if err := w.cluster.End(t.Context(), spec1.Name); err != nil {
			t.Fatal(err)
		}
		_, podErr := w.client.CoreV1().Pods("ns").Get(t.Context(), spec1.Name, metav1.GetOptions{})
		_, jobErr := w.client.BatchV1().Jobs("ns").Get(t.Context(), spec1.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(podErr) || !apierrors.IsNotFound(jobErr) {
			t.Errorf("it is there: %v, %v", podErr, jobErr)
		}
	}
}

const podWithNonces = `apiVersion: v1
kind: Pod
metadata: {name: glidein}
spec:
  initContainers:
  - name: payload
    image: default
    restartPolicy: Always
    env: [{name: POD_STARTER_NONCE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['podstarter/nonce-payload']"}}}]
  containers:
  - {name: pilot, image: pilot}
  - name: payload-2
    image: default
    env:
    - {name: OTHER, value: x}
    - {name: POD_STARTER_NONCE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['podstarter/nonce-payload-2']"}}}
`

// Whether a job has begun in a pod is known by what podstarter's pilot writes into
// it, also after a restart, and such a pod is not ended.
func TestUse(t *testing.T) {
	if noncePrefix != podapi.NonceAnnotation || nonceEnv != payloadapi.NonceEnv {
		t.Errorf("podstarter writes %q for %q", podapi.NonceAnnotation, payloadapi.NonceEnv)
	}
	for name, c := range map[string]struct {
		manifest, annotation string
		want                 platform.Use
	}{
		"no job yet":                {podWithNonces, "podstarter/nonce-payload-3", platform.Unused},
		"a job":                     {podWithNonces, "podstarter/nonce-payload-2", platform.Used},
		"one that has no variable":  {strings.Replace(podWithNonces, "nonce-payload-2", "nonce-payload", 1), "x", platform.UseUnknown},
		"a pilot of another kind":   {podManifest, "x", platform.UseUnknown},
		"a job where none is known": {podManifest, "podstarter/nonce-payload", platform.Used},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.manifest)
			if err := w.cluster.Create(t.Context(), spec1); err != nil {
				t.Fatal(err)
			}
			w.Begin(spec1.Name)
			p := w.pod(spec1.Name).DeepCopy()
			p.Annotations[c.annotation] = "0123"
			if _, err := w.client.CoreV1().Pods("ns").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			again := w.Restart().(*Cluster)
			units, err := again.List(t.Context())
			if err != nil || len(units) != 1 || units[0].Use != c.want {
				t.Errorf("the units are %+v, %v; want one with the use %d", units, err, c.want)
			}
			if err := again.End(t.Context(), spec1.Name); errors.Is(err, platform.ErrBegun) != (c.want == platform.Used) {
				t.Errorf("ending it: %v", err)
			}
		})
	}
}

// A Job whose first pod has had a job and is over may have a second one that is
// silent. It would stay for ever if the first one counted.
func TestEndOfASecondPod(t *testing.T) {
	for phase, ends := range map[corev1.PodPhase]bool{corev1.PodFailed: true, corev1.PodRunning: false} {
		w := newWorld(t, jobManifest)
		if err := w.cluster.Create(t.Context(), spec1); err != nil {
			t.Fatal(err)
		}
		w.Begin(spec1.Name)
		first := w.pod(spec1.Name).DeepCopy()
		second := first.DeepCopy()
		second.Name, second.UID, second.ResourceVersion = first.Name+"-again", "second", ""
		if _, err := w.client.CoreV1().Pods("ns").Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if first.Annotations == nil {
			first.Annotations = map[string]string{}
		}
		first.Annotations[noncePrefix+"payload"] = "0123"
		first.Spec.Containers = append(first.Spec.Containers, corev1.Container{Name: "payload"})
		first.Status.Phase = phase
		if _, err := w.client.CoreV1().Pods("ns").Update(t.Context(), first, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.cluster.End(t.Context(), spec1.Name); errors.Is(err, platform.ErrBegun) == ends || ends && err != nil {
			t.Errorf("the first pod is %s: ending it: %v", phase, err)
		}
	}
}
