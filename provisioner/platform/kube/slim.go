package kube

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// slim drops what is not looked at, so that 5,000 pods take megabytes instead of
// a hundred, whatever others write into them.
func slim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		o.ObjectMeta, o.Spec = slimMeta(&o.ObjectMeta, payloads(&o.Spec)), looked(&o.Spec)
	case *batchv1.Job:
		o.ObjectMeta, o.Spec = slimMeta(&o.ObjectMeta, nil), batchv1.JobSpec{}
	}
	return object, nil
}

// maxNote is how many bytes of a note are kept.
const maxNote = 512

func slimMeta(from *metav1.ObjectMeta, payloads []*corev1.Container) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: from.Name, Namespace: from.Namespace, UID: from.UID, ResourceVersion: from.ResourceVersion, OwnerReferences: from.OwnerReferences,
		CreationTimestamp: from.CreationTimestamp, DeletionTimestamp: from.DeletionTimestamp, Labels: map[string]string{}, Annotations: map[string]string{},
	}
	for _, key := range []string{labelProvisioner, labelUnit, labelTemplate, labelShape} {
		if value, ok := from.Labels[key]; ok {
			m.Labels[key] = value
		}
	}
	notes := []string{noteUser, noteGroup, noteSize, noteManifest}
	for _, c := range payloads {
		notes = append(notes, noncePrefix+c.Name)
	}
	for _, key := range notes {
		if value, ok := from.Annotations[key]; ok {
			m.Annotations[key] = strings.ToValidUTF8(value[:min(len(value), maxNote)], "")
		}
	}
	return m
}

var _ cache.TransformFunc = slim

// looked returns what use and placed look at.
func looked(pod *corev1.PodSpec) (s corev1.PodSpec) {
	s.NodeName = pod.NodeName
	for _, c := range payloads(pod) {
		s.Containers = append(s.Containers, corev1.Container{
			Name: c.Name, Env: slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return !isNonce(c.Name, e) }),
		})
	}
	return s
}
