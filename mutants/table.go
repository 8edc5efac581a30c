package main

import (
	"fmt"
	"slices"
	"strings"
)

// A mutant is one mistake.
type mutant struct {
	Name string
	File string // from the top of the project
	// Old is replaced by New. It must be in the file exactly once.
	Old, New string
	Tests    []tests // at least one of them must fail
}

// tests are some of a package's.
type tests struct {
	Package string // from the top of the project
	Run     string // as -run of go test; empty: all
}

// An area is a part of the product and its mistakes.
type area struct {
	name    string
	mutants []mutant
}

var areas = []area{
	{"report", reportMutants},
	{"wrapper", slices.Concat(wrapperMutants, payloadMutants, chirpMutants, memoryMutants)},
	{"sandbox", slices.Concat(sandboxMutants, transferMutants)},
	{"starter", starterMutants},
	{"activation", activationMutants},
	{"condor", condorMutants},
	{"spares", spareMutants},
	{"gpus", gpuMutants},
	{"sizes", sizeMutants},
	{"provisioner", provisionerMutants},
	{"images", imageMutants},
	{"registry", registryMutants},
	{"network", networkMutants},
	{"localuniverse", localUniverseMutants},
	{"site-knobs", siteKnobsMutants},
}

// pick lists the mutants of an area, of all if it is empty, that have one of the names,
// or all if there are no names.
func pick(of string, names []string) ([]mutant, error) {
	var picked []mutant
	known := of == ""
	for _, a := range areas {
		if of != "" && a.name != of {
			continue
		}
		known = true
		for _, m := range a.mutants {
			if len(names) == 0 || slices.Contains(names, m.Name) {
				picked = append(picked, m)
			}
		}
	}
	if !known {
		return nil, fmt.Errorf("no area %q", of)
	}
	for _, name := range names {
		if !slices.ContainsFunc(picked, func(m mutant) bool { return m.Name == name }) {
			return nil, fmt.Errorf("no mutant %q", name)
		}
	}
	return picked, nil
}

// plant puts the mistake into the text of its file.
func (m mutant) plant(text string) (string, error) {
	if n := strings.Count(text, m.Old); n != 1 || m.Old == "" {
		return "", fmt.Errorf("%w: %s has it %d times, not once:\n%s", errNotFound, m.File, n, m.Old)
	}
	return strings.Replace(text, m.Old, m.New, 1), nil
}
