package main

// shape makes sidecars of the payload containers, if they are to be that: what deploy/components/sidecars does with one.
func (p *pool) shape(spec map[string]any) {
	if !p.settings.Sidecars {
		return
	}
	inits, _ := spec["initContainers"].([]any)
	var rest []any
	for _, c := range list(spec, "containers") {
		if name, _ := c["name"].(string); isPayload(name) {
			c["restartPolicy"] = "Always"
			inits = append(inits, c)
		} else {
			if name == "pilot" {
				c["lifecycle"] = map[string]any{"preStop": map[string]any{"exec": map[string]any{
					"command": []any{"/opt/podstarter/bin/condor_pod_starter", "-pilot-stops"}}}}
			}
			rest = append(rest, c)
		}
	}
	spec["initContainers"], spec["containers"] = inits, rest
	spec["restartPolicy"] = "OnFailure"
}

// isSidecar says whether an init container goes on.
func isSidecar(c map[string]any) bool { return c["restartPolicy"] == "Always" }
