package k8sexec

import (
	"context"
	"slices"

	"podstarter/k8sexec/audit"
	"podstarter/k8sexec/privatedir"
	"podstarter/payload"
)

// Check implements payload.Backend; see [audit.Inspector.Check].
func (b *Backend) Check(ctx context.Context) (warnings []string, err error) {
	return b.inspector().Check(ctx)
}

// Audit implements payload.Backend; see [audit.Inspector.Audit]. It briefly leases each
// payload container that is free.
func (b *Backend) Audit(ctx context.Context) []payload.Finding { return b.inspector().Audit(ctx) }

func (b *Backend) inspector() *audit.Inspector {
	return &audit.Inspector{Options: b.opt, Connect: b.connect, ConnectTo: b.pullers.Connect, Time: b.timing.check, Proc: b.proc, Root: b.root, Self: b.self, Registry: b.registry, Try: b.try}
}

// try connects to the wrapper of a payload container, if that is free, and asks for its
// usage.
func (b *Backend) try(ctx context.Context, container, nonce string) audit.Trial {
	private, err := privatedir.Open(b.opt.PrivateDir)
	if err != nil {
		return audit.Trial{} // reported already
	}
	l, err := b.leaseOf(private, slices.Index(b.opt.Containers, container))
	if l == nil || err != nil {
		_ = private.Close()
		return audit.Trial{}
	}
	defer func() { _ = l.Release(ctx) }()
	client, err := payload.Dial(ctx, payload.Options{Dir: l.controlDir(), Nonce: nonce})
	if err != nil {
		return audit.Trial{Dialled: err}
	}
	defer client.Close()
	_, unknown := containerOfWrapper(b.proc, client)
	_, usage := client.Usage(ctx)
	return audit.Trial{Container: unknown, Usage: usage}
}
