package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
)

// timed notes how long its calls may take.
type timed struct {
	*model.Model
	within *time.Duration
}

func (p timed) Create(ctx context.Context, s platform.Spec) error {
	if end, ok := ctx.Deadline(); ok {
		*p.within = time.Until(end)
	}
	return p.Model.Create(ctx, s)
}

// A command of a batch system has the time that batch.timeout gives it: a call that
// is cut short before kills a submission of which nobody knows what became.
func TestTimeOfBatchCommands(t *testing.T) {
	args, m := site(t)
	config := "name: site\nschedds: [ap]\ninterval: 10s\nplatform: batch\nbatch:\n  submit: [sbatch, \"{name}\", \"{note}\"]\n" +
		"  id: '(.*)'\n  status: [squeue]\n  fields: [name, id, state, note]\n  states: {Q: pending, R: running}\n  cancel: [scancel, \"{id}\"]\n  timeout: 3m\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(args[1]), "provisioner.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var within time.Duration
	w := inMemory(m, nil)
	w.connect = func(context.Context, settings.Settings, []template.Template) (platform.Platform, error) {
		return timed{m, &within}, nil
	}
	if err := run(t.Context(), append(args, "-once"), t.Output(), t.Output(), w); err != nil {
		t.Fatal(err)
	}
	// The status is asked before a submission.
	if within < 6*time.Minute-10*time.Second {
		t.Errorf("a call may take %s, and each of its commands 3m", within)
	}
}
