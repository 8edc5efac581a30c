// Command demo runs a few jobs in different images on the pool of this machine, and
// prints for each which image it asked for, what it saw, and where the time went.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// example is one job of the demonstration.
type example struct {
	asked    string // as the table shows it
	commands func(p *harness.Pool) string
	steps    string
	ends     string // in the words of harness.Ending
}

var examples = []example{
	{"none (vanilla job)", func(*harness.Pool) string { return "universe = vanilla" }, "facts", "exit code 0"},
	{"busybox", docker("busybox"), "facts exit=7", "exit code 7"},
	{"docker://debian", container("debian"), "facts signal=9", "signal 9"},
	{"probe (no shell)", docker("probe"), "facts", "exit code 0"},
	{"hostile", docker("hostile"), "facts", "exit code 0"},
}

func docker(image string) func(p *harness.Pool) string {
	return func(p *harness.Pool) string { return "universe = docker\ndocker_image = " + p.Image(image) }
}

func container(image string) func(p *harness.Pool) string {
	return func(p *harness.Pool) string {
		return "universe = container\ncontainer_image = docker://" + p.Image(image)
	}
}

// patience is how long one job may take, including the pull of its image.
const patience = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demonstrate(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func demonstrate(ctx context.Context) error {
	pool, err := harness.Open(ctx)
	if err != nil {
		return err
	}
	probe, err := pool.Probe(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	jobs := make([]harness.Job, len(examples))
	for i, e := range examples {
		jobs[i], err = pool.SubmitOne(ctx, harness.Submission{
			Name: "demo",
			Side: harness.Ours,
			Commands: "executable = " + harness.ProbeName + "\narguments = \"" + e.steps + "\"\nshould_transfer_files = YES\noutput = out\n" +
				"transfer_input_files = input.txt\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n" + e.commands(pool),
			Files: []harness.File{probe, {Name: "input.txt", Content: []byte("a small input file\n")}},
		})
		if err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "job\timage asked for\timage seen inside\tuid\tended with\tbind\tstage-in\texec\treport")
	var wrong []string
	for i, e := range examples {
		row, err := result(ctx, jobs[i])
		if err != nil {
			return fmt.Errorf("%w\n%s", err, jobs[i].Describe())
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", jobs[i].ID(), e.asked, strings.Join(row, "\t"))
		if row[2] != e.ends {
			wrong = append(wrong, fmt.Sprintf("job %s ended with %s, not %s", jobs[i].ID(), row[2], e.ends))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d jobs in %.1f s. Times are in seconds, from the starter's log.\n", len(jobs), time.Since(began).Seconds())
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// result is a job's row from the third column on.
func result(ctx context.Context, job harness.Job) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, err := job.WaitEnding(ctx)
	if err != nil {
		return nil, err
	}
	seen := facts.Facts{Image: "?", UID: -1}
	if end.Exited || end.Signaled {
		if seen, err = job.Facts("out"); err != nil {
			return nil, err
		}
	}
	row := []string{seen.Image, strconv.Itoa(seen.UID), end.String()}
	run, err := job.Run(ctx, 1)
	if err != nil {
		return nil, err
	}
	for _, phase := range []string{harness.PhaseBind, harness.PhaseStageIn, harness.PhaseStart, harness.PhaseFinish} {
		took, ok := run.Phases[phase]
		if !ok {
			row = append(row, "?")
			continue
		}
		row = append(row, fmt.Sprintf("%.3f", took.Seconds()))
	}
	return row, nil
}
