// Command bench measures how fast a payload container turns over, beside what
// else could be done, all in one run on one machine: it judges nothing.
//
//   - bindings alone, by a program in the pilot container (binder/): to a pod
//     that has been quiet, back to back, and with POD_STARTER_RESET = image
//   - the same by polling the pod's status, and containerd alone
//   - jobs that follow each other, under the stock starter and ours
//
// A second part moves files in and out, under the stock starter and ours in turns. A third
// compares the ClassAd language. A fourth runs jobs in pods with spare payload containers, and
// many jobs at once in one pod; it gives the pool other numbers of slots meanwhile.
//
// What common input files save is measured when it is asked for, in a pool with a partitionable slot of 4.
//
// What pulls cost the jobs of other slots, and how long images that are files take, is measured only when it is asked for: that brings
// up pools of its own.
//
// With -docs it also writes the tables and plots of the pages turnover.md, transfer-speed.md,
// classads.md, spares.md, pulls.md, images.md and transfer.md in docs/developer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"podstarter/integration/bench/binding"
	"podstarter/integration/bench/language"
	"podstarter/integration/harness"
	"podstarter/integration/measured"
	"podstarter/k8sexec/options"
)

var (
	rounds  = flag.Int("n", 50, "runs of each kind, that is with the same and with another image each; those that are only there to compare with take fewer")
	docs    = flag.String("docs", "", "`directory` to write the pages and plots to; empty for none")
	part    = flag.String("part", "", "turnover, transfers, language or spares alone; or pulls, images, memory or common")
	trips   = flag.Int("rounds", 3, "rounds of transfers, and half of those of the language")
	smaller = flag.Int("smaller", 1, "transfers of sizes and numbers of files that are `N` times smaller")
	quick   = flag.Bool("quick", false, "the same as -smaller 20")
	sides   = flag.String("sides", "", "transfers under one starter alone, ours or stock, to look at a change")
	only    = flag.String("loads", "", "transfers of these loads alone: trivial,large,some,many")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// calm is how long a pod must have been left alone for its kubelet to act on a change at
// once: three of the kubelet's rounds (docs/developer/turnover.md).
const calm = 3400 * time.Millisecond

// command is what the pages name as their origin.
const command = "make bench"

// The two images whose turns are measured.
const imageA, imageB = "busybox", "probe"

func bench(ctx context.Context) error {
	switch *part {
	case pullsPart:
		return pulls(ctx)
	case imagesPart:
		return imageFiles(ctx)
	}
	pool, err := harness.Open(ctx)
	if err != nil {
		return err
	}
	b, err := newBencher(ctx, pool)
	if err != nil {
		return err
	}
	defer b.clean()
	switch *part {
	case memoryPart:
		return pilotMemories(ctx, b)
	case commonPart:
		return commonFiles(ctx, b)
	}
	parts := []struct {
		name string
		run  func(context.Context, *bencher) error
	}{{"turnover", turnover}, {"transfers", transfers}, {"language", compareLanguage}, {"spares", spares}}
	for _, p := range parts {
		if *part != "" && *part != p.name {
			continue
		}
		if err := p.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// transfers measures how fast files are moved in and out.
func transfers(ctx context.Context, b *bencher) error {
	if *quick {
		*smaller = quickly
	}
	r, err := b.transfers(ctx, *trips, *smaller, *only, *sides)
	if r == nil {
		return err
	}
	text := r.tables() // of what there is, if it ended early
	if _, e := os.Stdout.WriteString(text); e != nil {
		return errors.Join(err, e)
	}
	if err != nil || *docs == "" {
		return err
	}
	return measured.Write(filepath.Join(*docs, "transfer-speed.md"), command, text)
}

// compareLanguage measures how fast ads are read, printed and matched.
func compareLanguage(ctx context.Context, b *bencher) error {
	r, err := language.Compare(ctx, b.pool, 2**trips)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Measured on %s, %s.\n\n%s", time.Now().UTC().Format("2006-01-02"), measured.Machine(), r.Tables())
	if _, err := os.Stdout.WriteString(text); err != nil || *docs == "" {
		return err
	}
	return measured.Write(filepath.Join(*docs, "classads.md"), command, text)
}

// turnover measures how fast containers and jobs follow each other.
func turnover(ctx context.Context, b *bencher) error {
	pool := b.pool
	r := results{when: time.Now(), machine: measured.Machine()}
	// In two halves, around the comparison: the machine may have become slower or faster.
	alone := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			took, err := b.bare(ctx, n)
			r.bare = append(r.bare, took...)
			return err
		}
	}
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"the first jobs, not counted", b.warm},
		{"containerd alone", alone(*rounds / 2)},
		{"containerd by a kubelet's calls", func(ctx context.Context) (err error) { r.cri, err = b.bareCRI(ctx, *rounds); return }},
		{"bindings to a quiet pod", func(ctx context.Context) (err error) {
			r.quiet, err = b.bindings(ctx, binding.Ours, 2**rounds, "-least", calm.String(), "-most", calm.String())
			return
		}},
		{"containerd alone, again", alone(*rounds - *rounds/2)},
		{"bindings that keep the container", func(ctx context.Context) (err error) {
			r.kept, err = b.bindings(ctx, binding.Ours, *rounds, "-reset", options.ResetImage, "-images", pool.Image(imageA))
			return
		}},
		{"bindings by polling, quiet pod", func(ctx context.Context) (err error) {
			r.polling, err = b.bindings(ctx, binding.Polling, fewer(5), "-least", calm.String(), "-most", calm.String())
			return
		}},
		{"bindings by polling, back to back", func(ctx context.Context) (err error) {
			r.pollingRow, err = b.bindings(ctx, binding.Polling, fewer(5))
			return
		}},
		{"jobs in a row, stock", func(ctx context.Context) (err error) { r.stock, err = b.row(ctx, harness.Stock, nil, *rounds); return }},
		{"jobs in a row, fresh containers", func(ctx context.Context) (err error) {
			r.fresh, err = b.row(ctx, harness.Ours, unlikeTurns(2**rounds), 2**rounds+1)
			return
		}},
		{"jobs in a row, POD_STARTER_RESET = image", func(ctx context.Context) (err error) {
			r.reused, err = b.keeping(ctx, func() (row, error) { return b.row(ctx, harness.Ours, []string{imageA}, *rounds) })
			return
		}},
		{"memory", func(ctx context.Context) (err error) { r.memory, err = watchMemory(ctx, b); return }},
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(began).Seconds(), step.name)
	}
	text := r.tables()
	if _, err := os.Stdout.WriteString(text); err != nil {
		return err
	}
	if *docs == "" {
		return nil
	}
	if err := r.writeChart(filepath.Join(*docs, "turnover.svg")); err != nil {
		return err
	}
	return measured.Write(filepath.Join(*docs, "turnover.md"), command, text)
}

// fewer is a part of the runs, but enough to show a spread.
func fewer(part int) int { return max(*rounds/part, min(*rounds, 5)) }
