package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/localexec"
	"podstarter/localexec/apptainer"
)

// TestRuntimeAbilities: slots promise the images that ran, in the attributes of stock.
func TestRuntimeAbilities(t *testing.T) {
	yes := true
	version := apptainer.Runtime{Version: "apptainer version 1.4.5"}
	for name, tt := range map[string]struct {
		report    apptainer.Report
		noNetwork bool
		err       error
		want      map[string]string
	}{
		"none": {err: fmt.Errorf("look: %w", localexec.ErrNoRuntime), want: map[string]string{}},
		"all": {report: apptainer.Report{Runtime: version, Sandbox: true, SIF: true, PIDNamespaces: true, UserNamespaces: &yes}, want: map[string]string{
			"HasSingularity": "true", "HasContainer": "true", "HasDockerURL": "true", "HasSandboxImage": "true", "HasSIF": "true", "HasPidNamespaces": "true",
			"SingularityVersion": `"apptainer version 1.4.5"`, "SingularityUserNamespaces": "true",
		}},
		"files only": {report: apptainer.Report{Runtime: version, SIF: true}, want: map[string]string{
			"HasSingularity": "true", "HasContainer": "true", "HasDockerURL": "true", "HasSIF": "true", "HasPidNamespaces": "false", "SingularityVersion": `"apptainer version 1.4.5"`,
		}},
		"neither": {report: apptainer.Report{Runtime: version, Trouble: "FATAL: \"x\""}, want: map[string]string{
			"HasSingularity": "false", "SingularityOfflineReason": `"both SIF and Sandbox tests on startup failed : FATAL: \"x\""`, "SingularityVersion": `"apptainer version 1.4.5"`,
		}},
		"broken": {err: errors.New("ask x\nfor its version"), want: map[string]string{"HasSingularity": "false", "SingularityOfflineReason": `"ask x; for its version"`}},
		"without network": {report: apptainer.Report{Runtime: version, SIF: true}, noNetwork: true, want: map[string]string{
			"HasSingularity": "true", "HasContainer": "true", "HasSIF": "true", "HasPidNamespaces": "false", "SingularityVersion": `"apptainer version 1.4.5"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ad := classads.NewAd()
			runtimeAbilities(ad, tt.report, tt.noNetwork, tt.err)
			got := map[string]string{}
			for name, e := range ad.All() {
				got[name] = e.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
