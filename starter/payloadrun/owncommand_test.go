package payloadrun_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// TestOwnCommand: the part that an image's own command has in what runs.
func TestOwnCommand(t *testing.T) {
	known := &payloadrun.OwnCommand{ImageCommand: payload.ImageCommand{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"}}}
	unknown := &payloadrun.OwnCommand{Unknown: errors.New("asking for it: 503")}
	passing := &payloadrun.OwnCommand{Unknown: fmt.Errorf("%w: 503", payload.ErrPassing)}
	const none, one = `Cmd = ""` + "\nWantContainer = true", `Cmd = "/bin/job"` + "\nTransferExecutable = false\nWantContainer = true"
	for name, tt := range map[string]struct {
		job  string
		own  *payloadrun.OwnCommand
		want []string
		hold string
	}{
		"no program":                        {none, known, []string{"/entry", "serve"}, ""},
		"a program":                         {one, known, []string{"/entry", "/bin/job"}, ""},
		"a program in the entry's place":    {one + "\nDockerOverrideEntrypoint = true", known, []string{"/bin/job"}, ""},
		"no program, and no answer":         {none, unknown, nil, "the image's own is not known: asking for it: 503; name it in the submit file"},
		"no program, and no answer for now": {none, passing, nil, "the image's own is not known"},
		"a program, and none for now":       {one, passing, []string{"/bin/job"}, ""},
		"a program, and no answer":          {one, unknown, []string{"/bin/job"}, ""},
		"no program, where nobody asks":     {none, nil, nil, "nobody asks registries"},
		"a program, where nobody asks":      {one, nil, []string{"/bin/job"}, ""},
		"no program, and none in the image": {none, &payloadrun.OwnCommand{}, nil, "neither ENTRYPOINT nor CMD"},
	} {
		j := aJob(t, tt.job, nil)
		j.Settings.Backend, j.Own = settings.BackendPod, tt.own
		cmd, spec, err := j.Main("a", "", nil)
		if tt.hold != "" {
			code := shadow.HoldFailedToCreateProcess
			if tt.own != nil && errors.Is(tt.own.Unknown, payload.ErrPassing) {
				code = shadow.VacateContainerError // and no hold
			}
			if f := failure.Of(err); err == nil || f.Code != code || !strings.Contains(err.Error(), tt.hold) {
				t.Errorf("%s: %v, want a hold with %q", name, err, tt.hold)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, spec.Args); err != nil || diff != "" || cmd.Path != tt.want[0] || spec.Path != tt.want[0] {
			t.Errorf("%s: %v, %s, %s (-want +got):\n%s", name, err, cmd.Path, spec.Path, diff)
		}
	}
}
