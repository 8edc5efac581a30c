//go:build pool

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"podstarter/integration/pool/controlplane"
)

func TestMain(m *testing.M) {
	controlplane.Exec()
	m.Run()
}

// TestFewPilots runs a small load to its end: each job is bound by one patch, a simulated kubelet follows each with two
// status updates, and the tables say so.
func TestFewPilots(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	l := load{pilots: 10, slots: 2, nodes: 3, job: 4 * time.Second, during: 15 * time.Second, cold: 0.1}
	r := results{load: l, when: time.Now()}
	if err := measure(ctx, l, ".state-scale-test", false, &r); err != nil {
		t.Fatal(err)
	}
	// The first job of a slot begins within the length of a job; one with a cold image takes six seconds more.
	if least := l.pilots * l.slots; r.fleet.jobs < least {
		t.Errorf("%d jobs, want at least %d", r.fleet.jobs, least)
	}
	if r.fleet.unbound > 0 || r.behind > 0 || len(r.fleet.errors) > 0 {
		t.Errorf("%d jobs without a container, %d containers without a status, errors %v", r.fleet.unbound, r.behind, r.fleet.errors)
	}
	if c := r.callsOf(request{pilots, "patch", "pods"}); c.n != r.fleet.jobs || c.failed > 0 {
		t.Errorf("%d patches, %d of which failed, for %d jobs", c.n, c.failed, r.fleet.jobs)
	}
	if c := r.callsOf(request{pilots, "get", "pods"}); c.n != l.pilots*l.slots {
		t.Errorf("%d pods read, want one for each of %d slots", c.n, l.pilots*l.slots)
	}
	if c := r.callsOf(request{pilots, "watch", "pods"}); c.n != r.fleet.watches {
		t.Errorf("%d watches in the audit log, and %d opened", c.n, r.fleet.watches)
	}
	if c := r.callsOf(request{kubelets, "patch", "pods/status"}); c.n == 0 || c.n > 2*r.fleet.jobs {
		t.Errorf("%d status updates for %d jobs, want at most two for each", c.n, r.fleet.jobs)
	}
	if c := r.callsOf(request{kubelets, "get", "pods"}); c.n != 2*r.fleet.jobs {
		t.Errorf("%d pods read by kubelets for %d jobs, want two for each", c.n, r.fleet.jobs)
	}
	text := r.tables()
	for _, want := range []string{"patch pods/status | kubelet", "kube-apiserver", "etcd's log of writes", "100000 | 1m"} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
}
