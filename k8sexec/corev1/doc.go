// Package corev1 has the parts of Kubernetes' pods that a starter reads, under the names of
// k8s.io/api/core/v1, and the API server's own statement about a call.
//
// A program that links k8s.io/api/core/v1 holds each type of the API, with methods to encode
// and decode it, because the package registers all of them as it is initialised: 3 MB and 400
// allocations, in a program that starts once for each job. A field that is not here is
// skipped when a pod is decoded. Tests compare names, kinds and constants with k8s.io/api.
package corev1
