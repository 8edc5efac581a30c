package podapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Event is something that whoever looks at the pod should see.
type Event struct {
	Warning bool   // or a change for the better
	Reason  string // one word, in camel case
	Message string // at most MaxEventMessage bytes
}

// MaxEventMessage is how long a message may be, in bytes (kubernetes
// pkg/apis/core/validation/events.go, NoteLengthLimit).
const MaxEventMessage = 1024

// EventSource is the component that events come from; deploy/policy goes by it.
const EventSource = "podstarter"

// CreateEvent makes an event of the pod, in JSON by hand: every starter would have to register
// its type. It needs the permission to create events.
func (c *Client) CreateEvent(ctx context.Context, pod *corev1.Pod, e Event, now time.Time) error {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	at := now.UTC().Format(time.RFC3339)
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"generateName": c.name + ".", "namespace": c.namespace},
		"involvedObject": map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": c.namespace, "name": c.name, "uid": pod.UID},
		"source":         map[string]any{"component": EventSource, "host": pod.Spec.NodeName},
		"type":           kind, "reason": e.Reason, "message": e.Message, "firstTimestamp": at, "lastTimestamp": at, "count": 1,
	})
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return c.rest.Post().MaxRetries(0).AbsPath("/api/v1/namespaces", c.namespace, "events").
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
}
