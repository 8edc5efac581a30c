package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTestsIn: tests in Perl count if HTCondor's build knows them.
func TestTestsIn(t *testing.T) {
	source := t.TempDir()
	dir := filepath.Join(source, "src", "condor_tests")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"test_b.py": "", "test_a.py": "", "helper.py": "", "known.run": "", "unknown.run": "",
		"CMakeLists.txt": "\tcondor_pl_test( known \"what it is\")\n#condor_pl_test(unknown \"not run\")\ncondor_pl_test(test_a \"in Python\")\ncondor_pl_test(absent \"no file\")\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := testsIn(source)
	if diff := cmp.Diff([]string{"known.run", "test_a", "test_b"}, got); err != nil || diff != "" {
		t.Errorf("testsIn: %v (-want +got):\n%s", err, diff)
	}
	if _, err := testsIn(t.TempDir()); err == nil {
		t.Error("a directory without tests is taken")
	}
}

// TestChosen: a test runs under each starter, with the daemons that it needs; -missing leaves out what has a result.
func TestChosen(t *testing.T) {
	rec := &Record{
		Tests:    []string{"test_cif_rm", "test_docker", "test_job_env", "test_run_sleep_job"},
		Outcomes: map[string]map[string]map[string]Outcome{"test_job_env": {asUser: {stock: {}}}},
	}
	o := options{test: regexp.MustCompile("cif|docker|job_env"), sides: []string{stock, ours}, missing: true}
	want := []test{{"test_cif_rm", stock, asUser}, {"test_cif_rm", ours, asUser}, {"test_cif_rm", stock, asSudo}, {"test_cif_rm", ours, asSudo}, {"test_job_env", ours, asUser}, {"test_job_env", stock, asSudo}, {"test_job_env", ours, asSudo}}
	if diff := cmp.Diff(want, chosen(o, rec), cmp.AllowUnexported(test{})); diff != "" {
		t.Errorf("chosen (-want +got):\n%s", diff)
	}
	o.users, o.missing, o.test = []string{asRoot}, false, regexp.MustCompile("sleep")
	if diff := cmp.Diff([]test{{"test_run_sleep_job", stock, asRoot}, {"test_run_sleep_job", ours, asRoot}}, chosen(o, rec), cmp.AllowUnexported(test{})); diff != "" {
		t.Errorf("chosen with -daemons (-want +got):\n%s", diff)
	}
}

// TestChoiceIsWhole: a test that needs root is not one that is left out, and the two lists do not overlap.
func TestChoiceIsWhole(t *testing.T) {
	names := append([]string(nil), alsoWithSudo...)
	for name := range commonFiles {
		names = append(names, name)
	}
	for _, name := range alsoAsUser {
		if commonFiles[name] == "" {
			t.Errorf("%s has no daemons of root to be run with besides", name)
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if why := excluded(name); why != "" {
			t.Errorf("%s is left out (%s) and has daemons of its own", name, why)
		}
		if seen[name] {
			t.Errorf("%s is in both lists", name)
		}
		seen[name] = true
	}
}
