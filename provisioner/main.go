// Command condor_pod_provisioner makes pods when HTCondor jobs wait that could run
// in them, and none when no job does. It is being built, and there is no page for
// sites yet.
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
	"strings"
	"syscall"
	"time"

	"podstarter/internal/buildinfo"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/explain"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/kube"
	"podstarter/provisioner/pool"
	"podstarter/provisioner/round"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, connect); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "condor_pod_provisioner: %s\n", explain.Clean(err.Error()))
		}
		os.Exit(1)
	}
}

// options are the arguments.
type options struct {
	config, templates, explain string
	dryRun, once, version      bool
}

func parse(args []string, words io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("condor_pod_provisioner", flag.ContinueOnError)
	f.SetOutput(words)
	f.StringVar(&o.config, "config", "/etc/podstarter/provisioner/provisioner.yaml", "the configuration `file`")
	f.StringVar(&o.templates, "templates", "/etc/podstarter/provisioner/templates", "the `folder` of the templates")
	f.BoolVar(&o.dryRun, "dry-run", false, "do one round, print what it would do, and do nothing")
	f.StringVar(&o.explain, "explain", "", "do one round, print why the jobs of a `group` get pods or none, and do nothing")
	f.BoolVar(&o.once, "once", false, "do one round and end")
	f.BoolVar(&o.version, "version", false, "print the version")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("reading the arguments: %q is no option", f.Arg(0))
	}
	return o, nil
}

// run does what the arguments say; connect reaches what runs the pods.
func run(ctx context.Context, args []string, out, words io.Writer, connect func(context.Context, settings.Settings, []template.Template) (platform.Platform, error)) error {
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
	var others []string
	for _, t := range templates {
		others = append(others, t.References()...)
	}
	query, err := demand.NewQuery(set.Filter, others)
	if err != nil {
		return err
	}
	cluster, err := connect(ctx, set, templates)
	if err != nil {
		return err
	}
	r := round.New(round.Config{
		Prefix: set.Name, Templates: templates, Limits: set.Limits, Policy: set.Policy, ReportWithin: set.ReportWithin,
		DryRun: o.dryRun || o.explain != "", Now: time.Now, Suffix: suffix,
	}, &pool.Pool{Collector: set.Collector, Schedds: set.Schedds, Query: query, Prefix: set.Name}, cluster)
	log := slog.New(slog.NewJSONHandler(words, nil))
	switch {
	case o.explain != "":
		rep := r.Run(ctx)
		found, err := explain.Group(out, rep, o.explain)
		if err == nil && !found {
			err = fmt.Errorf("explaining the group %q: no idle jobs have it; -dry-run lists all groups", o.explain)
		}
		return errors.Join(err, rep.Err)
	case o.dryRun:
		rep := r.Run(ctx)
		return errors.Join(explain.Round(out, rep), rep.Err)
	case o.once:
		rep := r.Run(ctx)
		note(log, rep)
		return rep.Err
	}
	for {
		note(log, r.Run(ctx))
		select {
		case <-ctx.Done():
			log.Info("The provisioner ends; pods that are there stay")
			return nil
		case <-time.After(set.Interval):
		}
	}
}

// note logs what a round did.
func note(log *slog.Logger, rep round.Report) {
	if rep.Err != nil {
		log.Error("A round met errors", "error", strings.Join(strings.Fields(rep.Err.Error()), " "))
	}
	for _, name := range rep.Made {
		log.Info("A pod is made", "pod", name)
	}
	for _, name := range rep.Withdrawn {
		log.Info("A pod is withdrawn", "pod", name)
	}
	idle, waiting := 0, 0
	for _, o := range rep.Output.Groups {
		idle += o.Idle
		for _, r := range o.Waiting {
			waiting += r.Jobs
		}
	}
	log.Info("A round is done", "groups", len(rep.Groups), "idle", idle, "without", waiting, "pods", len(rep.Input.Pods), "made", len(rep.Made), "withdrawn", len(rep.Withdrawn))
}

// connect reaches the cluster.
func connect(ctx context.Context, set settings.Settings, templates []template.Template) (platform.Platform, error) {
	return kube.Connect(ctx, kube.Config{Name: set.Name, Namespace: set.Namespace, GPU: set.GPU, UserAgent: "condor_pod_provisioner/" + buildinfo.Version()}, templates)
}

// suffix ends a new unit's name.
func suffix() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
