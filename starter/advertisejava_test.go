package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/starter/hostprog/hostprogtest"
)

// TestFindJava: the java universe is promised if HTCondor's class runs, and only then.
func TestFindJava(t *testing.T) {
	program := hostprogtest.Script(t, "exit 0")
	for name, tt := range map[string]struct {
		program string
		status  int
		output  string
		err     error
		says    string // of the error; empty if it works
		none    bool   // it is no mistake
	}{
		"it works":        {program: program, output: "Picked up options\nJavaVersion = \"21.0.1\"\nJavaVendor = \"D\"\n"},
		"there is none":   {program: filepath.Join(t.TempDir(), "java"), says: "JAVA", none: true},
		"it is empty":     {says: "JAVA is empty"},
		"no class":        {program: program, status: 1, output: "Error: Could not find or load main class CondorJavaInfo", says: "JAVA_CLASSPATH_DEFAULT"},
		"another program": {program: program, output: "hello", says: "JavaVersion"},
		"not a program":   {program: program, err: errors.New("exec format error"), says: "exec format error"},
	} {
		t.Run(name, func(t *testing.T) {
			ad := classads.NewAd()
			cfg := config.FromMap(map[string]string{"JAVA": tt.program, "JAVA_CLASSPATH_DEFAULT": "/lib ."})
			var ran []string
			err := findJava(t.Context(), ad, cfg, func(_ context.Context, argv []string) (int, []byte, error) {
				ran = argv
				return tt.status, []byte(tt.output), tt.err
			})
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) || errors.Is(err, errNoJava) != tt.none || ad.Len() > 0 {
					t.Errorf("%v, and %s", err, ad)
				}
				return
			}
			if err != nil || !ad.BoolOr("HasJava", false) || ad.StringOr("JavaVersion", "") != "21.0.1" {
				t.Errorf("%v, and %s", err, ad)
			}
			if diff := cmp.Diff([]string{program, "-classpath", "/lib:.", "CondorJavaInfo", "old"}, ran); diff != "" {
				t.Error(diff)
			}
		})
	}
}
