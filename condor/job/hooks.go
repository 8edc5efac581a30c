package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"podstarter/classads"
)

// Hook is a moment at which a program of the site runs
// (condor_utils/enum_utils.cpp:HookTypeTranslation). The string ends the knob's
// name and names the hook in messages.
type Hook string

// The hooks that a starter runs.
const (
	HookBeforeTransfer Hook = "PREPARE_JOB_BEFORE_TRANSFER"
	HookPrepareJob     Hook = "PREPARE_JOB"
	HookUpdateJobInfo  Hook = "UPDATE_JOB_INFO"
	HookJobExit        Hook = "JOB_EXIT"
)

var hooks = []Hook{HookPrepareJob, HookBeforeTransfer, HookUpdateJobInfo, HookJobExit}

// otherHooks are run by other daemons. A keyword that has one of them counts as
// known, too.
var otherHooks = []Hook{
	"FETCH_WORK", "REPLY_FETCH", "EVICT_CLAIM", "EVICT_JOB", "TRANSLATE_JOB", "JOB_CLEANUP", "JOB_FINALIZE", "SHADOW_PREPARE_JOB",
}

// defaultExitTimeout bounds the JOB_EXIT hook (StarterHookMgr.cpp:reconfig).
const defaultExitTimeout = 30 * time.Second

// Hooks are the programs of the site that go with one job.
type Hooks struct {
	// Keyword that selected them; empty for none.
	Keyword string
	// Why says where the keyword comes from, for the log.
	Why string

	paths    map[Hook]string
	timeouts map[Hook]time.Duration
	args     []string
}

// Path returns a hook's program; false if there is none.
func (h Hooks) Path(hook Hook) (string, bool) {
	p, ok := h.paths[hook]
	return p, ok
}

// Timeout returns a hook's time limit; 0 for none.
func (h Hooks) Timeout(hook Hook) time.Duration { return h.timeouts[hook] }

// Args are the arguments of the two prepare hooks, without the program's name.
func (h Hooks) Args() []string { return h.args }

// ReadHooks finds the hooks of a job (condor_daemon_core.V6/HookClientMgr.cpp:
// JobHookClientMgr::initialize): those of the keyword that the site enforces,
// else of the job's keyword, else of the site's default. The error names every
// program that cannot be used.
func ReadHooks(ad *classads.Ad, k Knobs) (Hooks, error) {
	h := Hooks{paths: map[Hook]string{}, timeouts: map[Hook]time.Duration{}}
	h.choose(ad, k)
	if h.Keyword == "" {
		return h, nil
	}
	var problems error
	for _, hook := range hooks {
		knob := h.knob(hook)
		if program, ok := k.Lookup(knob); ok {
			if err := CheckProgram(knob, program); err != nil {
				problems = errors.Join(problems, err)
				continue
			}
			h.paths[hook] = program
		}
		usual := time.Duration(0)
		if hook == HookJobExit {
			usual = defaultExitTimeout
		}
		seconds, err := k.Int(knob+"_TIMEOUT", int64(usual/time.Second))
		if err != nil || seconds < 0 || seconds > maxHookSeconds {
			problems = errors.Join(problems, err)
			seconds = int64(usual / time.Second)
		}
		h.timeouts[hook] = time.Duration(seconds) * time.Second
	}
	if text, ok := k.Lookup(h.knob(HookPrepareJob) + "_ARGS"); ok {
		args, err := SplitV2(text)
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("knob %s_ARGS: %w", h.knob(HookPrepareJob), err))
		}
		h.args = args
	}
	return h, problems
}

const maxHookSeconds = 1 << 31

func (h *Hooks) knob(hook Hook) string { return h.Keyword + "_HOOK_" + string(hook) }

func (h *Hooks) choose(ad *classads.Ad, k Knobs) {
	if word, ok := k.Lookup("STARTER_JOB_HOOK_KEYWORD"); ok {
		h.Keyword, h.Why = word, "STARTER_JOB_HOOK_KEYWORD"
		return
	}
	if word := ad.StringOr("HookKeyword", ""); word != "" && len(word) <= maxKeyword {
		h.Keyword, h.Why = word, "the job's HookKeyword"
		for _, list := range [][]Hook{hooks, otherHooks} {
			for _, hook := range list {
				if program, ok := k.Lookup(h.knob(hook)); ok && CheckProgram("", program) == nil {
					return
				}
			}
		}
		h.Keyword, h.Why = "", ""
	}
	if word, ok := k.Lookup("STARTER_DEFAULT_JOB_HOOK_KEYWORD"); ok {
		h.Keyword, h.Why = word, "STARTER_DEFAULT_JOB_HOOK_KEYWORD"
	}
}

// maxKeyword bounds a job's keyword, in bytes; no knob has a longer name.
const maxKeyword = 256

// CheckProgram refuses a program that somebody other than its owner could have
// put there (condor_utils/hook_utils.cpp:validateHookPath).
func CheckProgram(knob, program string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s = %s: %s", knob, program, fmt.Sprintf(format, args...))
	}
	st, err := os.Stat(program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bad("there is no such file in the pilot container")
	case err != nil:
		return bad("%v", err)
	case st.Mode().Perm()&0o002 != 0:
		return bad("everybody may write to it; chmod o-w")
	case st.Mode().Perm()&0o100 == 0 || !st.Mode().IsRegular():
		return bad("it is not an executable file")
	}
	if dir, err := os.Stat(path.Dir(program)); err == nil && dir.Mode().Perm()&0o002 != 0 {
		return bad("everybody may write to its directory; chmod o-w")
	}
	return nil
}

// HookAnswer is the result of a prepare hook.
type HookAnswer struct {
	// Update is merged into the job's ad.
	Update *classads.Ad
	// Status is 0 if the job may continue. 1 to 299 puts it on hold, any other
	// status sends it back to the queue.
	Status int
	// Message is for the job's event log: always set after a failure, and after a
	// success if the hook reported a text.
	Message string
	// Ignored says which part of the output could not be parsed; nil if all was.
	Ignored error
}

// Failed reports whether the job must not continue.
func (a HookAnswer) Failed() bool { return a.Status != 0 }

// Code is the job's code after a hook failed: a hold code, or 0 for the queue.
func (a HookAnswer) Code(hold int) int {
	if a.Status > 0 && a.Status < 300 {
		return hold
	}
	return 0
}

// ReadHookAnswer interprets the output and the exit of a prepare hook
// (StarterHookMgr.cpp:HookPrepareJobClient::hookExited).
func ReadHookAnswer(hook Hook, program string, status syscall.WaitStatus, output []byte) HookAnswer {
	var a HookAnswer
	a.Update, a.Ignored = parseHookOutput(output)
	how := ""
	switch {
	case status.Signaled():
		a.Status = -int(status.Signal())
		how = fmt.Sprintf("died with signal %d", int(status.Signal()))
	default:
		a.Status = status.ExitStatus()
		how = fmt.Sprintf("exited with status %d", a.Status)
		if said, err := a.Update.GetInt("HookStatusCode"); err == nil && said >= 0 && said <= maxHookStatus {
			a.Status = int(said)
			how = fmt.Sprintf("reported status %03d", a.Status)
		}
	}
	message := a.Update.StringOr("HookStatusMessage", "")
	if message == "" && a.Status == 0 {
		return a
	}
	if message == "" {
		message = "<no message>"
	}
	verb := "succeeded"
	if a.Status != 0 {
		verb = "failed"
	}
	a.Message = fmt.Sprintf("%s (%s) %s (%s): %s", hook, basename(program), verb, how, message)
	return a
}

const maxHookStatus = 1<<31 - 1

// parseHookOutput reads lines NAME = EXPRESSION up to the first other line
// (condor_utils/compat_classad.cpp:initAdFromString).
func parseHookOutput(output []byte) (*classads.Ad, error) {
	const most = 50_000 // attributes, and the parts of their values
	ad, left := classads.NewAd(), most
	parser := classads.Parser{Left: &left}
	for line := range strings.SplitSeq(string(output), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, err := parser.OldLine(line)
		if err != nil {
			return ad, fmt.Errorf("cannot parse the output from the line %s on: %w", excerpt(line), err)
		}
		ad.Insert(name, value)
	}
	return ad, nil
}
