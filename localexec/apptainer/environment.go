package apptainer

import (
	"maps"
	"slices"
	"strings"
)

// allowed are the options that a job may give to the runtime by variables: how to pull an image of
// its own (singularity.cpp:singularityEnvAllowlist).
var allowed = []string{
	"APPTAINER_DOCKER_USERNAME", "APPTAINER_DOCKER_PASSWORD",
	"SINGULARITY_DOCKER_USERNAME", "SINGULARITY_DOCKER_PASSWORD",
}

// ancestor begins the variables by which HTCondor finds a job's processes; stock adds them only to the process outside.
const ancestor = "_CONDOR_ANCESTOR_"

const scratchVariable = "_CONDOR_SCRATCH_DIR"

// environment is what the runtime is started with. The job's variables come twice: for programs
// outside, such as USER_JOB_WRAPPER, and with the prefix by which the runtime sets them inside
// (singularity.cpp: cleanEnvironment, retargetEnvs, convertEnv).
func environment(s Site, r Runtime, w Wish, stays bool) []string {
	env := make(map[string]string)
	for _, entry := range w.Env {
		name, value, _ := strings.Cut(entry, "=")
		// The runtime does not let HOME be set, and the rest would be options for it.
		if name == "HOME" || isOption(name) && !slices.Contains(allowed, name) && !slices.Contains(s.AllowedEnv, name) {
			continue
		}
		env[name] = value
	}
	prefix := r.prefix()
	inside := make(map[string]string)
	if w.TargetDir != "" {
		at := w.TargetDir
		if !stays {
			at = scratchInside // the other is where the job starts
		}
		for name, value := range env {
			if strings.Contains(value, w.Slot) {
				inside[prefix+name] = strings.Replace(value, w.Slot, at, 1)
			}
		}
		env[scratchVariable+"_OUTSIDE_CONTAINER"] = env[scratchVariable]
	}
	// Images that the runtime fetches are kept with the job's files.
	options := strings.TrimSuffix(prefix, "ENV_")
	env[options+"_CACHEDIR"], env[options+"_TMPDIR"] = w.Sandbox, w.Sandbox
	for name, value := range env {
		if strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ancestor) {
			continue
		}
		if _, own := env[prefix+name]; own {
			continue // the job says what it is to be inside
		}
		if _, moved := inside[prefix+name]; !moved {
			inside[prefix+name] = value
		}
	}
	for name := range env {
		// Libraries of the job are for its own programs: they could be newer than the
		// machine's, and the runtime would not start.
		if strings.HasPrefix(name, "LD_") {
			delete(env, name)
		}
	}
	maps.Copy(env, inside)
	env[prefix+"PS1"] = w.Machine + "$ " // a shell that somebody uses in the job says where it is
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// isOption tells whether a variable is an option for the runtime itself. Variables with APPTAINERENV_ are not.
func isOption(name string) bool {
	return strings.HasPrefix(name, "APPTAINER_") || strings.HasPrefix(name, "SINGULARITY_")
}
