// Command scale measures what jobs cost the control plane: simulated pilots make a binder's own calls (k8sexec/podapi,
// k8sexec/podwatch) to a real API server with a real etcd, with the tokens, the Role and the admission policies that
// deploy/ has. KWOK stands in for the kubelets. It judges nothing.
//
// With -docs it writes the tables of docs/admin/scale.md.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"podstarter/integration/measured"
	"podstarter/integration/pool/controlplane"
)

// load is what is to be measured.
type load struct {
	pilots, slots, nodes int
	// job is how long a job runs, during how long jobs start.
	job, during time.Duration
	// cold is the share of jobs whose image is not on the node.
	cold float64
}

// command is what the page names as its origin.
const command = "make scale"

// stateName is the directory below integration/.
const stateName = ".state-scale"

func main() {
	controlplane.Exec()
	var l load
	flag.IntVar(&l.pilots, "pilots", 1000, "pilots, each in a pod of its own")
	flag.IntVar(&l.slots, "slots", 1, "payload containers of each")
	flag.IntVar(&l.nodes, "nodes", 20, "nodes on which they are")
	flag.DurationVar(&l.job, "job", time.Minute, "length of a job")
	flag.DurationVar(&l.during, "for", 10*time.Minute, "length of the measurement")
	flag.Float64Var(&l.cold, "cold", 0.1, "share of jobs whose image has to be pulled")
	single := flag.String("single", "", "only count the requests of single jobs in the pool that runs, which was started with --audit, and write them to this `file`")
	with := flag.String("with", "", "`file` of -single, for a table")
	docs := flag.String("docs", "", "`directory` with scale.md to write the tables to; empty for none")
	keep := flag.Bool("keep", false, "leave the control plane as it is, with logs and data in integration/"+stateName)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := error(nil)
	if *single != "" {
		err = countSingles(ctx, *single)
	} else {
		err = run(ctx, l, *with, *docs, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// stages is the configuration of KWOK.
//
//go:embed stages.yaml
var stages string

func countSingles(ctx context.Context, path string) error {
	s, err := measureSingles(ctx)
	if err != nil {
		return fmt.Errorf("single jobs in the pool: %w", err)
	}
	return s.write(path)
}

func run(ctx context.Context, l load, with, docs string, keep bool) error {
	r := results{load: l, when: time.Now(), machine: measured.Machine()}
	if with != "" {
		var err error
		if r.single, err = readSingle(with); err != nil {
			return err
		}
	}
	if err := measure(ctx, l, stateName, keep, &r); err != nil {
		return err
	}
	text := r.tables()
	if _, err := os.Stdout.WriteString(text); err != nil || docs == "" {
		return err
	}
	return measured.Write(filepath.Join(docs, "scale.md"), command, text)
}

// measure runs the load under a control plane of its own, in a directory below integration/.
func measure(ctx context.Context, l load, state string, keep bool, r *results) (err error) {
	plane, err := controlplane.Up(ctx, state, os.Stderr)
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	if !keep {
		defer func() {
			// Also after an interrupt.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			err = errors.Join(err, plane.Down(ctx))
		}()
	}
	say("%d pods on %d nodes", l.pilots, l.nodes)
	pods, err := startPods(ctx, plane, l)
	if err != nil {
		return err
	}
	fleet, err := newFleet(ctx, plane, l, pods)
	if err != nil {
		return err
	}
	say("jobs of %s for %s", l.job, l.during)
	if err := r.observe(ctx, plane, func(ctx context.Context) { fleet.run(ctx) }); err != nil {
		return err
	}
	r.fleet = fleet.seen()
	r.behind, err = behind(ctx, plane)
	return err
}

// say tells whoever waits how far this is.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
