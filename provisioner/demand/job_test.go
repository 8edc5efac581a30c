package demand

import (
	"os"
	"slices"
	"strings"
	"testing"

	"podstarter/classads"
)

func TestJobIDs(t *testing.T) {
	for text, want := range map[string]JobID{
		"123.4":              {Cluster: 123, Proc: 4},
		"ap.example.org#1.0": {Schedd: "ap.example.org", Cluster: 1},
	} {
		got, err := ParseJobID(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is %+v (%s), %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "123", "1.2.3", "a.b", "#1.2", "-name#1.2", "0.1", "1.-1", "99999999999999999999.1"} {
		if id, err := ParseJobID(text); err == nil {
			t.Errorf("%q is %+v", text, id)
		}
	}
}

// The files are what condor_q of HTCondor 25.14.1 printed for a group, and for one of
// its jobs.
func TestJobIsInItsGroup(t *testing.T) {
	q, err := NewQuery(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := JobID{Schedd: "ap", Cluster: 6, Proc: 1}
	args := q.Job(Target{Pool: "cm", Name: "ap"}, id)
	if c := args[slices.Index(args, "-constraint")+1]; c != "ClusterId == 6 && ProcId == 1" || !strings.Contains(args[slices.Index(args, "-attributes")+1], "ClusterId") {
		t.Errorf("the arguments are %q", args)
	}
	open := func(name string) *os.File {
		f, err := os.Open("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	job, err := ReadJob(open("job.ads"), id, Source{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Read(open("jobs.ads"))
	if err != nil {
		t.Fatal(err)
	}
	if groups := Merge([]Answer{{Source{Name: "ap"}, rows}}); len(groups) != 1 || groups[0].ID != job.Group || job.User != "alice@x" || job.Status != 1 || job.Idle(nil) != "" {
		t.Errorf("the job %+v is not in the group %+v", job, groups)
	}
	if job, err := ReadJob(strings.NewReader(""), id, Source{}); job != nil || err != nil {
		t.Errorf("no job is %+v, %v", job, err)
	}
	if _, err := ReadJob(strings.NewReader("JobCount = )"), id, Source{}); err == nil || !strings.Contains(err.Error(), "ap#6.1") {
		t.Errorf("the error is %v", err)
	}
}

func TestJobsThatGetNoPod(t *testing.T) {
	filter, err := classads.ParseExpr("Nice")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"JobStatus = 5\nJobCount = 1":                  "it is held",
		"JobStatus = 9\nJobCount = 1":                  "its JobStatus is 9",
		"JobStatus = 1\nJobUniverse = 7\nJobCount = 1": "scheduler universe",
		"JobStatus = 1\nJobUniverse = 5\nJobCount = 1": "the filter of the configuration does not hold for it: Nice",
		"JobStatus = 1\nNice = true\nJobCount = 1":     "",
	} {
		j, err := ReadJob(strings.NewReader(text), JobID{}, Source{})
		if err != nil {
			t.Fatal(err)
		}
		if got := j.Idle(filter); got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzReadJob(f *testing.F) {
	f.Add("JobStatus = 1\nJobCount = 1\nClusterId = 5\n\n", "ap#1.2")
	f.Fuzz(func(t *testing.T, text, id string) {
		parsed, err := ParseJobID(id)
		if err == nil && (parsed.Cluster <= 0 || parsed.Proc < 0) {
			t.Errorf("%q is %+v", id, parsed)
		}
		if j, err := ReadJob(strings.NewReader(text), parsed, Source{}); err == nil && j != nil {
			j.Idle(nil)
		}
	})
}
