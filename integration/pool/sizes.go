package main

import "strings"

// sizeVariables begins the names of the variables by which a pilot learns what payload containers may use.
const sizeVariables = "PAYLOAD_"

// pullerName begins the names of containers that pull.
const pullerName = "puller"

// unsize takes the requests, the limits and what tells the pilot of them away from all containers but pullers': one small node
// has all pods here, and the slots are like those of the references beside them. A puller keeps its little CPU and memory; the
// node's kubelet knows of no disk to request.
func unsize(spec map[string]any) {
	for _, c := range containers(spec) {
		if name, _ := c["name"].(string); strings.HasPrefix(name, pullerName) {
			for _, kind := range []string{"requests", "limits"} {
				if amounts, ok := child(c, "resources")[kind].(map[string]any); ok {
					delete(amounts, "ephemeral-storage")
				}
			}
			continue
		}
		delete(c, "resources")
		env, ok := c["env"].([]any)
		if !ok {
			continue
		}
		var kept []any
		for _, e := range env {
			if name, _ := e.(map[string]any)["name"].(string); !strings.HasPrefix(name, sizeVariables) {
				kept = append(kept, e)
			}
		}
		c["env"] = kept
	}
}
