// Package kube makes pods in one namespace of a Kubernetes cluster: Jobs, if the
// template's manifest is one, or bare pods.
//
// It lists and watches pods and Jobs that have its label, creates them and
// deletes those that have not begun. It needs no other right, no custom resource
// and nothing outside of its namespace. Only where pods have tokens of their own, it
// creates Secrets, and reads none.
//
// All that must be known of a unit is in labels and annotations of its object.
package kube
