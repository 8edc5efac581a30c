//go:build pool

package podfailures

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"podstarter/integration/harness"
)

// What a kubelet does to pods for the sake of its node. These rows set the kubelet's thresholds, so each runs alone on a pod
// made anew, and only in a guest: a host's memory and disk are not the tests' own.

const mib = 1 << 20

// nodeActions are those of such rows.
var nodeActions = map[string]action{
	"volume over its limit": greedy("disk=big:400", func(ctx context.Context, s *stage) error {
		// By default it looks once a minute.
		return s.kubelet(ctx, map[string]any{"volumeStatsAggPeriod": "5s"})
	}),
	"node low on memory": greedy("memory=700", func(ctx context.Context, s *stage) error {
		// In place: the kubelet changes the limit of the container that runs.
		resize := `{"spec":{"` + s.pool.PayloadList() + `":[{"name":"payload","resources":{"limits":{"memory":"1Gi"}}}]}}`
		if err := s.kubectl(ctx, "", "patch", "pod", s.Pod, "--subresource", "resize", "-p", resize); err != nil {
			return err
		}
		return s.threshold(ctx, "memory.available", 300)
	}),
	"node low on disk":         greedy("disk=/tmp/big:900", func(ctx context.Context, s *stage) error { return s.threshold(ctx, "nodefs.available", 300) }),
	"preempted by the kubelet": asked(critical),
}

func init() { maps.Copy(actions, nodeActions) }

// greedy runs a job that takes more than there is, on a node that was prepared for it.
func greedy(steps string, prepare func(context.Context, *stage) error) action {
	return action{do: func(ctx context.Context, s *stage) error {
		if err := prepare(ctx, s); err != nil {
			return err
		}
		// An image with a /tmp, which is on the node's disk.
		_, err := s.start(ctx, s.pool.Image("debian"), "ready "+steps+" forever")
		s.fail()
		return err
	}}
}

// stats are what the kubelet measures before it evicts.
type stats struct {
	Node struct {
		Memory, Fs struct{ AvailableBytes int64 }
	}
}

// threshold makes the kubelet evict when so much less of a resource, in MiB, is available than now.
func (s *stage) threshold(ctx context.Context, signal string, below int64) error {
	nodes, err := s.pool.Kubectl(ctx, nil, "get", "nodes", "-o", "name")
	if err != nil {
		return err
	}
	text, err := s.pool.Kubectl(ctx, nil, "get", "--raw", "/api/v1/nodes/"+strings.TrimPrefix(strings.TrimSpace(nodes), "node/")+"/proxy/stats/summary")
	if err != nil {
		return err
	}
	var now stats
	if err := json.Unmarshal([]byte(text), &now); err != nil {
		return fmt.Errorf("reading what the kubelet measures: %w", err)
	}
	available := now.Node.Memory.AvailableBytes
	if signal != "memory.available" {
		available = now.Node.Fs.AvailableBytes
	}
	if available < 2*below*mib {
		return fmt.Errorf("%s is %d MiB, too little for this", signal, available/mib)
	}
	return s.kubelet(ctx, map[string]any{
		"evictionHard": map[string]string{signal: strconv.FormatInt(available/mib-below, 10) + "Mi"},
		// The next pod must be admitted soon.
		"evictionPressureTransitionPeriod": "1s",
	})
}

// kubelet starts the kubelet again with other settings, until the row is over.
func (s *stage) kubelet(ctx context.Context, settings map[string]any) error {
	config, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	s.later(func() { _ = s.pool.Up(context.Background(), "--kubelet=") })
	return s.executionPoints(ctx, 1, "--kubelet="+string(config))
}

// critical makes a pod that the kubelet must admit, and that needs more of the CPUs than the row's pod leaves.
func critical(ctx context.Context, s *stage) error {
	cpus, err := s.pool.Kubectl(ctx, nil, "get", "nodes", "-o", "jsonpath={.items[0].metadata.name} {.items[0].status.allocatable.cpu}")
	if err != nil {
		return err
	}
	var node string
	var n int
	if _, err := fmt.Sscan(cpus, &node, &n); err != nil {
		return fmt.Errorf("reading the node's CPUs of %q: %w", cpus, err)
	}
	pod, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "critical", "namespace": harness.Namespace},
		"spec": map[string]any{
			"nodeName": node, "hostNetwork": true, "priorityClassName": "system-node-critical",
			"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
			"containers": []any{map[string]any{
				"name": "critical", "image": s.pool.Image("pause"),
				"resources": map[string]any{"requests": map[string]any{"cpu": fmt.Sprintf("%dm", 1000*n-50)}},
			}},
		},
	})
	if err != nil {
		return err
	}
	s.later(func() { _ = s.kubectl(context.Background(), "", "delete", "pod", "critical", "--wait=false") })
	s.fail()
	return s.kubectl(ctx, string(pod), "apply", "-f", "-")
}
