package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/classads"
)

// TestSite: what a site adds to the ClassAd language counts in its own knobs, too.
func TestSite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map")
	if err := os.WriteFile(file, []byte("* alice first,second\n* broken\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	maps := map[string]string{
		"STARTER_CLASSAD_USER_MAP_NAMES": "inFile, inText none gone Pre", "CLASSAD_USER_MAPFILE_INFILE": file, "CLASSAD_USER_MAPDATA_INFILE": "* alice never",
		"CLASSAD_USER_MAPDATA_inText": "* alice text\n* /^b/ \\0\n", "CLASSAD_USER_MAPFILE_gone": file + ".gone", "CLASSAD_USER_MAPDATA_Pre": "* al prefix", "CLASSAD_USER_MAP_PREFIX_PRE": "true",
		"SCHEDD_CLASSAD_USER_MAP_NAMES": "other", "CLASSAD_USER_MAPDATA_other": "* alice other",
	}
	for name, tt := range map[string]struct {
		knobs    map[string]string
		expr     string
		want     string
		problems []string
	}{
		"no map":            {expr: `userMap("inFile", "alice")`},
		"a file":            {knobs: maps, expr: `userMap("infile", TARGET.Owner)`, want: "first,second", problems: []string{"map:2", "the map none", "the map gone"}},
		"a text":            {knobs: maps, expr: `userMap("INTEXT", "bob")`, want: "b", problems: []string{"map:2", "none", "gone"}},
		"a prefix":          {knobs: maps, expr: `userMap("pre", "alice")`, want: "prefix", problems: []string{"map:2", "none", "gone"}},
		"of another daemon": {knobs: maps, expr: `userMap("other", "alice")`, problems: []string{"map:2", "none", "gone"}},
		"a home":            {knobs: map[string]string{"CLASSAD_ENABLE_USER_HOME": "true"}, expr: `userHome("root")`, want: "/root"},
		"nobody's home":     {knobs: map[string]string{"CLASSAD_ENABLE_USER_HOME": "true"}, expr: `userHome("no such user", "/there")`, want: "/there"},
		"no homes":          {knobs: map[string]string{"CLASSAD_ENABLE_USER_HOME": "false"}, expr: `userHome("root")`},
		"lenient":           {expr: "Owner", want: "alice"},
		"strict":            {knobs: map[string]string{"STRICT_CLASSAD_EVALUATION": "true"}, expr: "Owner"},
		"misspelt":          {knobs: map[string]string{"STRICT_CLASSAD_EVALUATION": "very", "CLASSAD_ENABLE_USER_HOME": "perhaps"}, expr: "Owner", want: "alice", problems: []string{"STRICT", "USER_HOME"}},
		"no expression": {knobs: map[string]string{"STARTER_CLASSAD_USER_MAP_NAMES": "m", "CLASSAD_USER_MAPDATA_m": "* a b", "LOCAL_CONFIG_DIR_EXCLUDE_REGEXP": "("},
			expr: `userMap("m", "a")`, want: "b", problems: []string{"LOCAL_CONFIG_DIR_EXCLUDE_REGEXP"}},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{"ASKED": tt.expr}
			for k, v := range tt.knobs {
				knobs[k] = v
			}
			job := classads.NewAd()
			job.SetString("Owner", "alice")
			cfg := FromMap(knobs)
			site, problems := cfg.Site()
			got, err := cfg.With(site).EvalString("ASKED", "", classads.NewAd(), job)
			if err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
			if len(problems) != len(tt.problems) {
				t.Fatalf("%d problems: %v", len(problems), problems)
			}
			for i, want := range tt.problems {
				if !strings.Contains(problems[i].Error(), want) {
					t.Errorf("%v does not name %s", problems[i], want)
				}
			}
			if got, err := cfg.EvalString("ASKED", "", nil, job); err == nil && strings.Contains(tt.expr, "user") && got != "" && got != "/there" {
				t.Errorf("without the site: %q", got)
			}
		})
	}
}

// TestHomesAreBounded: a job may ask for any number of users.
func TestHomesAreBounded(t *testing.T) {
	a := accounts{homes: map[string]string{}}
	for i := range mostHomes + 10 {
		if dir, ok := a.home(fmt.Sprintf("no user %d", i)); ok {
			t.Errorf("%q", dir)
		}
	}
	a = accounts{homes: map[string]string{}}
	if dir, ok := a.home(strings.Repeat("x", 1<<20)); ok || len(a.homes) > 0 {
		t.Errorf("%q; %d names are kept, of any length", dir, len(a.homes))
	}
	if dir, _ := a.home("root"); dir != "/root" || len(a.homes) > mostHomes {
		t.Errorf("%q, %d kept", dir, len(a.homes))
	}
}
