package failure

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-multierror"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/sandbox/filetransfer"
)

func TestWhatFailuresMeanToTheJob(t *testing.T) {
	cmd := job.Command{Path: "/bin/nosuch", Args: []string{"a"}}
	tests := map[string]struct {
		err           error
		code, subcode int
		text          string
	}{
		"nobody classified it": {errors.New("what?"), shadow.VacateStarterError, 0, "what?"},
		"the user's image":     {OfBinding(&payload.Verdict{Blame: payload.User, Message: "no such image"}), shadow.HoldInvalidDockerImage, 0, "no such image"},
		"a kind of mistake":    {OfBinding(&payload.Verdict{Blame: payload.User, Subcode: 4, Message: "m"}), shadow.HoldInvalidDockerImage, 4, "m"},
		"the site's registry":  {OfBinding(&payload.Verdict{Blame: payload.Site, Message: "registry down"}), shadow.VacateContainerError, 0, "registry down"},
		"the pod itself":       {OfBinding(&payload.Verdict{Blame: payload.Pilot, Message: "no right to patch"}), shadow.VacateContainerError, 0, "no right to patch"},
		"not a verdict at all": {OfBinding(errors.New("odd")), shadow.VacateContainerError, 0, "odd"},
		"no such program": {
			OfStart(&payload.StartError{Stage: payload.StageExec, Path: "/bin/nosuch", Errno: syscall.ENOENT}, cmd),
			shadow.HoldFailedToCreateProcess, 2, "Failed to execute '/bin/nosuch' with arguments a: (errno=2: 'No such file or directory')",
		},
		"no such interpreter": {
			OfStart(&payload.StartError{Stage: payload.StageExec, Path: "/s/job", Errno: syscall.ENOENT, Interpreter: "/no/sh", Detail: "it is gone"}, cmd),
			shadow.HoldFailedToCreateProcess, 2, "Failed to execute '/bin/nosuch' with arguments a: invalid interpreter (/no/sh) specified on first line of script (errno=2: 'No such file or directory'): it is gone",
		},
		"no working directory": {
			OfStart(&payload.StartError{Stage: payload.StageChdir, Path: "/home/a", Errno: syscall.ENOENT}, cmd),
			shadow.HoldFailedToCreateProcess, 2, `Failed to execute '/bin/nosuch' with arguments a: Cannot access initial working directory "/home/a" (errno=2: 'No such file or directory')`,
		},
		"a link in the place of a directory": {
			OfStart(&payload.StartError{Stage: payload.StageScratch, Path: "/s/tmp", Errno: syscall.ELOOP, Detail: "too many links"}, cmd),
			shadow.HoldFailedToCreateProcess, 40, "/s/tmp cannot take the place of a directory of this machine: too many links",
		},
		"a mount that fails": {
			OfStart(&payload.StartError{Stage: payload.StageMount, Path: "/tmp", Errno: syscall.EPERM, Detail: "not permitted"}, cmd),
			shadow.VacateScratchDirError, 0, "in place of /tmp (MOUNT_UNDER_SCRATCH, MOUNT_PRIVATE_DEV_SHM): not permitted",
		},
		"no standard input": {
			OfStart(&payload.StartError{Stage: payload.StageStdin, Path: "/x/in", Errno: syscall.EACCES}, cmd),
			shadow.HoldUnableToOpenInput, 13, "Failed to open '/x/in' as standard input: Permission denied (errno 13)",
		},
		"no standard error": {
			OfStart(&payload.StartError{Stage: payload.StageStderr, Path: "/x/err", Errno: syscall.EISDIR}, cmd),
			shadow.HoldUnableToOpenOutput, 21, "Failed to open '/x/err' as standard error: Is a directory (errno 21)",
		},
		"a wrapper that is gone": {OfStart(payload.ErrLost, cmd), shadow.VacateContainerError, 0, "wrapper lost"},
		"a file that is missing": {
			OfTransfer(fmt.Errorf("x: %w", &filetransfer.Error{Code: 13, Subcode: 2, Text: "no file"}), ""),
			13, 2, "no file",
		},
		"a connection that broke": {
			OfTransfer(&filetransfer.Error{Code: 12, Subcode: 104, TryAgain: true, Text: "reset"}, "Failed to transfer files: "),
			12, shadow.SubcodeRequeue, "Failed to transfer files: reset",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := Of(tt.err)
			if f.Code != tt.code || f.Subcode != tt.subcode || !strings.Contains(f.Error(), tt.text) {
				t.Errorf("code %d subcode %d %q, want %d, %d and the words %q", f.Code, f.Subcode, f.Error(), tt.code, tt.subcode, tt.text)
			}
		})
	}
}

func TestBlame(t *testing.T) {
	verdict := func(blame payload.Blame) error {
		return New(1, 0, fmt.Errorf("bind: %w", &payload.Verdict{Blame: blame, Message: "m"}))
	}
	refused := func(code string) error {
		return &payload.RequestError{Op: payload.OpStart, Code: code, Message: "m"}
	}
	tests := map[string]struct {
		err  error
		ran  bool
		want payload.Blame
	}{
		"what an earlier job left":       {err: OfStart(refused(payload.CodeNotEmpty), job.Command{}), want: payload.Site},
		"so before a script":             {err: New(shadow.VacateContainerError, 0, fmt.Errorf("start a script: %w", refused(payload.CodeNotEmpty))), want: payload.Site},
		"what this job left":             {err: New(shadow.VacateContainerError, 0, refused(payload.CodeNotEmpty)), ran: true, want: payload.Unknown},
		"refused for another reason":     {err: OfStart(refused(payload.CodeBadRequest), job.Command{}), want: payload.Unknown},
		"user":                           {err: verdict(payload.User), want: payload.Unknown},
		"site":                           {err: verdict(payload.Site), want: payload.Site},
		"unknown is the site's":          {err: verdict(payload.Unknown), want: payload.Site},
		"pilot":                          {err: verdict(payload.Pilot), want: payload.Pilot},
		"the job may have done it":       {err: verdict(payload.Site), ran: true, want: payload.Unknown},
		"the pod ends under a job":       {err: verdict(payload.Pilot), ran: true, want: payload.Pilot},
		"no sandbox":                     {err: New(shadow.VacateScratchDirError, 0, errors.New("disk full")), want: payload.Site},
		"a hold for another reason":      {err: New(13, 2, errors.New("no input file")), want: payload.Unknown},
		"an error that nobody expected":  {err: errors.New("x"), want: payload.Unknown},
		"verdict for the user, then ran": {err: verdict(payload.User), ran: true, want: payload.Unknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := Blame(tt.err, tt.ran); got != tt.want {
				t.Errorf("blame %v, want %v", got, tt.want)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	var several *multierror.Error
	several = multierror.Append(several, errors.New("KNOB_A: is empty"), errors.New("KNOB_B: is no number"))
	tests := map[string]struct {
		err  error
		want string
	}{
		"one":     {errors.New("KNOB: is odd"), "KNOB: is odd"},
		"several": {several, "KNOB_A: is empty; KNOB_B: is no number"},
		"joined":  {errors.Join(errors.New("a"), errors.New("b\r\n")), "a; b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := OneLine(tt.err); got != tt.want {
				t.Errorf("oneLine = %q, want %q", got, tt.want)
			}
		})
	}
}
