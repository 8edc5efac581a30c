package settings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

// TestApptainer: HTCondor's knobs with HTCondor's defaults; one that is not understood has its default, and a warning.
func TestApptainer(t *testing.T) {
	yes, no := true, false
	plain := Apptainer{
		Program: "/l/apptainer", Verbosity: "-s", TestFirst: true, TestSandbox: "/l/singularity_test_sandbox", TestSIF: "/l/exit_37.sif", TestTimeout: 2 * time.Minute, AllowedEnv: []string{},
	}
	for name, tt := range map[string]struct {
		knobs  map[string]string
		change func(*Apptainer)
		warns  bool
	}{
		"defaults": {},
		"all": {knobs: map[string]string{
			"SINGULARITY": " /usr/bin/singularity ", "SINGULARITY_VERBOSITY": "-v", "SINGULARITY_RUN_TEST_BEFORE_JOB": "False", "SINGULARITY_USE_LAUNCHER": "True",
			"SINGULARITY_IGNORE_MISSING_BIND_TARGET": "true", "SINGULARITY_ADD_ROCM_FLAG": "true", "SINGULARITY_ALLOWED_JOB_ENV_VARS": "A, B C",
			"SINGULARITY_TEST_SANDBOX": "/s", "SINGULARITY_TEST_SANDBOX_TIMEOUT": "5",
		}, change: func(a *Apptainer) {
			*a = Apptainer{
				Program: "/usr/bin/singularity", Verbosity: "-v", Launcher: "/l/condor_container_launcher.sh", IgnoreMissingTargets: true, ROCm: true,
				AllowedEnv: []string{"A", "B", "C"}, TestSandbox: "/s", TestSIF: "/l/exit_37.sif", TestTimeout: 5 * time.Second,
			}
		}},
		"PID namespaces":           {knobs: map[string]string{"SINGULARITY_USE_PID_NAMESPACES": "TRUE"}, change: func(a *Apptainer) { a.PIDNamespaces = &yes }},
		"none":                     {knobs: map[string]string{"SINGULARITY_USE_PID_NAMESPACES": "false"}, change: func(a *Apptainer) { a.PIDNamespaces = &no }},
		"auto":                     {knobs: map[string]string{"SINGULARITY_USE_PID_NAMESPACES": "auto"}},
		"no time":                  {knobs: map[string]string{"SINGULARITY_TEST_SANDBOX_TIMEOUT": "0"}},
		"one that is no condition": {knobs: map[string]string{"SINGULARITY_RUN_TEST_BEFORE_JOB": "sometimes maybe"}, warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{"LIBEXEC": "/l"}
			for name, value := range tt.knobs {
				knobs[name] = value
			}
			cfg := config.FromMap(knobs)
			l := &lenient{cfg: cfg}
			got, want := (&reader{cfg: cfg}).apptainer(l), plain
			if tt.change != nil {
				tt.change(&want)
			}
			if diff := cmp.Diff(want, got); diff != "" || (len(l.warnings) > 0) != tt.warns {
				t.Errorf("%v (-want +got):\n%s", l.warnings, diff)
			}
		})
	}
}
