package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
)

// down stops everything and leaves the machine as it was, except for installed packages and the cache. It does as much as
// it can and needs none of the pool's parts to work.
func down(ctx context.Context, dir statedir.Dir) error {
	prog := newProgress(os.Stdout)
	unlock, err := lock(ctx, dir, prog)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := dir.Load(); err != nil {
		prog.print("%v", err)
		if err := dir.Forget(); err != nil {
			return err
		}
	}
	p, err := openPool(dir, prog, io.Discard)
	if err != nil {
		return err
	}
	var errs *multierror.Error
	do := func(name string, f func(context.Context) error) {
		if err := prog.step(ctx, name, f); err != nil {
			errs = multierror.Append(errs, err)
		}
	}
	if p.settings.Guests > 0 {
		do("guests ended", p.stopGuests)
	}
	do("kubelet stopped", func(ctx context.Context) error { return p.daemons.Stop(ctx, cluster.Kubelet, 10*time.Second) })
	if _, ok := p.daemons.Running(cluster.Containerd); ok {
		err := prog.step(ctx, "containers removed", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("containerd does not remove them within a minute"))
			defer cancel()
			return p.node.RemoveContainers(ctx)
		})
		// A containerd that hangs is no reason to stop: its containers end as leftovers.
		if err != nil {
			prog.print("%v", err)
		}
	}
	do("daemons stopped", p.stopDaemons)
	do("devices forgotten", p.forgetGPUs)
	do("leftovers ended", p.node.KillLeftovers)
	do("networks removed", func(context.Context) error { return podnet.RemoveRouters(networkDir(p.dir)) })
	do("mounts and cgroups removed", func(ctx context.Context) error {
		var errs *multierror.Error
		errs = multierror.Append(errs,
			cluster.UnmountBelow(dir.Root, dir.Run()),
			p.node.Cgroups.Remove(),
			cluster.RestoreSysctls(p.settings.Sysctls))
		if p.settings.Link != "" {
			errs = multierror.Append(errs, cluster.RemoveLink(ctx, p.settings.Link))
		}
		return errs.ErrorOrNil()
	})
	if err := errs.ErrorOrNil(); err != nil {
		// What is still mounted must not be emptied, and the records of what still runs are needed for the next try.
		return fmt.Errorf("%w\nthe state stays in %s; run down again", err, dir.Root)
	}
	do("files removed", func(context.Context) error {
		var errs *multierror.Error
		errs = multierror.Append(errs, os.RemoveAll(dir.Run()), os.RemoveAll(dir.Root))
		for _, dir := range p.settings.Absent {
			cluster.RemoveIdle(dir)
		}
		return errs.ErrorOrNil()
	})
	return errs.ErrorOrNil()
}

// stopDaemons stops every daemon that has a record; the API server goes before the etcd that it needs.
func (p *pool) stopDaemons(ctx context.Context) error {
	names, err := p.daemons.Names()
	if err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b string) int {
		rank := func(name string) int {
			return slices.Index([]string{cluster.Containerd, cluster.APIServer, cluster.Etcd}, name)
		}
		return rank(a) - rank(b)
	})
	var errs *multierror.Error
	for _, name := range names {
		if err := p.daemons.Stop(ctx, name, 5*time.Second); err != nil {
			errs = multierror.Append(errs, err)
		}
	}
	return errs.ErrorOrNil()
}
