// Command condor_pod_provisioner makes pods when HTCondor jobs wait that could run
// in them, and none when no job does. docs/admin/provisioner.md is the page for
// sites.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"podstarter/internal/buildinfo"
	"podstarter/provisioner/changes"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/explain"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/batch"
	"podstarter/provisioner/platform/kube"
	"podstarter/provisioner/pool"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
	"podstarter/provisioner/token"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, world{connect: connect, elect: elect}); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "condor_pod_provisioner: %s\n", explain.Clean(err.Error()))
		}
		os.Exit(1)
	}
}

// options are the arguments.
type options struct {
	config, templates, explain, listen string
	dryRun, once, version, wake        bool
	ads                                int
}

func parse(args []string, words io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("condor_pod_provisioner", flag.ContinueOnError)
	f.SetOutput(words)
	f.StringVar(&o.config, "config", "/etc/podstarter/provisioner/provisioner.yaml", "the configuration `file`")
	f.StringVar(&o.templates, "templates", "/etc/podstarter/provisioner/templates", "the `folder` of the templates")
	f.BoolVar(&o.dryRun, "dry-run", false, "do one round, print what it would do, and do nothing")
	f.StringVar(&o.explain, "explain", "", "do one round, print why a `job` (123.4, SCHEDD#123.4), or the jobs of a group, get pods or none, and do nothing")
	f.BoolVar(&o.once, "once", false, "do one round and end; it withdraws no pods, since it does not know how long they have been surplus")
	f.StringVar(&o.listen, "listen", ":8090", "the `address` of /healthz, /metrics and the status page; empty for none")
	f.BoolVar(&o.wake, "wake", false, "make the pod for the offline ad on standard input, as condor_rooster asks for it, and end")
	f.IntVar(&o.ads, "ads", 0, "print the offline ads of `N` pods of each shape, for condor_rooster, and do nothing")
	f.BoolVar(&o.version, "version", false, "print the version")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("reading the arguments: %q is no option", f.Arg(0))
	}
	return o, nil
}

// world is what the program reaches.
type world struct {
	// connect reaches what runs the pods.
	connect func(context.Context, settings.Settings, []template.Template) (platform.Platform, error)
	// elect returns the election of the one provisioner that makes pods, or nil where
	// there is none.
	elect func(context.Context, settings.Settings, []template.Template, *slog.Logger) (election, error)
}

// run does what the arguments say.
func run(ctx context.Context, args []string, out, words io.Writer, w world) error {
	o, err := parse(args, words)
	if err != nil {
		return err
	}
	if o.version {
		_, err := fmt.Fprintln(out, buildinfo.Version())
		return err
	}
	set, err := settings.Read(o.config)
	if err != nil {
		return err
	}
	templates, err := template.Load(o.templates)
	if err != nil {
		return err
	}
	if set.Batch == nil {
		template.Contain(templates)
	}
	nameVersion(ctx, templates, words)
	switch {
	case o.ads > 0:
		return printAds(out, o.ads, set, templates)
	case o.explain != "" && set.OfflineAds:
		return errNoGroups
	}
	others := set.References()
	for _, t := range templates {
		others = append(others, t.References()...)
	}
	query, err := demand.NewQuery(set.Filter, others)
	if err != nil {
		return err
	}
	s := service{
		set: set, templates: templates, world: w, log: slog.New(slog.NewJSONHandler(words, nil)),
		pool: &pool.Pool{Collector: set.Collector, Schedds: set.Schedds, Flocking: set.Flocking, Query: query, Prefix: set.Name},
	}
	switch {
	case o.wake:
		return s.wake(ctx, os.Stdin, out)
	case o.explain == "" && !o.dryRun && !o.once:
		return s.serve(ctx, o.listen)
	}
	r, err := s.provisioner(ctx, nil, o.dryRun || o.explain != "")
	if err != nil {
		return err
	}
	rep := r.Run(ctx)
	switch {
	case o.explain != "":
		return explainWhat(ctx, out, o.explain, set, r, s.pool, rep)
	case o.dryRun:
		return errors.Join(explain.Round(out, rep), rep.Err)
	}
	changes.New(s.log).Round(rep, s.names())
	return rep.Err
}

// cluster is the Kubernetes cluster that the settings name.
func cluster(set settings.Settings) kube.Config {
	return kube.Config{Name: set.Name, Namespace: set.Namespace, GPU: set.GPU, UserAgent: "condor_pod_provisioner/" + buildinfo.Version(), Mint: token.Maker{Collector: set.Collector}.Make}
}

// connect reaches the cluster, or the batch system.
func connect(ctx context.Context, set settings.Settings, templates []template.Template) (platform.Platform, error) {
	if set.Batch != nil {
		if err := noTokens(templates); err != nil {
			return nil, err
		}
		return batch.New(set.Name, set.Batch, templates)
	}
	return kube.Connect(ctx, cluster(set), templates)
}

// elect takes part in the election by a Lease of the cluster. Manifests that are
// wrong are found now, and not when the one that stands by is needed. With a batch
// system there is no election.
func elect(ctx context.Context, set settings.Settings, templates []template.Template, log *slog.Logger) (election, error) {
	kube.LogTo(log)
	if set.Lease.Off || set.Batch != nil {
		return nil, nil
	}
	if err := kube.Check(cluster(set), templates); err != nil {
		return nil, err
	}
	return kube.Elect(ctx, cluster(set), set.Lease.Name, set.Lease.Duration, log)
}

// suffix ends a new unit's name.
func suffix() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
