// Command bench runs the same trivial job under the stock starter and ours, in
// turns on a pool that is otherwise idle, and prints how long the starters
// lived and how much memory ours and the wrapper needed. It measures; it judges
// nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"podstarter/integration/harness"
)

var (
	rounds = flag.Int("n", 20, "jobs under each starter")
	image  = flag.String("image", "", "image of our jobs, as busybox; empty for vanilla jobs in the default image")
	row    = flag.Bool("row", false, "submit all jobs at once, so that they follow each other without a pause")
)

// patience is how long one job may take.
const patience = 2 * time.Minute

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(ctx context.Context) error {
	pool, err := harness.Open(ctx)
	if err != nil {
		return err
	}
	probe, err := pool.Probe(ctx)
	if err != nil {
		return err
	}
	sides := []harness.Side{harness.Stock, harness.Ours}
	// One of each first, which is not counted: it claims the slot and pulls.
	for _, side := range sides {
		if _, err := runs(ctx, pool, side, probe, 1); err != nil {
			return err
		}
	}
	measured := map[harness.Side][]harness.Run{}
	batches, size := *rounds, 1
	if *row {
		batches, size = 1, *rounds
	}
	for range batches {
		for _, side := range sides {
			batch, err := runs(ctx, pool, side, probe, size)
			if err != nil {
				return err
			}
			measured[side] = append(measured[side], batch...)
		}
	}
	memory, err := watchMemory(ctx, pool, probe)
	if err != nil {
		return err
	}
	return report(measured, memory)
}

// runs submits jobs to one side and waits for what their starters logged.
func runs(ctx context.Context, pool *harness.Pool, side harness.Side, probe harness.File, n int) ([]harness.Run, error) {
	jobs, err := submit(ctx, pool, side, probe, "out=done", n)
	if err != nil {
		return nil, err
	}
	var done []harness.Run
	for _, job := range jobs {
		run, err := finish(ctx, job)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, job.Describe())
		}
		done = append(done, run)
	}
	return done, nil
}

func submit(ctx context.Context, pool *harness.Pool, side harness.Side, probe harness.File, steps string, n int) ([]harness.Job, error) {
	commands := "executable = " + harness.ProbeName + "\narguments = \"" + steps + "\"\nshould_transfer_files = YES\n" +
		"transfer_input_files = input.txt\noutput = out.$(Process)\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n"
	if *image != "" && side == harness.Ours {
		commands += "universe = docker\ndocker_image = " + pool.Image(*image) + "\n"
	}
	return pool.Submit(ctx, harness.Submission{
		Name: "bench", Side: side, Commands: commands, Count: n,
		Files: []harness.File{probe, {Name: "input.txt", Content: []byte("a small input file\n")}},
	})
}

func finish(ctx context.Context, job harness.Job) (harness.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, err := job.WaitEnding(ctx)
	if err != nil {
		return harness.Run{}, err
	}
	if !end.Exited || end.Code != 0 {
		return harness.Run{}, fmt.Errorf("job %s: %s", job.ID(), end)
	}
	return job.Run(ctx, 1)
}

// What the project aims at, on a machine that does nothing else.
const (
	aimWithoutBind = 100 * time.Millisecond
	aimBind        = 250 * time.Millisecond
	aimStarter     = 30 // MiB
	aimWrapper     = 8  // MiB
)

func report(measured map[harness.Side][]harness.Run, memory map[string]int64) error {
	total := func(r harness.Run) time.Duration { return r.Ended.Sub(r.Began) }
	stock := spreadOf(measured[harness.Stock], total)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "seconds\tmedian\tmean\tleast\tmost\tmedian / stock\taim")
	line := func(name string, s spread, aim time.Duration) {
		fmt.Fprintf(table, "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f", name,
			s.median.Seconds(), s.mean.Seconds(), s.least.Seconds(), s.most.Seconds(), s.median.Seconds()/stock.median.Seconds())
		if aim > 0 {
			fmt.Fprintf(table, "\t%.3f", aim.Seconds())
		}
		fmt.Fprintln(table)
	}
	ours := measured[harness.Ours]
	line("stock starter, start to exit", stock, 0)
	line("ours, start to exit", spreadOf(ours, total), 0)
	line("ours without bind", spreadOf(ours, func(r harness.Run) time.Duration { return total(r) - r.Phases[harness.PhaseBind] }), aimWithoutBind)
	for _, phase := range phases(ours) {
		aim := time.Duration(0)
		if phase == harness.PhaseBind {
			aim = aimBind
		}
		line("  "+phase, spreadOf(ours, func(r harness.Run) time.Duration { return r.Phases[phase] }), aim)
	}
	fmt.Fprintln(table, "\npeak resident memory\tMiB\taim")
	for _, m := range []struct {
		name, comm string
		aim        int
	}{
		{"our starter", harness.Ours.StarterComm(), aimStarter},
		{"our wrapper", harness.WrapperComm, aimWrapper},
		{"stock starter", harness.Stock.StarterComm(), 0},
	} {
		fmt.Fprintf(table, "%s\t%.1f", m.name, float64(memory[m.comm])/1024)
		if m.aim > 0 {
			fmt.Fprintf(table, "\t%d", m.aim)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d jobs under each starter.\n", len(ours))
	return nil
}
