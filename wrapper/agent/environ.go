package agent

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// ownPrefix marks variables of the pod that are for the wrapper, not for the payload.
const ownPrefix = "POD_STARTER_"

// setAside is put before the name of a variable that the Go runtime must not see.
const setAside = ownPrefix + "IMAGE_"

// runtimeVariables change how the Go runtime behaves, which reads them before main. An
// image may set them for its own programs, or to disturb the wrapper.
var runtimeVariables = []string{"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR"}

// homesOfRoot are what container runtimes set HOME to, for the wrapper's user, where the image sets none. A payload with another
// user cannot use it.
var homesOfRoot = []string{"HOME=/root", "HOME=/"}

// environment is the environment that the container was created with, split by use.
type environment struct {
	nonce string
	image []string // for the payload
}

// takeEnvironment empties the process's environment and returns its former content. If a
// variable changes the Go runtime, the process first executes itself again without it.
func takeEnvironment() (environment, error) {
	environ := os.Environ()
	if aside, found := setRuntimeVariablesAside(environ); found {
		err := unix.Exec(selfExe, os.Args, aside)
		return environment{}, fmt.Errorf("start over without the image's Go settings: %w", err)
	}
	os.Clearenv()
	return splitEnvironment(environ), nil
}

func setRuntimeVariablesAside(environ []string) (aside []string, found bool) {
	aside = slices.Clone(environ)
	for i, entry := range aside {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(runtimeVariables, name) {
			aside[i], found = setAside+entry, true
		}
	}
	return aside, found
}

func splitEnvironment(environ []string) environment {
	var e environment
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		original, aside := strings.CutPrefix(entry, setAside)
		switch {
		case name == payload.NonceEnv:
			e.nonce = value
		case aside:
			e.image = append(e.image, original)
		case strings.HasPrefix(name, ownPrefix), slices.Contains(homesOfRoot, entry):
		default:
			e.image = append(e.image, entry)
		}
	}
	return e
}

// hide leaves out the variables in names; an entry with '*' at its end is a prefix.
func hide(environ, names []string) []string {
	hidden := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(names, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return open && strings.HasPrefix(name, prefix) || name == pattern
		})
	}
	return slices.DeleteFunc(slices.Clone(environ), hidden)
}

// mergeEnvironment lays over on top of base. The later of two entries of one
// name wins.
func mergeEnvironment(base, over []string) []string {
	merged := make([]string, 0, len(base)+len(over))
	position := make(map[string]int, len(base)+len(over))
	for _, list := range [][]string{base, over} {
		for _, entry := range list {
			name, _, _ := strings.Cut(entry, "=")
			if at, ok := position[name]; ok {
				merged[at] = entry
				continue
			}
			position[name] = len(merged)
			merged = append(merged, entry)
		}
	}
	return merged
}

// lookupEnvironment is os.Getenv for a list.
func lookupEnvironment(environ []string, name string) (string, bool) {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
