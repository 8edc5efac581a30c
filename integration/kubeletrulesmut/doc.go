// Package kubeletrules has a small test for each rule of the kubelet, the container
// runtime and the API server that podstarter stands on, so that the next Kubernetes says
// by itself what it broke. The tests have pods of their own and need neither starter nor
// HTCondor.
//
// The comment of each test says the rule, where its source is (of Kubernetes 1.34, in
// pkg/kubelet unless another place is named), and what relies on it.
// docs/developer/kubelet-rules.md is written from these comments.
//
// No test goes by the clock: what must not happen is shown by something that happens
// later.
package kubeletrules
