package job

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

// programFile makes an executable file.
func programFile(t *testing.T, name string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return path
}

func TestReadHooks(t *testing.T) {
	good, open := programFile(t, "hook", 0o755), programFile(t, "open", 0o757)
	plain := programFile(t, "plain", 0o644)
	for name, tt := range map[string]struct {
		knobs   map[string]string
		ad      string
		keyword string
		path    string // of PREPARE_JOB
		args    []string
		exit    time.Duration // limit of JOB_EXIT
		words   string        // of the error
	}{
		"none": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good}},
		"the job's": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good}, ad: `HookKeyword = "a"`,
			keyword: "a", path: good, exit: 30 * time.Second},
		"the site's before the job's": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good, "B_HOOK_JOB_EXIT": good, "STARTER_JOB_HOOK_KEYWORD": "B"}, ad: `HookKeyword = "A"`,
			keyword: "B", exit: 30 * time.Second},
		"the job's before the default": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good, "STARTER_DEFAULT_JOB_HOOK_KEYWORD": "B"}, ad: `HookKeyword = "A"`,
			keyword: "A", path: good, exit: 30 * time.Second},
		"default": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good, "STARTER_DEFAULT_JOB_HOOK_KEYWORD": "A"},
			keyword: "A", path: good, exit: 30 * time.Second},
		"arguments and limits": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good, "A_HOOK_PREPARE_JOB_ARGS": "one 'two words'", "A_HOOK_JOB_EXIT_TIMEOUT": "7"}, ad: `HookKeyword = "A"`,
			keyword: "A", path: good, args: []string{"one", "two words"}, exit: 7 * time.Second},
		"a limit that is none": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good, "A_HOOK_JOB_EXIT_TIMEOUT": "-7"}, ad: `HookKeyword = "A"`,
			keyword: "A", path: good, exit: 30 * time.Second},
		"known by another daemon's hook": {knobs: map[string]string{"A_HOOK_EVICT_CLAIM": good}, ad: `HookKeyword = "A"`,
			keyword: "A", exit: 30 * time.Second},
		"everybody may write": {knobs: map[string]string{"A_HOOK_PREPARE_JOB": open, "STARTER_JOB_HOOK_KEYWORD": "A"}, keyword: "A", words: "chmod o-w"},
		"not executable":      {knobs: map[string]string{"A_HOOK_PREPARE_JOB": plain, "STARTER_JOB_HOOK_KEYWORD": "A"}, keyword: "A", words: "not an executable"},
		"not there":           {knobs: map[string]string{"A_HOOK_PREPARE_JOB": "/no/such", "STARTER_JOB_HOOK_KEYWORD": "A"}, keyword: "A", words: "no such file"},
		"bad arguments":       {knobs: map[string]string{"A_HOOK_PREPARE_JOB": good, "A_HOOK_PREPARE_JOB_ARGS": "'", "STARTER_JOB_HOOK_KEYWORD": "A"}, keyword: "A", words: "A_HOOK_PREPARE_JOB_ARGS"},
	} {
		t.Run(name, func(t *testing.T) {
			ad, err := classads.ParseOld(tt.ad)
			if err != nil {
				t.Fatal(err)
			}
			h, err := ReadHooks(ad, config.FromMap(tt.knobs))
			if h.Keyword != tt.keyword {
				t.Errorf("keyword %q, want %q", h.Keyword, tt.keyword)
			}
			if tt.words != "" {
				if err == nil || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("%v, want the words %q", err, tt.words)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if path, _ := h.Path(HookPrepareJob); path != tt.path {
				t.Errorf("PREPARE_JOB is %q, want %q", path, tt.path)
			}
			if diff := cmp.Diff(tt.args, h.Args()); diff != "" {
				t.Error(diff)
			}
			if h.Timeout(HookJobExit) != tt.exit {
				t.Errorf("JOB_EXIT may take %s, want %s", h.Timeout(HookJobExit), tt.exit)
			}
		})
	}
}

func TestReadHookAnswer(t *testing.T) {
	exited := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	for name, tt := range map[string]struct {
		status  syscall.WaitStatus
		output  string
		code    int
		subcode int
		message string
		update  string
		ignored bool
	}{
		"nothing said":   {},
		"an update":      {output: "A = 1\n\n  B = \"two\"\n", update: "A = 1\nB = \"two\"\n"},
		"a warning":      {output: `HookStatusMessage = "so so"`, message: "PREPARE_JOB (hook) succeeded (exited with status 0): so so", update: "HookStatusMessage = \"so so\"\n"},
		"failed":         {status: exited(3), code: 19, subcode: 3, message: "PREPARE_JOB (hook) failed (exited with status 3): <no message>"},
		"said so":        {output: "HookStatusCode = 7", code: 19, subcode: 7, message: "PREPARE_JOB (hook) failed (reported status 007): <no message>", update: "HookStatusCode = 7\n"},
		"takes it back":  {status: exited(3), output: "HookStatusCode = 0", update: "HookStatusCode = 0\n"},
		"negative":       {status: exited(3), output: "HookStatusCode = -1", code: 19, subcode: 3, message: "PREPARE_JOB (hook) failed (exited with status 3): <no message>", update: "HookStatusCode = -1\n"},
		"try elsewhere":  {output: "HookStatusCode = 300", code: 0, subcode: 300, message: "PREPARE_JOB (hook) failed (reported status 300): <no message>", update: "HookStatusCode = 300\n"},
		"last that hold": {output: "HookStatusCode = 299", code: 19, subcode: 299, message: "PREPARE_JOB (hook) failed (reported status 299): <no message>", update: "HookStatusCode = 299\n"},
		"died":           {status: 9, output: "HookStatusCode = 0", code: 0, subcode: -9, message: "PREPARE_JOB (hook) failed (died with signal 9): <no message>", update: "HookStatusCode = 0\n"},
		"chatter":        {output: "A = 1\nhello world\nB = 2", update: "A = 1\n", ignored: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := ReadHookAnswer(HookPrepareJob, "/x/hook", tt.status, []byte(tt.output))
			if a.Failed() != (tt.subcode != 0) || a.Code(19) != tt.code || a.Status != tt.subcode || a.Message != tt.message {
				t.Errorf("%d/%d %q, want %d/%d %q", a.Code(19), a.Status, a.Message, tt.code, tt.subcode, tt.message)
			}
			if got := a.Update.FormatOld(); got != tt.update {
				t.Errorf("update %q, want %q", got, tt.update)
			}
			if (a.Ignored != nil) != tt.ignored {
				t.Errorf("ignored: %v", a.Ignored)
			}
		})
	}
}

// FuzzReadHookAnswer: any output of a hook gives an answer, and every failure has
// a message.
func FuzzReadHookAnswer(f *testing.F) {
	f.Add(0, []byte("HookStatusCode = 5\nA = [ b = 1 ]\n"))
	f.Add(9, []byte("HookStatusMessage = \"x\"\nHookStatusCode = 1/0"))
	f.Fuzz(func(t *testing.T, status int, output []byte) {
		a := ReadHookAnswer(HookBeforeTransfer, "hook", syscall.WaitStatus(status&0xffff), output)
		if a.Update == nil || a.Failed() && a.Message == "" || !a.Failed() && a.Code(19) != 0 {
			t.Errorf("%+v", a)
		}
	})
}
