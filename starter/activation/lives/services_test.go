package lives_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/condor/condortest"
)

// chirping begins a script that talks to the chirp proxy: ask sends a line and reads the
// first line of the answer. It is for bash, which has TCP.
const chirping = `exec bash -c '
read host port cookie <"$_CONDOR_CHIRP_CONFIG"
exec 3<>/dev/tcp/$host/$port
ask() { echo "$*" >&3; read -r answer <&3; echo "$answer"; }
ask cookie $cookie
`

// chirp is a script that chirps.
func chirp(script string) string { return chirping + script + "'" }

// TestChirp are jobs that talk to their shadow.
func TestChirp(t *testing.T) {
	run(t, []life{
		{
			name: "attributes", job: "WantIOProxy = true", script: chirp("ask set_job_attr Mark 17\nask get_job_attr Mark\necho"),
			want: want{last: "job_exit 0 100", check: func(w *world) {
				w.same([]string{`set_job_attr "17" "Mark"`, `get_job_attr "Mark"`}, w.shadow.Story("set_job_attr", "get_job_attr"))
			}},
		},
		{
			name: "updates that wait", script: chirp("ask set_job_attr_delayed ChirpMark 18"),
			want: want{last: "job_exit 0 100", output: output("0\n0\n"), check: func(w *world) {
				exit := w.shadow.Wait(w, condortest.Call("job_exit"))
				if exit.Ad["ChirpDelayedAttrs"] != "[ ChirpMark = 18 ]" {
					w.Errorf("the last word has %v", exit.Ad)
				}
			}},
		},
		{
			name: "updates that wait until a shadow is back", script: chirp("ask set_job_attr_delayed ChirpMark 18"),
			plan: func(w *world) { w.shadow.On("job_exit", 1, condortest.HangUp()) },
			live: func(w *world) {
				w.logged("Lost connection to shadow")
				if reply, err := w.shadow.Reconnect(w.ctx); err != nil || reply.Text("Result") != "Success" {
					w.Errorf("%v, %v", reply, err)
				}
			},
			want: want{last: "job_exit 0 100", again: true, check: func(w *world) {
				w.same(2, w.shadow.Count(condortest.Call("job_exit").With("ChirpDelayedAttrs", "[ ChirpMark = 18 ]")))
			}},
		},
		{
			name: "what it asked for last is done", job: "WantIOProxy = true", script: chirp(`echo "set_job_attr Mark 19" >&3; echo end`),
			want: want{last: "job_exit 0 100", output: output("0\nend\n"), check: func(w *world) {
				w.same([]string{`set_job_attr "19" "Mark"`}, w.shadow.Story("set_job_attr"))
			}},
		},
		{
			name: "not wanted", script: chirp("ask set_job_attr Mark 17"),
			want: want{last: "job_exit 0 100", check: func(w *world) { w.same([]string(nil), w.shadow.Story("set_job_attr")) }},
		},
		{
			name: "not allowed", job: "WantIOProxy = true", knobs: map[string]string{"ENABLE_CHIRP": "false"}, script: `echo "${_CONDOR_CHIRP_CONFIG-none}"`,
			want: want{last: "job_exit 0 100", output: output("none\n"), log: []string{"not enabling chirp"}},
		},
		{
			name: "a shadow that refuses", job: "WantIOProxy = true", script: chirp("ask set_job_attr Owner 17"),
			want: want{last: "job_exit 0 100", output: output("0\n-2\n")},
		},
	})
}

// TestTokens are jobs with tokens of their users.
func TestTokens(t *testing.T) {
	const wants = `OAuthServicesNeeded = "box scitokens"`
	tokens := func(tokens map[string]string) func(*condortest.ShadowOptions) {
		return func(o *condortest.ShadowOptions) { o.Tokens = tokens }
	}
	both := tokens(map[string]string{"box": "one", "scitokens": "two"})
	run(t, []life{
		{
			name: "two", job: wants, submit: both, script: `cd "$_CONDOR_CREDS" && cat box.use scitokens.use && stat -c %a box.use`,
			want: want{last: "job_exit 0 100", output: output("onetwo600\n")},
		},
		{name: "one is missing", job: wants, submit: tokens(map[string]string{"box": "one"}), want: want{code: 1, last: "error 1007/0", says: "scitokens", check: (*world).neverBegan}},
		{name: "the shadow has none", job: wants, want: want{code: 1, last: "error 1007/0", says: "tokens", check: (*world).neverBegan}},
		{
			name: "renewed until the end", job: wants, submit: both, knobs: map[string]string{"SEC_CREDENTIAL_REFRESH": "1"},
			script: "echo runs >@/said; read word <@/told",
			plan: func(w *world) {
				// A renewal that never gets an answer ends before the last word is said.
				w.shadow.On("getcreds", 3, condortest.Do(func(condortest.Heard) { w.tell("end") }))
			},
			live: func(w *world) { w.runs() },
			want: want{last: "job_exit 0 100", check: func(w *world) {
				story := w.shadow.Story("getcreds", "job_exit")
				if len(story) < 4 || !strings.HasPrefix(story[len(story)-1], "job_exit") {
					w.Errorf("the shadow heard %v", story)
				}
			}},
		},
		{
			name: "a renewal fails", job: wants, submit: both, knobs: map[string]string{"SEC_CREDENTIAL_REFRESH": "1"},
			script: "echo runs >@/said; read word <@/told",
			plan:   func(w *world) { w.shadow.On("getcreds", 2, condortest.Refuse(syscall.EACCES)) },
			live: func(w *world) {
				w.logged("credentials are not renewed")
				w.tell("end")
			},
			want: want{last: "job_exit 0 100"},
		},
	})
}

// TestProxy are jobs with an X.509 proxy.
func TestProxy(t *testing.T) {
	const wants = `x509userproxy = "proxy"`
	files := map[string]string{"proxy": "the submit side's own"}
	bring := func(bring func(context.Context, *condortest.Shadow) (int64, error), want int64) func(*world) {
		return func(w *world) {
			w.runs()
			if n, err := bring(w.ctx, w.shadow); n != want || err != nil {
				w.Errorf("the answer is %d, %v", n, err)
			}
			w.tell("end")
		}
	}
	text := func(ctx context.Context, s *condortest.Shadow) (int64, error) { return s.SendProxy(ctx, "newer\n") }
	delegated := func(ctx context.Context, s *condortest.Shadow) (int64, error) { return s.DelegateProxy(ctx, 3) }
	const waits = `echo runs >@/said; read word <@/told; `
	run(t, []life{
		{
			name: "delegated", job: wants, files: files, script: `grep -c "BEGIN CERT" "$X509_USER_PROXY"; stat -c %a proxy`,
			want: want{last: "job_exit 0 100", output: output("2\n600\n")},
		},
		{
			name: "renewed as a file", job: wants, files: files, script: waits + `cat "$X509_USER_PROXY"`, live: bring(text, 1),
			want: want{last: "job_exit 0 100", output: output("newer\n"), log: []string{"renewed the job's X.509 proxy"}},
		},
		{
			name: "renewed by delegation", job: wants, files: files, script: waits + `grep -c "BEGIN CERT" "$X509_USER_PROXY"`, live: bring(delegated, 1),
			want: want{last: "job_exit 0 100", output: output("3\n")},
		},
		{
			name: "without file transfer", job: noTransfer + "x509userproxy = \"@/site/proxy\"\nArguments = \"-c 'grep -c BEGIN.CERT $X509_USER_PROXY >@/site/result; echo runs >@/said; read word <@/told'\"",
			live: bring(text, 2), want: want{last: "job_exit 0 100", check: func(w *world) { w.sameFile("site/result", "2\n") }},
		},
		{
			name: "without file transfer, refused", job: noTransfer + "x509userproxy = \"@/site/proxy\"\nArguments = \"-c 'exit 0'\"",
			plan: func(w *world) { w.shadow.On("get_delegated_proxy", 1, condortest.Refuse(syscall.ENOENT)) },
			want: want{last: "job_exit 0 100", log: []string{"proxy is not delegated"}},
		},
	})
}

// TestKerberos are jobs with Kerberos tickets.
func TestKerberos(t *testing.T) {
	const wants = "SendCredential = true\nUidDomain = \"here.invalid\""
	knobs := map[string]string{"SEC_CREDENTIAL_DIRECTORY_KRB": "@/site", "CREDD_POLLING_TIMEOUT": "1"}
	ticket := func(o *condortest.ShadowOptions) { o.Kerberos = []byte("secret") }
	run(t, []life{
		{
			name: "tickets that are there", job: wants, knobs: knobs, programs: map[string]string{"alice.cc": "tickets\n"}, script: `echo "$KRB5CCNAME"; cat alice.cc | tail -1`,
			want: want{last: "job_exit 0 100", check: func(w *world) {
				if out := w.shadow.Outputs()["_condor_stdout"]; !strings.HasSuffix(out, "/alice.cc\ntickets\n") {
					w.Errorf("%q", out)
				}
			}},
		},
		{
			name: "of a job from elsewhere", job: "SendCredential = true\nUidDomain = \"there.invalid\"", knobs: knobs, programs: map[string]string{"nobody.cc": "tickets\n"}, script: "tail -1 nobody.cc",
			want: want{last: "job_exit 0 100", output: output("tickets\n")},
		},
		{
			name: "tickets that are made", job: wants, knobs: knobs, submit: ticket, script: "cat alice.cc",
			live: func(w *world) { // as a credential monitor
				w.shadow.Wait(w, condortest.Call(condortest.Kerberos))
				w.untilThere("site/alice.cred")
				w.must(os.WriteFile(filepath.Join(w.dir, "site/new"), []byte("made"), 0o600))
				w.must(os.Rename(filepath.Join(w.dir, "site/new"), filepath.Join(w.dir, "site/alice.cc")))
			},
			want: want{last: "job_exit 0 100", output: output("made")},
		},
		{name: "nobody makes any", job: wants, knobs: knobs, submit: ticket, want: want{code: 1, last: "error 1007/0", check: (*world).neverBegan}},
		{name: "the shadow has none", job: wants, knobs: knobs, want: want{code: 1, last: "error 1007/0", check: (*world).neverBegan}},
		{name: "no directory", job: wants, want: want{code: 1, last: "error 1007/0", says: "SEC_CREDENTIAL_DIRECTORY_KRB", check: (*world).neverBegan}},
	})
}

// untilThere waits until a file below the life's directory is there.
func (w *world) untilThere(name string) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // the file of another program
		if _, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
			return
		} else if time.Now().After(deadline) {
			w.Fatal(err)
		}
	}
}

// TestPlugins are jobs with URLs.
func TestPlugins(t *testing.T) {
	// It moves one file in a run, as long as the URL does not end in "bad".
	const plugin = `if [ "$1" = -classad ]; then
	echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "far"'; echo 'MultipleFileSupport = true'; echo 'PluginVersion = "1"'; echo 'ProtocolVersion = 2'
	exit
fi
url=$(sed -n 's/.*[Uu]rl = "\([^"]*\)".*/\1/p' "$2"); file=$(sed -n 's/.*LocalFileName = "\([^"]*\)".*/\1/p' "$2")
case "$url $5" in
*bad*) echo "[ TransferSuccess = false; TransferError = \"sorry\"; TransferUrl = \"$url\"; TransferFileName = \"thing\" ]" >"$4"; exit 9;;
*-upload) cat "$file" >@/brought;;
*) echo "of $url" >"$file";;
esac
echo "[ TransferSuccess = true; TransferUrl = \"$url\"; TransferFileName = \"thing\"; TransferTotalBytes = 3 ]" >"$4"
`
	site := map[string]string{"FILETRANSFER_PLUGINS": "@/site/far"}
	programs := map[string]string{"far": plugin}
	run(t, []life{
		{
			name: "input", job: `TransferInput = "far://host/thing"`, knobs: site, programs: programs, script: "cat thing",
			want: want{last: "job_exit 0 100", output: output("of far://host/thing\n"), check: func(w *world) {
				for _, h := range w.shadow.Heard() {
					if h.Call == "register_job_info" && h.Ad["InputPluginResultList"] != "" {
						return
					}
				}
				w.Error("the shadow has not heard what the plugin did")
			}},
		},
		{name: "input that fails", job: `TransferInput = "far://host/bad"`, knobs: site, programs: programs, want: want{last: "error 12/2304", says: "far://host/bad", check: (*world).neverBegan}},
		{name: "no plugin", job: `TransferInput = "far://host/thing"`, want: want{last: "error 12/-1001", says: "far", check: (*world).neverBegan}},
		{
			name: "output", job: "TransferOutput = \"made\"\nTransferOutputRemaps = \"made=far://host/made\"", knobs: site, programs: programs, script: "echo result >made",
			want: want{last: "job_exit 0 100", check: func(w *world) { w.sameFile("brought", "result\n") }},
		},
	})
}

// TestCheckpoints are jobs that save what they have done.
func TestCheckpoints(t *testing.T) {
	// It counts its runs in a file, and ends with the third.
	const counts = "n=$(cat runs 2>/dev/null || echo 0); n=$((n+1)); echo $n >runs; echo run $n; [ $n -ge 3 ] || exit 85; exit 2"
	const self = "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\n"
	const signal = "WantCheckpointSignal = true\nCheckpointSig = \"SIGUSR2\"\nSuccessCheckpointExitCode = 85\n"
	const waits = "trap 'echo saved >>made; exit 85' USR2; echo runs >@/said; while :; do sleep 0.05; done"
	run(t, []life{
		{
			name: "by itself", job: self, script: counts,
			want: want{last: "job_exit 512 100", output: map[string]string{"_condor_stdout": "run 1\nrun 2\nrun 3\n", "_condor_stderr": "", "runs": "3\n"}, check: func(w *world) {
				w.same([]string{"output_info 0", "output_info 0", "output_info 1"}, w.shadow.Story(condortest.OutputInfo))
				w.same(2, w.shadow.Count(condortest.Call("event_notification").With("EventType", "SuccessfulCheckpoint")))
				w.same(2, w.startd.Count(condortest.Call(condortest.Again)))
				w.same(3, w.shadow.Count(condortest.Call("begin_execution")))
			}},
		},
		{
			name: "with streams", job: self + "StreamOut = true\nOut = \"far\"", script: counts,
			want: want{last: "job_exit 512 100", check: func(w *world) { w.sameSubmitted("far", "run 1\nrun 2\nrun 3\n") }},
		},
		{
			name: "it may not be started again", job: self, script: counts, plan: func(w *world) { w.startd.On(condortest.Again, 1, condortest.AnswerText("Start = false")) },
			want: want{code: 107, last: "error 1025/0", says: "Rescheduling self-checkpoint job"},
		},
		{
			name: "the startd does not say whether", job: self, script: counts, plan: func(w *world) { w.startd.On(condortest.Again, 1, condortest.HangUp()) },
			want: want{last: "job_exit 512 100", log: []string{"without the startd's consent"}},
		},
		{
			name: "one cannot be sent, for now", job: self, script: counts,
			plan: func(w *world) {
				w.shadow.On(condortest.OutputAck, 1, condortest.Answer(condortest.Failure(12, 28, "not now", true)))
			},
			want: want{last: "job_exit 512 100", check: func(w *world) {
				w.same(1, w.shadow.Count(condortest.Call("event_notification").With("EventType", "FailedCheckpoint")))
				w.same(1, w.shadow.Count(condortest.Call("event_notification").With("EventType", "SuccessfulCheckpoint")))
			}},
		},
		{
			name: "one cannot be sent, for good", job: self, script: counts,
			plan: func(w *world) {
				w.shadow.On(condortest.OutputAck, 1, condortest.Answer(condortest.Failure(12, 28, "no room", false)))
			},
			want: want{last: "error 36/-1", says: "no room"},
		},
		{
			name: "a checkpoint without what is named", job: self + "TransferCheckpoint = \"nothing\"", script: counts,
			want: want{last: "error 36/-1", says: "nothing"},
		},
		{
			name: "by signal", job: signal, script: waits + "; exit 1",
			live: func(w *world) {
				w.runs()
				w.signal(sigCheckpoint)
				w.hears("runs")
				w.loggedTimes("Create_Process succeeded", 2)
				w.vacate(condortest.DeactivatedFast)
			},
			want: want{last: "job_exit 9 107", check: func(w *world) {
				w.same(1, w.shadow.Count(condortest.Call("event_notification").With("EventType", "SuccessfulCheckpoint")))
			}},
		},
		{
			name: "by signal, and it ends otherwise", job: signal, script: strings.Replace(waits, "exit 85", "exit 3", 1),
			live: func(w *world) {
				w.runs()
				w.signal(sigCheckpoint)
			},
			want: want{last: "error 36/768", says: "did not exit as promised"},
		},
		{
			name: "a signal that it does not want", script: "echo runs >@/said; read word <@/told", live: func(w *world) {
				w.runs()
				w.signal(sigCheckpoint)
				w.tell("end")
			},
			want: want{last: "job_exit 0 100"},
		},
	})
}

// TestDamagedCheckpoints are jobs whose checkpoint did not come from its destination as it was
// saved. The shadow forgets it, the first one like any other.
func TestDamagedCheckpoints(t *testing.T) {
	damaged := func(number int) life {
		name := fmt.Sprintf("_condor_checkpoint_MANIFEST.%04d", number)
		return life{
			name: fmt.Sprint("number ", number), files: map[string]string{name: "no list of files"},
			job: "CheckpointDestination = \"far://host\"\nTransferInput = \"" + name + "\"",
			want: want{last: "error", says: "Invalid MANIFEST file", check: func(w *world) {
				w.neverBegan()
				forget := condortest.Call("event_notification").With("EventType", "InvalidCheckpointDownload")
				w.same(1, w.shadow.Count(forget.With("CheckpointNumber", fmt.Sprint(number))))
			}},
		}
	}
	older := damaged(2)
	older.name = "an access point that forgets none"
	older.submit = func(o *condortest.ShadowOptions) { o.Recording = "23.9/plain" }
	older.machine = func(o *condortest.StartdOptions) { o.Recording = "23.9/plain" }
	older.want = want{last: "error 12/0", says: "cannot go back to an earlier checkpoint", check: (*world).neverBegan}
	run(t, []life{damaged(0), damaged(2), older})
}
