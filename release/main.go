// Command release makes what a site installs from a commit: all programs for each
// architecture, an image with them, a bill of materials, the Helm chart, checksums.
//
//	go -C release run . [-out ../dist] [-verify] [-base IMAGE]
//
// The same commit and the same version of Go give the same bytes; -verify makes
// the release twice, the second time from a clone in another directory with an
// empty build cache, and compares.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
)

var (
	source = flag.String("source", "..", "`directory` of the checkout")
	out    = flag.String("out", "../dist", "`directory` in which the release gets a directory of its own, named by its version")
	base   = flag.String("base", "", "`image` of a registry, with HTCondor in it, on which the pilot image is built as well; named by its digest, it gives the same bytes each time")
	verify = flag.Bool("verify", false, "make the release a second time and compare")
	dirty  = flag.Bool("dirty", false, "accept a checkout with changes that are not committed")
)

func main() {
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if flag.NArg() > 0 {
		log.Error("the release command takes options only", "argument", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, log); err != nil {
		log.Error("no release", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger) error {
	r, err := describe(ctx, *source)
	if err != nil {
		return err
	}
	if r.Changed && !*dirty {
		return fmt.Errorf("the checkout %s has changes that are not committed; commit them, or say -dirty", r.Source)
	}
	if r.Changed && *verify {
		return fmt.Errorf("-verify compares with a clone of the commit, and %s has changes that are not in it", r.Source)
	}
	r.Base = *base
	dir, err := filepath.Abs(filepath.Join(*out, r.Version))
	if err != nil {
		return err
	}
	log.Info("making a release", "version", r.Version, "commit", r.Commit, "into", dir)
	if err := r.Make(ctx, dir); err != nil {
		return err
	}
	if *verify {
		log.Info("making it again, from a clone and with an empty cache")
		if err := r.makeAgain(ctx, dir); err != nil {
			return err
		}
		log.Info("it came out the same")
	}
	return nil
}
