// Package plugin handles HTCondor's file transfer plugins: programs that move files
// between a directory and places that URLs name. It finds them, asks them which
// methods they serve, runs one for many files (or, by the older protocol, for one)
// and interprets their reports.
//
// A plugin's output is treated as hostile: a job may bring its own plugin. The
// output is bounded, and the shadow gets only known names and types of it.
//
// The package starts no process and opens no file of a job by itself: [Exec] and
// [Files] do, with the rights of the job's user.
package plugin

import (
	"context"
	"io/fs"
	"syscall"
	"time"
)

// Class is the purpose of a transfer; the numbers are HTCondor's
// (src/condor_utils/file_transfer.h:TransferClass).
type Class int

const (
	Input      Class = 1
	Output     Class = 2
	Checkpoint Class = 3
)

// upload reports whether files leave the sandbox.
func (c Class) upload() bool { return c != Input }

// File is one file to move.
type File struct {
	URL  string
	Path string // absolute, as the plugin sees it
}

// Status is how a run of a plugin ended (TransferPluginResult).
type Status int

const (
	Success     Status = 0
	Failed      Status = 1 // exit status not 0, a signal, or no report
	BadCreds    Status = 2 // never produced, as in stock
	TimedOut    Status = 3
	NotExecuted Status = 4
)

// Program is a process that [Exec] runs.
type Program struct {
	Path     string
	Args     []string // after the program's own name
	Env      []string
	Dir      string
	Limit    time.Duration
	Combined bool // standard error joins standard output; otherwise it is dropped
	FromJob  bool // the program is the job's, not the site's
}

// Outcome is how a process ended.
type Outcome struct {
	Status syscall.WaitStatus
	Late   bool   // it was killed when Limit was over
	Output []byte // the beginning of what it wrote
	Tail   []byte // the end of it, if Output is not all
	Took   time.Duration
}

// Exec runs a program to its end, without any of the starter's own rights, and
// leaves no process of it alive. If ctx ends first the error is its cause. Any
// other error means that the program was not executed, and wraps a syscall.Errno if
// there is one.
type Exec func(ctx context.Context, p Program) (Outcome, error)

// Files opens files of the job's sandbox with the rights of the job's user, without
// following a link out of it. Names are relative to the sandbox.
type Files interface {
	WriteFile(name string, data []byte, mode fs.FileMode) error
	ReadFile(name string, limit int64) ([]byte, error)
	RemoveFile(name string) error
}
