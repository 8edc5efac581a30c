package payload

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrLost is returned by calls of a [Client] whose connection has ended:
	// the wrapper left, died, or its container was restarted.
	ErrLost = errors.New("connection to the wrapper lost")
	// ErrBusy says that the wrapper serves another connection.
	ErrBusy = errors.New("the wrapper serves another connection")
	// ErrNoRecord is returned by [ReadExit] when there is no such exit record.
	ErrNoRecord = errors.New("no exit record")
)

// Stages of a start, in the order in which they happen; see [StartError].
const (
	StageSpec     = "spec"     // the request itself is invalid
	StageLink     = "link"     // make the link in the container's file system
	StageScratch  = "scratch"  // find the payload's directory that is to be mounted
	StageMount    = "mount"    // mount it in place of the machine's
	StageFork     = "fork"     // make the new process
	StageIdentity = "identity" // groups, gid, uid, capabilities, no_new_privs
	StageChdir    = "chdir"
	StageStdin    = "stdin"
	StageStdout   = "stdout"
	StageStderr   = "stderr"
	StageNice     = "nice"
	StageTerminal = "terminal" // of a process beside the payload
	StageNetwork  = "network"  // take the network away
	StageLimit    = "limit"
	StageExec     = "exec"
)

// StartError says at which stage the start of a payload failed. No process of
// the payload is left behind.
type StartError struct {
	// Stage is one of the Stage constants.
	Stage string
	// Path is the file or directory concerned, if any.
	Path string
	// Errno is the system's answer, 0 if there was none.
	Errno syscall.Errno
	// Interpreter is set if Path is a script whose first line names a program that does not
	// exist: that program as the stock starter reads it, which is without what follows a
	// white space such as the carriage return of DOS line ends. It is printable.
	Interpreter string
	// Detail explains the cause to the user, or is empty.
	Detail string
}

// Error implements error.
func (e *StartError) Error() string {
	text := "cannot start the job: " + e.Stage
	if e.Path != "" {
		text += fmt.Sprintf(" %q", e.Path)
	}
	if e.Errno != 0 {
		text += ": " + e.Errno.Error()
	}
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	return text
}

// Unwrap gives the errno, so that errors.Is(err, syscall.ENOENT) works.
func (e *StartError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// RequestError is the wrapper's refusal of a request other than a failed start.
type RequestError struct {
	// Op is the request: "start", "signal", "usage", "sweep", "leave".
	Op string `json:"-"`
	// Code is one of the Code constants.
	Code string `json:"code"`
	// Message says what is wrong.
	Message string `json:"message"`
}

// Codes of a [RequestError].
const (
	CodeBadRequest = "bad-request" // not understood, or a value out of bounds
	CodeNoPayload  = "no-payload"  // nothing runs that could be signalled
	CodeStarted    = "started"     // this connection has a payload already
	CodeNotEmpty   = "not-empty"   // processes of the payload would not die
	CodeFailed     = "failed"      // the system refused
)

// Error implements error.
func (e *RequestError) Error() string {
	return fmt.Sprintf("wrapper refused %s: %s (%s)", e.Op, e.Message, e.Code)
}

// ErrPassing is a failure by circumstances that pass, such as a network that is down.
var ErrPassing = errors.New("another try may succeed")
