package jobfiles

import (
	"testing"

	"podstarter/classads"
)

func TestParseWhen(t *testing.T) {
	for word, want := range map[string]When{
		"ON_EXIT": OnExit, "on_exit": OnExit, "ONEXIT": OnExit, "ON_EXIT_OR_EVICT": OnExitOrEvict, "Always": OnExitOrEvict,
		"ON_SUCCESS": OnSuccess, "none": Never,
	} {
		job := classads.NewAd()
		job.SetString("WhenToTransferOutput", word)
		if got, err := ParseWhen(job); got != want || err != nil {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	job := classads.NewAd()
	if _, err := ParseWhen(job); err == nil {
		t.Error("absent: no error")
	}
	job.SetString("WhenToTransferOutput", "SOMETIMES")
	if _, err := ParseWhen(job); err == nil {
		t.Error("unknown: no error")
	}
}

func TestChoose(t *testing.T) {
	exited := Ending{Ready: true, Started: true}
	failed := Ending{Ready: true, Started: true, WaitStatus: 3 << 8}
	evicted := Ending{Ready: true, Started: true, Evicted: true, WaitStatus: 15}
	removed := Ending{Ready: true, Started: true, Evicted: true, FinalOnRm: true, WaitStatus: 9}
	const nothing = Kind(-1)
	for _, c := range []struct {
		name string
		job  string
		when When
		end  Ending
		want Kind
	}{
		{"exit", "", OnExit, exited, Output},
		{"bad exit, nothing said about success", "", OnSuccess, failed, Output},
		{"bad exit", "JobSuccessExitCode = 0", OnSuccess, failed, Failure},
		{"bad exit, when does not matter", "JobSuccessExitCode = 0", OnExit, failed, Failure},
		{"good exit", "JobSuccessExitCode = 3", OnSuccess, failed, Output},
		{"wanted signal", "JobSuccessExitSignal = 9\nJobSuccessExitBySignal = true", OnSuccess, Ending{Ready: true, Started: true, WaitStatus: 9}, Output},
		{"exit instead of signal", "JobSuccessExitSignal = 9\nJobSuccessExitBySignal = true", OnSuccess, exited, Failure},
		{"evicted, ON_EXIT", "", OnExit, evicted, nothing},
		{"evicted, ON_SUCCESS", "JobSuccessExitCode = 0", OnSuccess, evicted, nothing},
		{"evicted, ON_EXIT_OR_EVICT", "JobSuccessExitCode = 0", OnExitOrEvict, evicted, Eviction},
		{"evicted without spool", "SpoolOnEvict = false", OnExitOrEvict, evicted, Output},
		{"condor_rm -transfer", "", OnExit, removed, Output},
		{"not ready", "", OnExit, Ending{}, Failure},
		{"not ready and evicted", "", OnExitOrEvict, Ending{Evicted: true}, nothing},
		{"fast", "", OnExitOrEvict, Ending{Ready: true, Started: true, Fast: true}, nothing},
	} {
		job, err := classads.ParseOld(c.job)
		must(t, err)
		got, ok := Choose(job, c.when, c.end)
		if !ok {
			got = nothing
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
