package main

import (
	"context"
	"fmt"
	"time"

	"podstarter/integration/pool/controlplane"
)

// results are all measurements.
type results struct {
	load    load
	when    time.Time
	machine string

	fleet  seen
	behind int
	took   time.Duration
	used   map[string]usage
	calls  map[request]*calls
	// api and etcd are what their counters grew by; apiNow and etcdNow the values at the end.
	api, etcd, apiNow, etcdNow metrics
	// idle are the same of a while without jobs.
	idle *results
	// single are the requests of single jobs in a real pool.
	single *single
}

// idleTime is how long the cluster is watched without jobs, to know what it costs by itself.
const idleTime = 30 * time.Second

// observe measures while work runs, after a while without.
func (r *results) observe(ctx context.Context, plane *controlplane.ControlPlane, work func(context.Context)) error {
	r.idle = &results{}
	if err := r.idle.during(ctx, plane, func(ctx context.Context) { wait(ctx, min(idleTime, r.load.during)) }); err != nil {
		return err
	}
	return r.during(ctx, plane, work)
}

func (r *results) during(ctx context.Context, plane *controlplane.ControlPlane, work func(context.Context)) error {
	pids := watched(plane)
	before, err := uses(pids)
	if err != nil {
		return err
	}
	api, etcd, err := plane.Metrics(ctx)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	memory := make(chan map[string]int64, 1)
	go func() { memory <- watchMemory(watching, pids) }()
	began := time.Now()
	work(ctx)
	r.took = time.Since(began)
	stop()
	most := <-memory
	if err := ctx.Err(); err != nil {
		return err
	}
	after, err := uses(pids)
	if err != nil {
		return err
	}
	r.used = used(before, after, most)
	apiNow, etcdNow, err := plane.Metrics(ctx)
	if err != nil {
		return err
	}
	r.apiNow, r.etcdNow = parseMetrics(apiNow), parseMetrics(etcdNow)
	r.api, r.etcd = r.apiNow.since(parseMetrics(api)), r.etcdNow.since(parseMetrics(etcd))
	if r.calls, err = readAuditFile(plane.AuditLog(), began, began.Add(r.took)); err != nil {
		return fmt.Errorf("counting requests: %w", err)
	}
	return nil
}
