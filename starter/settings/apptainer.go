package settings

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Apptainer are HTCondor's knobs about the runtime of images on an execution point without a pod
// (condor_starter.V6.1/singularity.cpp). Those that are expressions over a job are read with it.
type Apptainer struct {
	Program   string // SINGULARITY
	Verbosity string // SINGULARITY_VERBOSITY
	TestFirst bool   // SINGULARITY_RUN_TEST_BEFORE_JOB
	// Launcher is the file that SINGULARITY_USE_LAUNCHER puts before jobs; empty without it.
	Launcher             string
	IgnoreMissingTargets bool     // SINGULARITY_IGNORE_MISSING_BIND_TARGET
	ROCm                 bool     // SINGULARITY_ADD_ROCM_FLAG
	AllowedEnv           []string // SINGULARITY_ALLOWED_JOB_ENV_VARS
	// PIDNamespaces is SINGULARITY_USE_PID_NAMESPACES; nil for auto.
	PIDNamespaces *bool
	TestSandbox   string        // SINGULARITY_TEST_SANDBOX
	TestSIF       string        // the file beside it
	TestTimeout   time.Duration // SINGULARITY_TEST_SANDBOX_TIMEOUT
}

// defaultTestTimeout is singularity.cpp's.
const defaultTestTimeout = 120 * time.Second

// apptainer reads the knobs. A value that is not understood is a mistake only where the runtime is used.
func (r *reader) apptainer(l *lenient) Apptainer {
	cfg := r.cfg
	libexec := cfg.String("LIBEXEC", "/usr/libexec/condor")
	a := Apptainer{
		Program:              strings.TrimSpace(cfg.String("SINGULARITY", filepath.Join(libexec, "apptainer"))),
		Verbosity:            strings.TrimSpace(cfg.String("SINGULARITY_VERBOSITY", "-s")),
		TestFirst:            l.bool("SINGULARITY_RUN_TEST_BEFORE_JOB", true),
		IgnoreMissingTargets: l.bool("SINGULARITY_IGNORE_MISSING_BIND_TARGET", false),
		ROCm:                 l.bool("SINGULARITY_ADD_ROCM_FLAG", false),
		AllowedEnv:           cfg.List("SINGULARITY_ALLOWED_JOB_ENV_VARS"),
		TestSandbox:          cfg.String("SINGULARITY_TEST_SANDBOX", filepath.Join(libexec, "singularity_test_sandbox")),
		TestSIF:              filepath.Join(libexec, "exit_37.sif"),
		TestTimeout:          l.seconds("SINGULARITY_TEST_SANDBOX_TIMEOUT", defaultTestTimeout),
	}
	if l.bool("SINGULARITY_USE_LAUNCHER", false) {
		a.Launcher = filepath.Join(libexec, "condor_container_launcher.sh")
	}
	if a.TestTimeout <= 0 {
		a.TestTimeout = defaultTestTimeout
	}
	if word := strings.TrimSpace(cfg.String("SINGULARITY_USE_PID_NAMESPACES", "auto")); word != "" {
		if on, err := strconv.ParseBool(strings.ToLower(word)); err == nil {
			a.PIDNamespaces = &on
		}
	}
	return a
}
