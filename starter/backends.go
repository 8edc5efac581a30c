package main

import (
	"context"
	"log/slog"

	"podstarter/condor/config"
	"podstarter/k8sexec"
	"podstarter/payload"
)

// newBackend makes the backend that the settings name.
func newBackend(ctx context.Context, set settings, cfg *config.Config, log *slog.Logger) (Backend, error) {
	b, err := k8sexec.New(ctx, k8sexec.Options{
		PodName: set.podName, PodNamespace: set.podNamespace,
		Containers: set.containers, BaseUID: set.payloadUID,
		ControlDir: set.controlDir, PrivateDir: set.privateDir, Execute: cfg.String("EXECUTE", ""),
		DefaultImage: set.defaultImage, BindTimeout: set.bindTimeout,
		ThrowawayTags: set.throwawayTags, DigestLifetime: set.digestLifetime, Reset: set.reset,
		KubernetesDir: set.kubernetesDir, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return podBackend{b}, nil
}

// podBackend and podLease give k8sexec's types the shape of the interfaces
// here: a method that returns a concrete type does not satisfy one that
// returns an interface.
type podBackend struct{ *k8sexec.Backend }

func (b podBackend) Lease(ctx context.Context) (Lease, error) {
	l, err := b.Backend.Lease(ctx)
	if err != nil {
		return nil, err
	}
	return podLease{l}, nil
}

type podLease struct{ *k8sexec.Lease }

func (l podLease) Bind(ctx context.Context, req payload.BindRequest) (Container, error) {
	c, err := l.Lease.Bind(ctx, req)
	if err != nil {
		return nil, err
	}
	return c, nil
}
