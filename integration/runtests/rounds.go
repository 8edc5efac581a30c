package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"podstarter/integration/turn"
)

// A round is what takes too long for each run: one of them runs, in turn.
type round struct {
	name  string
	steps []step
}

// roundsOf are all rounds. Each begins with a pool of its own choices.
func roundsOf(pool string) []round {
	host := func(args ...string) step {
		return up(pool, append([]string{"--stock", "--stock-docker=false", "--stock-apptainer=false", "--slots", "4",
			"--partitionable=false", "--mode", "shared", "--condor", "25.14"}, args...)...)
	}
	return []round{
		{"jobs with images beside Docker and Apptainer", []step{
			host("--stock-docker", "--stock-apptainer"), tests("conformance", "-case", "^(docker|apptainer)-"),
		}},
		{"daemons killed", []step{host(), tests("daemonfaults", "-run", "TestStartdKilled|TestPilotKilled|TestHungStarter")}},
	}
}

// roundAt are the steps of the round for a run that begins then. The end of the run says
// which it was.
func roundAt(now time.Time, pool string) ([]step, error) {
	all := roundsOf(pool)
	at := turn.Index(now, len(all))
	var left []string
	for i, r := range all {
		if i != at {
			left = append(left, r.name)
		}
	}
	text := fmt.Sprintf("round %d of %d ran: %s; others: %s; for all: integration/run-tests -lane rounds\n",
		at+1, len(all), all[at].name, strings.Join(left, ", "))
	if err := appendTo(os.Getenv(inTurn), text); err != nil {
		return nil, fmt.Errorf("noting which round runs: %w", err)
	}
	return all[at].steps, nil
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func steps(rounds []round) [][]step {
	var all [][]step
	for _, r := range rounds {
		all = append(all, r.steps)
	}
	return all
}
