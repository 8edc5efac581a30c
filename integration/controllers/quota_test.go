//go:build pool

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"podstarter/integration/harness"
)

// boundaries gives the namespace the quota and the LimitRange that docs/admin/size.md has as examples, until the test ends.
func boundaries(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, kind := range []string{"ResourceQuota", "LimitRange"} {
		text, err := pool.Example("admin/size.md", "kind: "+kind)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := pool.Kubectl(context.Background(), nil, "-n", harness.Namespace, "delete", kind, "glidein"); err != nil {
				t.Error(err)
			}
		})
		if _, err := pool.Kubectl(ctx, strings.NewReader(text), "-n", harness.Namespace, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
}

// A quota is what its controller says of it: the amounts, by the names of resources.
type quota struct {
	Spec   struct{ Hard map[string]resource.Quantity }
	Status struct{ Hard, Used map[string]resource.Quantity }
}

// counted waits until the controller has counted what is there, and it is as it should be.
func counted(ctx context.Context, t *testing.T, what string, is func(quota) bool) quota {
	t.Helper()
	var q quota
	err := harness.Poll(ctx, what, func() (bool, error) {
		q = quota{}
		out, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "get", "resourcequota", "glidein", "-o", "json")
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal([]byte(out), &q); err != nil {
			return false, err
		}
		for name, hard := range q.Spec.Hard {
			if known, ok := q.Status.Hard[name]; !ok || !known.Equal(hard) {
				return false, nil
			}
		}
		return is(q), nil
	})
	if err != nil {
		t.Fatalf("%v; the quota says %+v", err, q)
	}
	return q
}

// podsAllowed sets how many pods the namespace may have.
func podsAllowed(ctx context.Context, t *testing.T, n int64) {
	t.Helper()
	kubectl(ctx, t, "patch", "resourcequota", "glidein", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"hard":{"pods":"%d"}}}`, n))
}

// TestQuota: the namespace has a quota and a LimitRange. A Deployment gets as many pods as the quota has room for, which run jobs, and
// says what it lacks; it gets the others when there is room. A pod takes no more of the quota than the page says.
func TestQuota(t *testing.T) {
	ctx := soon(t)
	boundaries(ctx, t)
	before := counted(ctx, t, "the quota", func(quota) bool { return true })
	room := func(pods int64) int64 { used := before.Status.Used["pods"]; return used.Value() + pods }
	podsAllowed(ctx, t, room(1))
	counted(ctx, t, "room for one pod", func(quota) bool { return true })

	s := deployed()
	s.apply(ctx, t)
	s.slots(ctx, t, 1)
	kubectl(ctx, t, "wait", s.owner(), "--for=condition=ReplicaFailure", "--timeout=2m")
	message := kubectl(ctx, t, "get", s.owner(), "-o", `jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].message}`)
	if !strings.Contains(message, "exceeded quota: glidein") {
		t.Errorf("the Deployment says %q, want that its quota is used up", message)
	}
	for _, job := range s.submit(ctx, t, harness.Submission{Files: []harness.File{probe}, Commands: "executable = " + harness.ProbeName + "\narguments = \"cat=/image-name\"\ndocker_image = $(IMAGE_busybox)\n"}) {
		ended(ctx, t, job, 1)
	}

	one := counted(ctx, t, "one pod", func(q quota) bool { used := q.Status.Used["pods"]; return used.Value() == room(1) })
	for name, used := range one.Status.Used {
		had, hard := before.Status.Used[name], before.Spec.Hard[name]
		used.Sub(had)
		if name == "requests.cpu" { // the test lets it request less
			continue
		}
		// The page says that there is room for ten.
		if ten := used.AsApproximateFloat64() * 10; ten <= 0 || ten > hard.AsApproximateFloat64() {
			t.Errorf("a pod takes %s of %s, of which the example has %s for ten", used.String(), name, hard.String())
		}
	}

	podsAllowed(ctx, t, room(replicas))
	s.slots(ctx, t, replicas)
}
