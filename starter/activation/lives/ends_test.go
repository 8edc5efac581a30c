package lives_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/condor/condortest"
)

// whole is what a shadow hears of the plain life of a job without output.
func whole(w *world) []string {
	key := fmt.Sprintf("%q", w.shadow.Key())
	return []string{
		"register_starter_info", `get_sec_session_info "" ""`, "register_job_info", "request_guidance JobSetup",
		"input " + key, `input_item "job.sh" 1`, "go_ahead 300", "input_ack", "request_guidance JobEnvironment",
		"begin_execution", "register_job_info Running", "event_notification ActivationExecutionExit", "register_job_info Exited",
		"output " + key, "output_info 1", "go_ahead 300", `output_item "_condor_stdout" 1 420`, `output_item "_condor_stderr" 1 420`, "output_ack",
		"register_job_info Exited", "job_exit 0 100", "closed",
	}
}

// TestPlainLife is heard whole by both peers.
func TestPlainLife(t *testing.T) {
	run(t, []life{{name: "plain", script: "exit 0", want: want{last: "job_exit 0 100", check: func(w *world) {
		w.same(whole(w), w.story())
		w.same([]string{"update", "update Running", "update Exited", "update Exited", "final", "closed"}, w.startd.Story(condortest.Update, condortest.Final, condortest.Closed))
		place := filepath.Join(w.execute(), fmt.Sprintf("dir_%d", os.Getpid()))
		w.same(4, w.startd.Count(condortest.Call(condortest.Update).With("CondorScratchDir", place)))
	}}}})
}

// noTransfer are attributes of a job that runs in a directory that access point and
// execution point share: @/site.
const noTransfer = `ShouldTransferFiles = "NO"
FileSystemDomain = "here.invalid"
Cmd = "/bin/sh"
Iwd = "@/site"
TransferExecutable = false
`

// output is what comes back of a job that writes this to its standard output.
func output(text string) map[string]string {
	return map[string]string{"_condor_stdout": text, "_condor_stderr": ""}
}

// TestManifest are jobs that ask for lists of their files and for their environment.
func TestManifest(t *testing.T) {
	lists := func(dir string, wanted ...string) func(*world) {
		return func(w *world) {
			out := w.shadow.Outputs()
			for file, lines := range map[string][]string{"in": wanted, "out": append(wanted, "./made", "./_condor_stdout")} {
				for _, line := range append(lines, "./"+dir+"/", "./"+dir+"/in") {
					if !strings.Contains("\n"+out[dir+"/"+file], "\n"+line+"\n") {
						w.Errorf("%s lacks %s: %q", file, line, out[dir+"/"+file])
					}
				}
			}
			if strings.Contains(out[dir+"/in"], "./made") {
				w.Errorf("the list of what there was has what was made: %q", out[dir+"/in"])
			}
			if env := out[dir+"/environment"]; !strings.Contains(env, "SAYS=hello") || !strings.HasSuffix(env, "\n") {
				w.Errorf("environment: %q", env)
			}
		}
	}
	const env = "Environment = \"SAYS=hello\"\n"
	run(t, []life{
		{name: "wanted", job: env + "ManifestDesired = true", script: "echo x >made", want: want{last: "job_exit 0 100", check: lists("1_0_manifest", "./job.sh", "./.job.ad")}},
		{name: "in a directory of its own", job: env + `ManifestDir = "notes"`, script: "echo x >made", want: want{last: "job_exit 0 100", check: lists("notes", "./job.sh")}},
		{name: "beside output that is named", job: env + "ManifestDesired = true\nTransferOutput = \"made\"", script: "echo x >made", want: want{last: "job_exit 0 100", check: lists("1_0_manifest")}},
		{
			name: "that the job removes", job: env + "ManifestDesired = true", script: "rm -r 1_0_manifest",
			want: want{last: "job_exit 0 100", check: func(w *world) {
				if out := w.shadow.Outputs(); !strings.Contains(out["1_0_manifest/out"], "./1_0_manifest/out\n") {
					w.Errorf("%q came back", out)
				}
			}},
		},
		{
			name: "that the job puts a file in the place of", job: "ManifestDesired = true\nTransferOutput = \"made\"", script: "rm -r 1_0_manifest; echo mine >1_0_manifest; echo x >made",
			want: want{last: "job_exit 0 100", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "made": "x\n"}},
		},
		{
			name: "outside of the sandbox", job: `ManifestDir = "../notes"`, script: "exit 0",
			want: want{last: "error 6/0", says: "manifest_dir", check: nothingMoved},
		},
	})
}

// nothingMoved shows that the job was refused before anything was done for it.
func nothingMoved(w *world) {
	w.same([]string(nil), w.shadow.Story("input", "begin_execution", "output"))
}

// TestEnds are ways in which a job ends by itself.
func TestEnds(t *testing.T) {
	run(t, []life{
		{
			name: "exit 0", script: "echo hello; echo trouble >&2; echo new >made",
			want: want{last: "job_exit 0 100", output: map[string]string{"_condor_stdout": "hello\n", "_condor_stderr": "trouble\n", "made": "new\n"}},
		},
		{name: "exit 7", script: "exit 7", want: want{last: "job_exit 1792 100"}},
		{name: "signal", script: "kill -TERM $$", want: want{last: "job_exit 15 100"}},
		{
			name: "core file", script: "echo core >core; kill -TERM $$",
			want: want{last: "job_exit 15 103", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "core.1.0": "core\n"}},
		},
		{
			name: "it leaves children", script: "sleep 1000 & echo $! >@/child; echo left",
			plan: func(w *world) {
				w.shadow.On(condortest.Output, 1, condortest.Do(func(condortest.Heard) { w.childIsDead() }))
			},
			want: want{last: "job_exit 0 100", output: output("left\n")},
		},
		{
			name: "it ignores signals and leaves children in sessions of their own", script: "trap '' TERM HUP INT; setsid sleep 1000 & setsid sh -c 'setsid sleep 1000 &'; exit 3",
			want: want{last: "job_exit 768 100"},
		},
		{
			name: "a program of the machine", job: "Cmd = \"/bin/true\"\nTransferExecutable = false",
			want: want{last: "job_exit 0 100"},
		},
		{
			name: "missing program", job: "Cmd = \"/no/such/program\"\nTransferExecutable = false",
			want: want{last: "error 6/2", says: "Failed to execute '/no/such/program'"},
		},
		{
			name: "a program that is none", files: map[string]string{"job.sh": "neither a script nor a program\n"},
			want: want{last: "error 6/8", says: "Exec format error"},
		},
		{
			name: "a directory as program", job: "Cmd = \"/tmp\"\nTransferExecutable = false",
			want: want{last: "error 6/13", says: "Permission denied"},
		},
		{
			name: "standard input", job: `In = "words"`, without: []string{"TransferIn"}, files: map[string]string{"words": "some words"}, script: "cat",
			want: want{last: "job_exit 0 100", output: output("some words")},
		},
		{
			name: "an environment that is none", job: `Environment = "a='b"`, script: "exit 0",
			want: want{last: "error 6/0", says: "environment"},
		},
		{
			name: "arguments that are none", job: `Arguments = "a'b"`, script: "exit 0",
			want: want{last: "error 6/0"},
		},
		{
			name: "universe", job: "JobUniverse = 9", script: "exit 0",
			want: want{last: "error 6/0", says: "universe = grid"},
		},
		{
			name: "vm", job: "JobUniverse = 13", script: "exit 0",
			want: want{last: "error 6/0", says: "universe = vm", check: nothingMoved},
		},
		{
			name: "a tool beside the job", job: `ToolDaemonCmd = "tracer"`, script: "exit 0",
			want: want{last: "error 6/0", says: "tool_daemon_cmd", check: nothingMoved},
		},
		{
			name: "a group for shared files", job: noTransfer + `PrimaryUnixGroup = "physics"` + "\n" + `Arguments = "-c 'echo here >result'"`,
			want: want{last: "error 49/0", says: "primary_unix_group", check: nothingMoved},
		},
		{
			name: "as its owner, with a group for what returns", job: "RunAsOwner = true\nPrimaryUnixGroup = \"physics\"", script: "exit 0",
			want: want{last: "job_exit 0 100"},
		},
		{
			name: "a container image where there are no containers", job: `ContainerImage = "busybox"` + "\nWantContainer = true", script: "exit 0",
			want: want{last: "error 1021/0", says: "no containers"},
		},
		{
			name: "more processes than are allowed", knobs: map[string]string{"POD_STARTER_MAX_PROCESSES": "20"},
			script: "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; wait",
			want:   want{last: "error 34/11", says: "more than 20 processes"},
		},
		{
			name: "no file transfer", job: noTransfer + `Arguments = "-c 'echo here >result'"`,
			want: want{last: "job_exit 0 100", check: func(w *world) {
				w.sameFile("site/result", "here\n")
				w.sameFile("site/out", "")
				w.same([]string(nil), w.shadow.Story("input", "output", "output_item"))
			}},
		},
		{
			name: "it asks what it was given", job: "Environment = \"SAYS=a' 'b\"\nArguments = \"one 'two words'\"",
			script: `echo "$SAYS|$1|$2|${PILOT-none}|${_CONDOR_SLOT}|$(umask)|${CONDOR_INHERIT-none}"; test "$_CONDOR_SCRATCH_DIR" = "$PWD"`,
			want:   want{last: "job_exit 0 100", output: output("a b|one|two words|none|slot1_1|0022|none\n")},
		},
		{
			name: "ads in the sandbox", script: "grep -c ^ClusterId .job.ad; grep -c ^ClaimId .job.ad .machine.ad; grep -c ^Cpus .machine.ad",
			want: want{last: "job_exit 0 100", output: output("1\n.job.ad:0\n.machine.ad:0\n1\n")},
		},
		{
			name: "its own log", options: nil, script: "exit 0", job: `JobStarterDebug = "D_FULLDEBUG"`,
			want: want{last: "job_exit 0 100"},
		},
		{
			name: "a slot with less", machine: func(o *condortest.StartdOptions) { o.Overlay = "Arguments = \"other\"" }, script: "echo $1",
			want: want{last: "job_exit 0 100", output: output("other\n")},
		},
	})
}

// TestDeferral are jobs with a time at which they want to begin.
func TestDeferral(t *testing.T) {
	in := func(seconds int64) func(*condortest.ShadowOptions) {
		return func(o *condortest.ShadowOptions) {
			o.Job += fmt.Sprintf("DeferralTime = %d\n", time.Now().Unix()+seconds)
		}
	}
	run(t, []life{
		{
			name: "in a second", submit: in(4), script: "date +%s >when",
			want: want{last: "job_exit 0 100", log: []string{"Phase defer took"}},
		},
		{name: "late, within the window", submit: in(-20), job: "DeferralWindow = 3600\n", want: want{last: "job_exit 0 100"}},
		{
			name: "missed", submit: in(-20), job: "DeferralWindow = 1\n",
			want: want{last: "job_exit -1 114", log: []string{"The job is not started"}, check: (*world).neverBegan},
		},
		{name: "no time", job: `DeferralTime = "noon"`, want: want{last: "job_exit -1 114", check: (*world).neverBegan}},
	})
}

// TestStreams are jobs whose standard files stay with the shadow.
func TestStreams(t *testing.T) {
	streamed := "StreamOut = true\nStreamErr = true\nOut = \"far/out\"\nErr = \"far/err\""
	far := map[string]string{"far/": ""}
	run(t, []life{
		{
			name: "all three", job: streamed + "\nIn = \"words\"\nStreamIn = true", files: map[string]string{"far/": "", "words": "some words\n"},
			script: "cat; echo trouble >&2", want: want{last: "job_exit 0 100", check: func(w *world) {
				w.sameSubmitted("far/out", "some words\n")
				w.sameSubmitted("far/err", "trouble\n")
			}},
		},
		{
			name: "output and errors in one", job: "StreamOut = true\nStreamErr = true\nOut = \"far/out\"\nErr = \"far/out\"", files: far,
			script: "echo one; echo two >&2; echo three", want: want{last: "job_exit 0 100", check: func(w *world) { w.sameSubmitted("far/out", "one\ntwo\nthree\n") }},
		},
		{
			name: "much", job: streamed, files: far, script: "i=0; while [ $i -lt 2000 ]; do echo $i and some more words to fill the pipe with something; i=$((i+1)); done",
			want: want{last: "job_exit 0 100", check: func(w *world) {
				text := w.submitted("far/out")
				if n := strings.Count(text, "\n"); n != 2000 || !strings.HasSuffix(text, "1999 and some more words to fill the pipe with something\n") {
					w.Errorf("%d lines", n)
				}
			}},
		},
		{
			name: "a child keeps the pipe", job: streamed, files: far, script: "echo first; setsid sleep 1000 & exit 2",
			want: want{last: "job_exit 512 100", check: func(w *world) { w.sameSubmitted("far/out", "first\n") }},
		},
		{name: "no such output", job: streamed, script: "echo hello", want: want{last: "error 9/0", says: "standard output stream"}},
		{name: "no such error", job: "StreamErr = true\nErr = \"far/err\"", script: "echo hello", want: want{last: "error 9/0", says: "standard error stream"}},
		{
			name: "no such input", job: "In = \"words\"\nStreamIn = true", script: "cat",
			want: want{last: "error 10/0", says: "standard input stream"},
		},
		{
			name: "the submit side cannot write any more", job: streamed, files: far, script: "while echo more; do :; done",
			plan: func(w *world) { w.shadow.On("write", 3, condortest.Refuse(enospc)) },
			want: want{last: "error 9/28", says: "StreamHandler"},
		},
	})
}

// childIsDead: the process whose number the job has written into the file child is gone.
func (w *world) childIsDead() {
	pid, err := os.ReadFile(filepath.Join(w.dir, "child"))
	if err != nil || processText(strings.TrimSpace(string(pid)), "cmdline") != "" {
		w.Errorf("the job's child %s is alive, %v", pid, err)
	}
}

// neverBegan: the shadow has not heard that the job begins.
func (w *world) neverBegan() {
	w.Helper()
	w.same([]string(nil), w.shadow.Story("begin_execution"))
}

// sameFile compares a file below the life's directory.
func (w *world) sameFile(name, text string) {
	w.Helper()
	got, err := os.ReadFile(filepath.Join(w.dir, name))
	w.must(err)
	w.same(text, string(got))
}

// submitted is a file in the submit directory.
func (w *world) submitted(name string) string {
	w.Helper()
	got, err := os.ReadFile(filepath.Join(w.shadow.Dir(), name))
	w.must(err)
	return string(got)
}

func (w *world) sameSubmitted(name, text string) {
	w.Helper()
	w.same(text, w.submitted(name))
}
