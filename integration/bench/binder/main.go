// Command binder runs in the pilot container of a pool and binds images to the
// payload container, in one of two ways: through k8sexec, as the starter does, or
// without a wrapper that announces itself, by polling the pod's status. It prints
// one JSON object for each binding.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"podstarter/integration/bench/binding"
	"podstarter/k8sexec"
	"podstarter/k8sexec/options"
)

const (
	container      = "payload"
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
)

var (
	way    = flag.String("way", binding.Ours, "how to bind: "+binding.Ours+", "+binding.Polling+" or "+binding.PollingPlain)
	images = flag.String("images", "", "references, in turns, with commas between")
	count  = flag.Int("n", 5, "bindings that count")
	warm   = flag.Int("warm", 2, "bindings before that do not")
	least  = flag.Duration("least", 0, "shortest time between the last binding and the next")
	most   = flag.Duration("most", 0, "longest time; the time is chosen at random")
	reset  = flag.String("reset", options.ResetAlways, "as POD_STARTER_RESET")
	debug  = flag.Bool("debug", false, "log to standard error")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "binder:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	bind, err := binder(ctx)
	if err != nil {
		return err
	}
	list := strings.Split(*images, ",")
	out := json.NewEncoder(os.Stdout)
	var last time.Time
	for i := range *warm + *count {
		if i > 0 {
			pause := *least + rand.N(*most-*least+1)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		b := binding.Binding{Image: list[i%len(list)]}
		if i > 0 {
			b.Before = list[(i-1)%len(list)]
		}
		began := time.Now()
		if err := bind(ctx, b.Image); err != nil {
			return fmt.Errorf("binding %d, %s: %w", i, b.Image, err)
		}
		ready := time.Now()
		b.Took = ready.Sub(began)
		if !last.IsZero() {
			b.Quiet = began.Sub(last)
		}
		last = ready
		if i < *warm {
			continue
		}
		if err := out.Encode(b); err != nil {
			return err
		}
	}
	return nil
}

func binder(ctx context.Context) (func(context.Context, string) error, error) {
	switch *way {
	case binding.Polling:
		return newPoller(true)
	case binding.PollingPlain:
		return newPoller(false)
	case binding.Ours:
	default:
		return nil, fmt.Errorf("-way=%s", *way)
	}
	log := slog.New(slog.DiscardHandler)
	if *debug {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return func(ctx context.Context, image string) error {
		// Each binding has a backend of its own: a starter lives for one.
		b, err := k8sexec.New(ctx, options.Options{
			PodName: os.Getenv("POD_NAME"), Containers: []string{container}, BaseUID: 10001,
			ControlDir: "/run/podstarter/control", PrivateDir: "/run/podstarter/private", Execute: "/var/lib/condor/execute/jobs",
			BindTimeout: time.Minute, ThrowawayTags: true, DigestLifetime: time.Hour,
			Reset: *reset, KubernetesDir: serviceAccount, Log: log,
		})
		if err != nil {
			return err
		}
		l, err := b.Lease(ctx, wish(image))
		if err != nil {
			return err
		}
		_, err = l.Bind(ctx, request(image))
		return errors.Join(err, l.Release(ctx))
	}, nil
}
