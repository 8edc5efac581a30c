package main

import (
	"strconv"

	"podstarter/integration/pool/internal/cluster"
)

// Execution points for tests in which something fails. Each is a pod of its own with one slot, since the kubelet works
// on one change of a pod at a time: an image whose pull is slow or fails would delay the other slots. They find the API
// server where they are told to, so that a test can stand in between, and accept only jobs that name them.
const (
	faultPrefix = "faults-"
	maxFaults   = 8
)

func faultPod(n int) string { return faultPrefix + strconv.Itoa(n) }

// faultPods are the names of the first n of them.
func faultPods(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = faultPod(i + 1)
	}
	return names
}

func (p *pool) faultPods() []string { return faultPods(p.settings.Faults) }

// faultsPlan is the glidein with another name, one slot, limits on memory and disk, a request of CPU, and an API server
// address of its own.
func (p *pool) faultsPlan(name string) plan {
	one := *p
	one.settings.Slots = 1
	return plan{
		pod: name, source: "glidein", suffix: name, configMap: configOf(name), onHost: true,
		config: p.network(0, name) + one.executionPoint() + `
FaultsPod = "$ENV(POD_NAME)"
STARTD_ATTRS = $(STARTD_ATTRS) FaultsPod
START = TARGET.FaultsPod =?= "$ENV(POD_NAME)"
`,
		images: map[string]string{"prepare": p.images["pilot"], pilotContainer: p.images["pilot"], payloadName: p.images["debian"]},
		edit: func(pod map[string]any) {
			spec := child(pod, "spec")
			reachAPIServer(spec, "127.0.0.1", p.settings.FaultsAPI)
			p.shape(spec)
			for _, c := range containers(spec) {
				if c["name"] == payloadName {
					setPath(c, "256Mi", "resources", "limits", "memory")
					setPath(c, "100m", "resources", "requests", "cpu")
				}
			}
			for _, v := range list(spec, "volumes") {
				if v["name"] == "execute" {
					setPath(v, "256Mi", "emptyDir", "sizeLimit")
				}
			}
		},
	}
}

func configOf(pod string) string { return pod + "-config" }

// rename gives a role or its binding a name of its own, if the plan wants that.
func (plan plan) rename(o cluster.Object) {
	if plan.suffix == "" {
		return
	}
	name := o.String("metadata", "name") + "-" + plan.suffix
	switch o.String("kind") {
	case "Role":
		for _, rule := range list(o, "rules") {
			rule["resourceNames"] = []any{plan.pod}
		}
	case "RoleBinding":
		ref := child(o, "roleRef")
		ref["name"] = o.String("roleRef", "name") + "-" + plan.suffix
	default: // the service account is shared
		return
	}
	setPath(o, name, "metadata", "name")
}
