// Command simulate compares the rule of package decision with the provisioner that
// sites use today, over a simulated week, and writes
// docs/developer/provisioner-simulation.md with its plot:
//
//	go run ./provisioner/simulate -docs docs/developer
//	go run ./provisioner/simulate -queue jobs.csv -nodes 20
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"podstarter/provisioner/simulation"
)

func main() {
	docs := flag.String("docs", "", "write the page and its plot into this `directory`")
	queue := flag.String("queue", "", "simulate the jobs of this `file` (CSV, see simulation.ReadQueue) in place of the scenarios")
	nodes := flag.Int("nodes", 24, "nodes with 32 CPUs and 160 GiB of memory for the jobs of -queue")
	seed := flag.Uint64("seed", published, "seed of everything that is random")
	flag.Parse()
	if err := run(os.Stdout, *docs, *queue, *nodes, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, docs, queue string, nodes int, seed uint64) error {
	if queue != "" {
		return recorded(out, queue, nodes, seed)
	}
	p := newPage(simulation.Scenarios(seed, simulation.Week), seed)
	if _, err := io.WriteString(out, p.tables()); err != nil {
		return err
	}
	if docs == "" {
		return nil
	}
	plot, err := p.plot()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"provisioner-simulation.md": p.text(), "provisioner-simulation.svg": plot} {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// recorded compares the rules on a site's own queue.
func recorded(out io.Writer, name string, nodes int, seed uint64) error {
	if nodes < 1 || nodes > 10000 {
		return fmt.Errorf("-nodes is %d; a number from 1 to 10000 is expected", nodes)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	q, err := simulation.ReadQueue(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p := newPage([]simulation.Scenario{simulation.Recorded(filepath.Base(name), q, nodes, seed)}, seed)
	_, err = io.WriteString(out, p.tables())
	return err
}
