package podapitest

import (
	"encoding/json"

	apiv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"podstarter/k8sexec/corev1"
)

// Refused is a refusal in the API server's own words.
func Refused(err *apierrors.StatusError) *corev1.StatusError {
	s := err.Status()
	return &corev1.StatusError{Status: corev1.Status{Code: int(s.Code), Reason: corev1.StatusReason(s.Reason), Message: s.Message}}
}

// Copy makes a copy of a pod, or of a part of one, that has nothing in common with it.
func Copy[T any](from *T) *T {
	data, err := json.Marshal(from)
	to := new(T)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(err) // a pod that no API server would take
	}
	return to
}

// Manifest reads a pod as Kubernetes' own type reads it, which has no field by another name.
func Manifest(text []byte) (*corev1.Pod, error) {
	var whole apiv1.Pod
	if err := yaml.UnmarshalStrict(text, &whole); err != nil {
		return nil, err
	}
	data, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	pod := new(corev1.Pod)
	return pod, json.Unmarshal(data, pod)
}
