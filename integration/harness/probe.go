package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"podstarter/integration/images/probe/facts"
)

// ProbeName is the file name of the probe in a job's submit directory.
const ProbeName = "probe"

// programsVariable names a directory of programs that need not be built: in a guest, that of
// the pool program on the host, whose `up` has built them.
const programsVariable = "PODSTARTER_PROGRAMS"

// Probe builds the static program that jobs bring along (integration/images/probe)
// and returns it as a file of a submission. It is in the user's home, so each job's
// copy is only a hard link.
func (p *Pool) Probe(ctx context.Context) (File, error) {
	path := filepath.Join(p.User.Visible, ".probe")
	if err := p.buildProbe(ctx, path+".new"); err != nil {
		return File{}, err
	}
	if err := os.Chmod(path+".new", 0o755); err != nil {
		return File{}, err
	}
	// A new file: running jobs still have the old one.
	if err := os.Rename(path+".new", path); err != nil {
		return File{}, err
	}
	return File{Name: ProbeName, Link: path}, nil
}

func (p *Pool) buildProbe(ctx context.Context, path string) error {
	if ready := os.Getenv(programsVariable); ready != "" {
		text, err := os.ReadFile(filepath.Join(ready, ProbeName))
		if err != nil {
			return fmt.Errorf("taking the probe from %s: %w", programsVariable, err)
		}
		return os.WriteFile(path, text, 0o755)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./images/probe")
	build.Dir = filepath.Join(p.Root, "integration")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the probe: %w\n%s", err, out)
	}
	return nil
}

// Ready keeps the payloads that have reached their step "ready".
func (p *Pool) Ready(side Side) func(Process) bool {
	payload := p.Payload(side)
	return func(q Process) bool { return q.Comm == facts.Ready && payload(q) }
}

// Facts reads what the probe printed into a file of the submit directory.
func (j Job) Facts(name string) (facts.Facts, error) {
	var seen facts.Facts
	text, err := j.Output(name)
	if err != nil {
		return seen, err
	}
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		return seen, fmt.Errorf("job %s printed no facts: %w\n%s", j.ID(), err, text)
	}
	return seen, nil
}
