package podfailures

// Changes to what a pod reports. All take the pod as JSON has it.

// path descends through nested objects and makes those that are missing.
func path(m map[string]any, names ...string) map[string]any {
	for _, n := range names {
		next, ok := m[n].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[n] = next
		}
		m = next
	}
	return m
}

// payload is the payload container in one of the lists, which may lack it, or nil.
func payload(m map[string]any, lists ...string) map[string]any {
	for _, list := range lists {
		items, _ := m[list].([]any)
		for _, i := range items {
			if o, ok := i.(map[string]any); ok && o["name"] == payloadContainer {
				return o
			}
		}
	}
	return nil
}

func payloadSpec(pod map[string]any) map[string]any {
	return payload(path(pod, "spec"), "containers", "initContainers")
}

func payloadStatus(pod map[string]any) map[string]any {
	return payload(path(pod, "status"), "containerStatuses", "initContainerStatuses")
}

// payloadContainer is the name of the payload container in the pods of these tests.
const payloadContainer = "payload"

// runs reports whether the pod's spec asks for the image and the kubelet has seen
// that.
func runs(pod map[string]any, image string) bool {
	c := payloadSpec(pod)
	return c != nil && c["image"] == image && path(pod, "status")["observedGeneration"] == path(pod, "metadata")["generation"]
}

// Waiting makes the kubelet report why it cannot start the image.
func Waiting(image, reason, message string) func(map[string]any) {
	return func(pod map[string]any) {
		c := payloadStatus(pod)
		if c == nil || !runs(pod, image) {
			return
		}
		c["state"] = map[string]any{"waiting": map[string]any{"reason": reason, "message": message}}
	}
}

// Over makes the pod report its end from the moment that it is to run the image.
func Over(image, reason, message string) func(map[string]any) {
	return func(pod map[string]any) {
		if runs(pod, image) {
			status := path(pod, "status")
			status["phase"], status["reason"], status["message"] = "Failed", reason, message
		}
	}
}

// Disrupted makes the cluster take the pod away for a reason of its own.
func Disrupted(image, reason, message string) func(map[string]any) {
	return func(pod map[string]any) {
		if !runs(pod, image) {
			return
		}
		path(pod, "metadata")["deletionTimestamp"] = "2038-01-01T00:00:00Z"
		status := path(pod, "status")
		conditions, _ := status["conditions"].([]any)
		status["conditions"] = append(conditions, map[string]any{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message})
	}
}

// Ended changes the reason with which the payload's containers ended.
func Ended(reason string) func(map[string]any) {
	return func(pod map[string]any) {
		c := payloadStatus(pod)
		for _, state := range []string{"state", "lastState"} {
			if c == nil {
				return
			}
			if s, ok := c[state].(map[string]any); ok {
				if t, ok := s["terminated"].(map[string]any); ok {
					t["reason"] = reason
				}
			}
		}
	}
}
