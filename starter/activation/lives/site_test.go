package lives_test

import (
	"strings"
	"testing"

	"podstarter/condor/condortest"
)

// note is a line of a program of the site: it writes down that it ran, and with what.
const note = `echo "${0##*/} $*" >>@/noted` + "\n"

// TestHooks are the site's hooks.
func TestHooks(t *testing.T) {
	hooks := func(names ...string) map[string]string {
		knobs := map[string]string{"STARTER_JOB_HOOK_KEYWORD": "SITE"}
		for _, name := range names {
			knobs["SITE_HOOK_"+name] = "@/site/" + strings.ToLower(name)
		}
		return knobs
	}
	noted := func(want string) func(*world) { return func(w *world) { w.sameFile("noted", want) } }
	const before, prepare, update, exit = "PREPARE_JOB_BEFORE_TRANSFER", "PREPARE_JOB", "UPDATE_JOB_INFO", "JOB_EXIT"
	run(t, []life{
		{
			name: "all of them", knobs: hooks(before, prepare, update, exit), script: "echo job >>@/noted; exit 2",
			programs: map[string]string{
				"prepare_job_before_transfer": note + "test ! -e job.sh && grep -q '^ClusterId = 1$' && ! grep -q ^ClaimId .job.ad",
				"prepare_job":                 note + "test -e job.sh",
				"update_job_info":             "cat >/dev/null",
				"job_exit":                    note + "grep -q '^ExitCode = 2$' && echo exited >>@/noted",
			},
			want: want{last: "job_exit 512 100", check: noted("prepare_job_before_transfer \nprepare_job \njob\njob_exit exit\nexited\n"), log: []string{"HOOK_UPDATE_JOB_INFO"}},
		},
		{
			name: "one changes the job", knobs: hooks(before), script: `echo "$1"`, programs: map[string]string{"prepare_job_before_transfer": `echo 'Arguments = "changed"'; echo oops >&2`},
			want: want{last: "job_exit 0 100", output: output("changed\n"), log: []string{"wrote to its standard error: oops"}},
		},
		{
			name: "the later one changes the job", knobs: hooks(prepare), script: `echo "$1"`, programs: map[string]string{"prepare_job": `echo 'Arguments = "changed"'`},
			want: want{last: "job_exit 0 100", output: output("changed\n")},
		},
		{
			name: "one has arguments", knobs: with(hooks(prepare), "SITE_HOOK_PREPARE_JOB_ARGS", "a 'b c'"), script: "exit 0", programs: map[string]string{"prepare_job": `test "$2" = "b c"`},
			want: want{last: "job_exit 0 100"},
		},
		{
			name: "one fails before the transfer", knobs: hooks(before, exit), programs: map[string]string{"prepare_job_before_transfer": "exit 3", "job_exit": note},
			want: want{last: "error 19/3", says: "PREPARE_JOB_BEFORE_TRANSFER", check: func(w *world) {
				w.neverBegan()
				w.same(0, w.shadow.Count(condortest.Call(condortest.Input)))
			}},
		},
		{
			name: "one fails after the transfer", knobs: hooks(prepare), programs: map[string]string{"prepare_job": "exit 3"},
			want: want{last: "error 19/3", says: "PREPARE_JOB", check: (*world).neverBegan},
		},
		{
			name: "one is killed", knobs: hooks(prepare), programs: map[string]string{"prepare_job": "kill -9 $$"},
			want: want{last: "error", says: "PREPARE_JOB", check: (*world).neverBegan},
		},
		{
			name: "one takes too long", knobs: with(hooks(prepare), "SITE_HOOK_PREPARE_JOB_TIMEOUT", "1"), programs: map[string]string{"prepare_job": "sleep 1000 & sleep 1000"},
			want: want{last: "error", says: "took longer than 1s", check: (*world).neverBegan},
		},
		{
			name: "one that is none", knobs: map[string]string{"STARTER_JOB_HOOK_KEYWORD": "SITE", "SITE_HOOK_PREPARE_JOB": "/no/such/hook"},
			want: want{code: 1, last: "error 1007/0", says: "SITE_HOOK_PREPARE_JOB", check: (*world).neverBegan},
		},
		{
			name: "the last one fails", knobs: hooks(exit), script: "exit 0", programs: map[string]string{"job_exit": "exit 3"},
			want: want{last: "job_exit 0 100"},
		},
		{
			name: "the one for updates outlasts the job", knobs: with(hooks(update), "STARTER_INITIAL_UPDATE_INTERVAL", "0"), script: "echo runs >@/said; read word <@/told",
			programs: map[string]string{"update_job_info": "exec sleep 1000"},
			live: func(w *world) {
				w.hears("runs")
				w.logged("the next one is left out")
				w.tell("end")
			},
			want: want{last: "job_exit 0 100", log: []string{"takes long and is killed"}},
		},
		{
			name: "the one for updates outlasts the container", knobs: with(with(hooks(update), "STARTER_INITIAL_UPDATE_INTERVAL", "0"), "STARTER_UPDATE_INTERVAL", "1"), script: waits,
			programs: map[string]string{"update_job_info": "[ ! -e told ] || exec sleep 1000; echo >told"},
			live: func(w *world) {
				w.runs()
				w.loggedTimes("HOOK_UPDATE_JOB_INFO", 2)
				w.killWrapper()
			},
			want: want{last: "error 1021/0", check: func(w *world) {
				log := w.log.String()
				if ended := strings.Index(log, "The UPDATE_JOB_INFO hook failed"); ended < 0 || ended > strings.Index(log, "Removing ") {
					w.Error("the hook has not ended when its sandbox goes")
				}
			}},
		},
	})
}

// TestExitHook tells the hook for the end of the job why it ends.
func TestExitHook(t *testing.T) {
	reasons := map[string]string{"hold": "hold", "hold softly": "hold", "preempt": "evict", "deactivate forcibly": "evict", "remove": "remove"}
	var lives []life
	for _, o := range orders {
		reason := reasons[o.name]
		if reason == "" {
			continue
		}
		for _, m := range []moment{{name: "running", stage: running}, {name: "start", at: "begin_execution", nth: 1}, {name: "output", at: condortest.OutputItem, nth: 1, stage: ended}} {
			l, why := orderedLife(o, m), reason
			if m.stage == ended {
				why = "exit"
			}
			l.knobs = map[string]string{"STARTER_JOB_HOOK_KEYWORD": "SITE", "SITE_HOOK_JOB_EXIT": "@/site/job_exit"}
			l.programs = map[string]string{"job_exit": note}
			check := l.want.check
			l.want.check = func(w *world) {
				if check != nil {
					check(w)
				}
				w.sameFile("noted", "job_exit "+why+"\n")
			}
			lives = append(lives, l)
		}
	}
	run(t, lives)
}

// with adds a knob.
func with(knobs map[string]string, name, value string) map[string]string {
	knobs[name] = value
	return knobs
}

// TestScripts are PreCmd and PostCmd.
func TestScripts(t *testing.T) {
	allowed := func() map[string]string {
		return map[string]string{"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "true"}
	}
	files := map[string]string{"pre": "#!/bin/sh\necho pre $1 >>made\n", "post": "#!/bin/sh\necho post >>made\n", "bad": "#!/bin/sh\necho bad >>made; sleep 1000 & exit 5\n"}
	scripts := func(pre, post string) string {
		return "PreCmd = \"" + pre + "\"\nPreArguments = \"a\"\nPostCmd = \"" + post + "\"\nTransferInput = \"pre,post,bad\"\n"
	}
	run(t, []life{
		{
			name: "both", knobs: allowed(), job: scripts("pre", "post"), files: files, script: "echo job >>made; exit 1",
			want: want{last: "job_exit 256 100", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "made": "pre a\njob\npost\n"}},
		},
		{
			name: "the second leaves a process", knobs: allowed(), job: scripts("pre", "post"), script: "exit 0",
			files: map[string]string{"pre": files["pre"], "bad": files["bad"], "post": "#!/bin/sh\nsleep 1000 &\necho $! >@/child\n"},
			plan: func(w *world) {
				w.shadow.On(condortest.Output, 1, condortest.Do(func(condortest.Heard) { w.childIsDead() }))
			},
			want: want{last: "job_exit 0 100"},
		},
		{
			name: "not allowed", job: scripts("pre", "post"), files: files, script: "echo job >>made",
			want: want{last: "job_exit 0 100", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "made": "job\n"}, log: []string{"will be ignored"}},
		},
		{
			name: "the first fails", knobs: allowed(), job: scripts("bad", "post") + "SuccessPreExitCode = 0", files: files,
			want: want{last: "error 43/0", says: "Pre script failed.", check: (*world).neverBegan},
		},
		{
			name: "the first may fail", knobs: allowed(), job: scripts("bad", "post") + "SuccessPreExitCode = 5", files: files, script: "exit 0",
			want: want{last: "job_exit 0 100"},
		},
		{name: "the second fails", knobs: allowed(), job: scripts("pre", "bad") + "SuccessPostExitCode = 0", files: files, script: "exit 0", want: want{last: "error 44/0", says: "Post script failed."}},
		{name: "the first is missing", knobs: allowed(), job: scripts("none", "post"), files: files, want: want{last: "error 6/2", check: (*world).neverBegan}},
	})
}

// TestSitePrograms are programs by which the site prepares a job's places and tidies them
// up, and the one that runs jobs.
func TestSitePrograms(t *testing.T) {
	const setup, teardown = "POD_STARTER_SETUP", "POD_STARTER_TEARDOWN"
	run(t, []life{
		{
			name: "set-up and tear-down", knobs: map[string]string{setup: "@/site/up", teardown: "@/site/down"}, script: "echo job >>@/noted",
			programs: map[string]string{"up": note + `test -d "$_CONDOR_SCRATCH_DIR" && grep -q '^ClusterId'`, "down": note},
			want:     want{last: "job_exit 0 100", check: func(w *world) { w.sameFile("noted", "up setup\njob\ndown teardown\n") }},
		},
		{
			name: "the set-up fails", knobs: map[string]string{setup: "@/site/up", teardown: "@/site/down"},
			programs: map[string]string{"up": "echo sorry; exit 4", "down": note},
			want: want{code: 1, last: "error 1007/0", says: "sorry", check: func(w *world) {
				w.neverBegan()
				w.sameFile("noted", "down teardown\n")
			}},
		},
		{
			name: "the tear-down fails", knobs: map[string]string{teardown: "@/site/down"}, script: "exit 0", programs: map[string]string{"down": "exit 4"},
			want: want{last: "job_exit 0 100", log: []string{teardown + " failed"}},
		},
		{
			name: "in the container", knobs: map[string]string{"POD_STARTER_CONTAINER_SETUP": "@/site/up", "POD_STARTER_CONTAINER_TEARDOWN": "@/site/down"}, script: "echo job >>@/noted",
			programs: map[string]string{"up": "echo up $1 >>@/noted", "down": "echo down $1 >>@/noted"},
			want:     want{last: "job_exit 0 100", check: func(w *world) { w.sameFile("noted", "up setup\njob\ndown teardown\n") }},
		},
		{
			name: "one fails in the container", knobs: map[string]string{"POD_STARTER_CONTAINER_SETUP": "@/site/up", "POD_STARTER_CONTAINER_TEARDOWN": "@/site/down"},
			programs: map[string]string{"up": "echo sorry; sleep 1000 & exit 4", "down": "exit 4"},
			want:     want{code: 1, last: "error 1007/0", says: "sorry", log: []string{"POD_STARTER_CONTAINER_TEARDOWN failed"}, check: (*world).neverBegan},
		},
		{
			name: "one takes too long in the container", knobs: map[string]string{"POD_STARTER_CONTAINER_SETUP": "@/site/up", "POD_STARTER_SCRIPT_TIMEOUT": "1"}, programs: map[string]string{"up": "sleep 1000"},
			want: want{code: 1, last: "error 1007/0", says: "longer than 1s", check: (*world).neverBegan},
		},
		{
			name: "one cannot be container-root", knobs: map[string]string{"POD_STARTER_CONTAINER_SETUP": "@/site/up", "POD_STARTER_CONTAINER_SCRIPTS_AS": "root"}, programs: map[string]string{"up": "exit 0"},
			want: want{code: 1, last: "error 1007/0", says: "interpreter", check: (*world).neverBegan},
		},
		{
			name: "a wrapper", knobs: map[string]string{"USER_JOB_WRAPPER": "@/site/wrap"}, script: "echo job $1", job: `Arguments = "one"`,
			programs: map[string]string{"wrap": `echo wrapped; exec "$@"`},
			want:     want{last: "job_exit 0 100", output: output("wrapped\njob one\n")},
		},
		{
			name: "a wrapper that cannot run the job", knobs: map[string]string{"USER_JOB_WRAPPER": "@/site/wrap"},
			programs: map[string]string{"wrap": `echo cannot >"$_CONDOR_WRAPPER_ERROR_FILE"; exit 1`},
			want:     want{last: "error", says: "The job wrapper failed to execute the job: cannot"},
		},
		{
			name: "a wrapper that is missing", knobs: map[string]string{"USER_JOB_WRAPPER": "/no/such/wrapper"},
			want: want{last: "error 1003/0", says: "USER_JOB_WRAPPER", check: (*world).neverBegan},
		},
		{
			name: "a wrapper that is no program", knobs: map[string]string{"USER_JOB_WRAPPER": "/etc/passwd"},
			want: want{last: "error 1003/0", says: "not an executable file", check: (*world).neverBegan},
		},
	})
}
