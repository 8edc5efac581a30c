package lives_test

import (
	"syscall"
	"testing"

	"podstarter/condor/condortest"
	"podstarter/condor/startd"
)

// TestInput are lives whose input comes, or does not.
func TestInput(t *testing.T) {
	retry := condortest.AnswerText(`Command = "RetryTransfer"`)
	start := condortest.AnswerText(`Command = "StartJob"`)
	broken := condortest.Answer(condortest.Failure(13, 28, "no room at the access point", false))
	again := condortest.Answer(condortest.Failure(13, 28, "not now", true))
	// environment answers the n-th question about the environment; the first question of all is about the set-up.
	environment := func(w *world, n int, a condortest.Action) { w.shadow.On("request_guidance", n+1, a) }
	run(t, []life{
		{
			name: "files and directories", job: `TransferInput = "one,tree"`, files: map[string]string{"one": "first\n", "tree/leaf": "green\n", "tree/sub/": ""},
			script: "cat one tree/leaf; test -d tree/sub", want: want{last: "job_exit 0 100", output: output("first\ngreen\n")},
		},
		{
			name: "a missing file", job: `TransferInput = "nothing"`,
			want: want{last: "error 13/2", says: "Failed to transfer files: ", check: func(w *world) {
				w.neverBegan()
				w.same([]string{
					"request_guidance JobSetup", "request_guidance JobEnvironment", "event_notification DiagnosticResult", "request_guidance JobEnvironment",
				}, w.shadow.Story("request_guidance", "event_notification"))
			}},
		},
		{
			name: "the access point fails, for good", plan: func(w *world) { w.shadow.On(condortest.InputAck, 1, broken) },
			want: want{last: "error 13/28", says: "no room at the access point", check: (*world).neverBegan},
		},
		{
			name: "the access point fails, for now", plan: func(w *world) { w.shadow.On(condortest.InputAck, 1, again) },
			want: want{last: "error 13/-1000", says: "not now", check: (*world).neverBegan},
		},
		{
			name: "the connection breaks", plan: func(w *world) { w.shadow.On(condortest.InputItem, 1, condortest.HangUpAfter(5)) },
			want: want{last: "error 12/-1000", check: (*world).neverBegan},
		},
		{
			name: "no go-ahead", plan: func(w *world) {
				w.shadow.On(condortest.GoAhead, 1, condortest.Answer(condortest.Refusal(13, 5, "too large", false)))
			},
			want: want{last: "error 13/5", says: "too large", check: (*world).neverBegan},
		},
		{
			name: "a go-ahead that comes later", script: "exit 0", plan: func(w *world) {
				w.shadow.On(condortest.GoAhead, 1, condortest.AnswerText(condortest.NotYet))
			},
			want: want{last: "job_exit 0 100"},
		},
		{
			name: "it breaks once, and the shadow wants it again", script: "exit 0", plan: func(w *world) {
				w.shadow.On(condortest.InputItem, 1, condortest.HangUpAfter(5))
				environment(w, 1, retry)
			},
			want: want{last: "job_exit 0 100", check: func(w *world) { w.same(2, w.shadow.Count(condortest.Call(condortest.Input))) }},
		},
		{
			name: "the shadow wants it again without end", plan: func(w *world) {
				w.shadow.On(condortest.InputAck, 0, again)
				for n := 1; n < 20; n++ {
					environment(w, n, retry)
				}
			},
			want: want{last: "error 13/-1000", check: func(w *world) { w.same(3, w.shadow.Count(condortest.Call(condortest.Input))) }},
		},
		{
			name: "it is there, and the shadow wants it again without end", script: "exit 0", plan: func(w *world) {
				for n := 1; n < 20; n++ {
					environment(w, n, retry)
				}
			},
			want: want{last: "job_exit 0 100", check: func(w *world) { w.same(3, w.shadow.Count(condortest.Call(condortest.Input))) }},
		},
		{
			name: "it fails, and the shadow wants the job started", job: `TransferInput = "nothing"` + "\n" + `Cmd = "/bin/true"` + "\nTransferExecutable = false",
			plan: func(w *world) { environment(w, 1, start) },
			want: want{last: "job_exit 0 100", log: []string{"although its input failed"}},
		},
		{
			name: "an item that leads out of the sandbox", plan: func(w *world) {
				w.shadow.SetTransfer(condortest.TransferOptions{Items: []condortest.Item{{Command: condortest.ItemFile, Name: "../../outside", Mode: 0o644, Data: "x"}}})
			},
			want: want{last: "error 12/1", check: (*world).neverBegan},
		},
	})
}

// TestGuidance are answers of a shadow that is asked what to do.
func TestGuidance(t *testing.T) {
	answer := func(n int, text string) func(*world) {
		return func(w *world) { w.shadow.On("request_guidance", n, condortest.AnswerText(text)) }
	}
	diagnose := func(name string) func(*world) {
		return answer(2, "Command = \"RunDiagnostic\"\nDiagnostic = \""+name+"\"")
	}
	told := func(attributes condortest.Ad) func(*world) {
		return func(w *world) {
			h := w.shadow.Wait(w, condortest.Call("event_notification").With("EventType", "DiagnosticResult"))
			for name, want := range attributes {
				if got := h.Ad.Text(name); got != want {
					w.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		}
	}
	run(t, []life{
		{name: "set-up: abort", plan: answer(1, `Command = "Abort"`), want: want{code: 1, last: "error 1007/0", check: (*world).neverBegan}},
		{name: "set-up: abort, and the order to end", plan: func(w *world) {
			w.shadow.On("request_guidance", 1, condortest.AnswerText(`Command = "Abort"`), condortest.Do(func(condortest.Heard) {
				go w.vacate(startd.Vacate{Reason: "Claim deactivated", Code: 1009})
			}))
		}, want: want{check: func(w *world) {
			w.neverBegan()
			for _, h := range w.shadow.Heard() { // it has a reason of its own, which this would replace
				if h.Ad["VacateReason"] != "" {
					w.Errorf("%s says %s", h, h.Ad["VacateReason"])
				}
			}
		}}},
		{name: "set-up: again", script: "exit 0", plan: answer(1, "Command = \"RetryReqest\"\nRetryDelay = 0\nContextAd = [ Mark = 5 ]"), want: want{last: "job_exit 0 100"}},
		{name: "environment: abort", plan: answer(2, `Command = "Abort"`), want: want{code: 1, last: "error 1007/0", says: "given up", check: (*world).neverBegan}},
		{name: "environment: carry on", script: "exit 0", plan: answer(2, `Command = "CarryOn"`), want: want{last: "job_exit 0 100"}},
		{name: "environment: again", script: "exit 0", plan: answer(2, "Command = \"RetryReqest\"\nRetryDelay = 5"), want: want{last: "job_exit 0 100"}},
		{name: "environment: set-up once more", script: "exit 0", plan: answer(2, `Command = "DoJobSetup"`), want: want{last: "job_exit 0 100"}},
		{name: "refused", script: "exit 0", plan: func(w *world) { w.shadow.On("request_guidance", 0, condortest.Refuse(syscall.EINVAL)) }, want: want{last: "job_exit 0 100"}},
		{name: "not asked", script: "exit 0", knobs: map[string]string{"GUIDANCE_MUMS_THE_WORD": "true"}, want: want{last: "job_exit 0 100", check: func(w *world) {
			w.same([]string(nil), w.shadow.Story("request_guidance"))
		}}},
		{name: "a shadow that knows none", script: "exit 0", submit: func(o *condortest.ShadowOptions) { o.Recording = "23.9/plain" }, machine: func(o *condortest.StartdOptions) { o.Recording = "23.9/plain" }, want: want{last: "job_exit 0 100", check: func(w *world) {
			w.same([]string(nil), w.shadow.Story("request_guidance"))
		}}},
		{name: "a diagnostic that is not here", script: "exit 0", plan: diagnose("x"), want: want{last: "job_exit 0 100", check: told(condortest.Ad{"Result": "Error - Unregistered"})}},
		{
			name: "a diagnostic without a file", script: "exit 0", plan: diagnose("x"), knobs: map[string]string{"STARTER_DIAGNOSTIC_X": "/no/such/file"},
			want: want{last: "job_exit 0 100", check: told(condortest.Ad{"Result": "Error - specified path does not exist"})},
		},
		{
			name: "a diagnostic", script: "exit 0", plan: diagnose("x"), knobs: map[string]string{"STARTER_DIAGNOSTIC_X": "@/site/look"},
			programs: map[string]string{"look": "echo out ${_CONDOR_STARTER_PID:+with pid}; echo err >&2; exit 3"},
			want:     want{last: "job_exit 0 100", check: told(condortest.Ad{"Result": "Completed", "ExitStatus": "768", "Contents": "b3V0IHdpdGggcGlkCmVycgo="})},
		},
		{
			name: "a diagnostic that is no program", script: "exit 0", plan: diagnose("x"), knobs: map[string]string{"STARTER_DIAGNOSTIC_X": "/etc/passwd"},
			want: want{last: "job_exit 0 100", check: told(condortest.Ad{"Result": "Error - failed to run"})},
		},
	})
}

// TestOutput are lives whose output arrives, or does not.
func TestOutput(t *testing.T) {
	again := condortest.Answer(condortest.Failure(12, 28, "not now", true))
	run(t, []life{
		{
			name: "what is named", job: `TransferOutput = "made,tree"` + "\n" + `TransferOutputRemaps = "made=renamed"`,
			script: "echo a >made; mkdir tree; echo b >tree/leaf; echo c >other",
			want:   want{last: "job_exit 0 100", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "made": "a\n", "tree/leaf": "b\n"}},
		},
		{
			name: "what is named is missing", job: `TransferOutput = "made"`, script: "exit 0",
			want: want{last: "error 13/2", says: "made", check: func(w *world) { w.same(1, w.shadow.Count(condortest.Call("job_termination"))) }},
		},
		{
			name: "what is below something named cannot be read", job: `TransferOutput = "made"`, script: "mkdir -p made/closed; echo a >made/a; echo b >made/closed/b; chmod 0 made/closed",
			want: want{last: "job_exit 0 100", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "made/a": "a\n"}, check: func(w *world) {
				w.shadow.Wait(w, condortest.Call("ulog").With("Info", "Left out of the job's output, because it cannot be sent: made/closed (Permission denied)."))
			}},
		},
		{
			name: "it fails, for good", script: "exit 0", plan: func(w *world) {
				w.shadow.On(condortest.OutputAck, 1, condortest.Answer(condortest.Failure(12, 13, "no such right", false)))
			},
			want: want{last: "error 12/13", says: "no such right", check: func(w *world) { w.same(1, w.shadow.Count(condortest.Call("job_termination"))) }},
		},
		{
			name: "the last acknowledgement fails once", script: "exit 4", plan: func(w *world) { w.shadow.On(condortest.OutputAck, 1, again) },
			want: want{last: "job_exit 1024 100", check: func(w *world) { w.same(2, w.shadow.Count(condortest.Call(condortest.Output))) }},
		},
		{
			name: "none on success", job: `WhenToTransferOutput = "ON_SUCCESS"`, script: "exit 4",
			want: want{last: "job_exit 1024 100"},
		},
		{
			name: "no more than so many files", knobs: map[string]string{"POD_STARTER_MAX_OUTPUT_FILES": "3"}, script: "echo 1 >a; echo 2 >b; echo 3 >c",
			want: want{last: "error 13/7", says: "POD_STARTER_MAX_OUTPUT_FILES"},
		},
	})
}
