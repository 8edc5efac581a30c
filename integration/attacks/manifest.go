package attacks

import (
	"slices"
	"strings"
)

// Names in deploy/glidein.
const (
	pilotContainer   = "pilot"
	payloadContainer = "payload"
	binVolume        = "podstarter-bin"
	controlDirectory = "/run/podstarter/control"
)

// object is a member of a manifest that is an object itself; it is made if it is
// not there.
func object(m map[string]any, name string) map[string]any {
	o, ok := m[name].(map[string]any)
	if !ok {
		o = map[string]any{}
		m[name] = o
	}
	return o
}

// list is a member of a manifest that is a list of objects.
func list(m map[string]any, name string) []map[string]any {
	items, _ := m[name].([]any)
	var out []map[string]any
	for _, i := range items {
		if o, ok := i.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// containers are those of a pod that live as long as it does, sidecars too.
func containers(pod map[string]any) []map[string]any {
	spec := object(pod, "spec")
	sidecars := slices.DeleteFunc(list(spec, "initContainers"), func(c map[string]any) bool { return c["restartPolicy"] != "Always" })
	return append(sidecars, list(spec, "containers")...)
}

func security(container map[string]any) map[string]any { return object(container, "securityContext") }

// payloads turns an edit of a payload container into one of a pod.
func payloads(edit func(container map[string]any)) func(pod map[string]any) {
	return func(pod map[string]any) {
		for _, c := range containers(pod) {
			if name, _ := c["name"].(string); name == payloadContainer || strings.HasPrefix(name, payloadContainer+"-") {
				edit(c)
			}
		}
	}
}
