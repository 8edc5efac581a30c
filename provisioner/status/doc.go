// Package status tells by HTTP what the provisioner sees and does: to Kubernetes
// whether it is healthy, to Prometheus and KEDA in numbers, and to an operator on
// a page.
//
// Names of users, groups and pods come from outside: whoever submits a job chooses
// some of them. They are cut to a length, characters that do not print are
// replaced, and none of them becomes a label of a metric, except for the names of the
// largest schedds and their pools.
package status
