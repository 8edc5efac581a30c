package payload

import (
	"context"
	"os"
	"syscall"

	"podstarter/payload/memcg"
)

// Backend is a way to run payloads. The starter picks one when it starts; from then on it
// does not know where payloads run. Package backendtest holds the tests that every backend
// must pass.
type Backend interface {
	// Check finds mistakes in the configuration before a job does. Each names the knob or
	// the line of the manifest to change. Jobs can run despite a warning, but not with an
	// error.
	Check(ctx context.Context) (warnings []string, err error)
	// Audit checks more than Check, for a person who asks. Its findings also say what is
	// correct.
	Audit(ctx context.Context) []Finding
	// Lease takes a payload slot for one activation. It fixes the payload's user, before any
	// file is made. Lease.Release gives the slot back, and so does the end of the process.
	Lease(ctx context.Context, wish Wish) (Lease, error)
	// Restock makes slots ready for the jobs to come, while a job of this process runs. It
	// returns when there is nothing left to do, or soon after ctx has ended. It is no job's
	// failure if it cannot.
	Restock(ctx context.Context)
}

// Wish is what the job of an activation is going to ask for, as far as it is known. It helps
// to choose a slot, and, except for Only and FilesOnly, binds nobody.
type Wish struct {
	// Image is the image, empty for the default.
	Image string
	// Owner is the job's owner, as in [BindRequest].
	Owner string
	// FilesOnly says that there will be no payload: the lease is for a user who has files and
	// programs of the site's, and takes no payload slot. It binds, too.
	FilesOnly bool
	// Only names the slots that the job may have, by the names of their containers; nil for any.
	// Unlike the rest it binds: a job with devices gets the slot that has them.
	Only []string
}

// Lease is a payload slot that belongs to one activation.
type Lease interface {
	// Owner is the user and group of the slot's payload.
	Owner() (uid, gid int)
	// Bind makes the slot run the image and returns when the wrapper of that container has
	// announced itself. The error is a *[Verdict] if it is known whose fault it is, or the
	// cause of ctx's end. A lease has one container at a time: a second Bind replaces it, or
	// the backend refuses. A lease for files only has none.
	Bind(ctx context.Context, req BindRequest) (Container, error)
	// Release gives the slot back and ends the wrapper's connection, which kills the rest of
	// the payload. A second call does nothing.
	Release(ctx context.Context) error
}

// Container is a payload slot that runs the activation's image. Its methods may be called
// from several goroutines.
type Container interface {
	// Client talks to the slot's wrapper.
	Client() Wrapper
	// Image is the image as it was bound, for the log; empty if there is none.
	Image() string
	// Command finds out what the image runs by itself. The error says why nobody knows; it is
	// [ErrPassing] if somebody may know soon.
	Command(ctx context.Context) (ImageCommand, error)
	// PlatformEnv names variables of the container's environment that come from neither the
	// image nor the job; see [Spec.HideEnv].
	PlatformEnv() []string
	// Ending sends one notice when something outside is going to end the container and the
	// job in it. It may be nil.
	Ending() <-chan Notice
	// Suspect says that the job was told to end, which may be because something outside is
	// about to end the container. A backend that does not hear of that by itself then finds out, and
	// Ending sends a notice if it is so. Suspect returns at once.
	Suspect()
	// Doom asks at once whether something outside is ending the container, for a job that has
	// ended already: Ending may come too late for it.
	Doom(ctx context.Context) (Notice, bool)
	// Lost sends one error, the reason, when the container ended or restarted under the job.
	// It may come some time after the wrapper's connection has ended. A released container
	// is not lost.
	Lost() <-chan error
}

// ImageCommand is what an image runs by itself: its ENTRYPOINT and its CMD, either of which may be
// empty.
type ImageCommand struct {
	Entrypoint, Cmd []string
}

// Wrapper is what the starter asks of the wrapper in a payload's container.
// *[Client] is one; see its methods for what they do and for their errors.
type Wrapper interface {
	// Hello is the wrapper's announcement.
	Hello() Hello
	// SeenPID is the wrapper's process ID in this process's PID namespace; 0 if its /proc does not show the payload.
	SeenPID() int
	// Memory is the container's memory control group; nil if it cannot be looked at.
	Memory() *memcg.Files
	// Start starts a payload.
	Start(ctx context.Context, s Spec, files ...*os.File) (Started, error)
	// Wait waits for the main process of the latest start to end.
	Wait(ctx context.Context) (Exit, error)
	// Signal sends sig to the main process, or to every process of the payload.
	Signal(ctx context.Context, sig syscall.Signal, whole bool) error
	// Usage asks for the payload's usage.
	Usage(ctx context.Context) (ContainerUsage, error)
	// Sweep kills every process of the payload and returns when none is left.
	Sweep(ctx context.Context) error
	// Exec starts a process beside the payload's main process.
	Exec(ctx context.Context, e Exec, files ExecFiles) (Execution, error)
}

// Execution is a process beside the payload's main process.
type Execution interface {
	// PID is its process ID in the wrapper's PID namespace.
	PID() int
	// Wait waits for the process to end. If the connection to the wrapper ends first, the
	// process ends with it and the error is [ErrLost].
	Wait(ctx context.Context) (syscall.WaitStatus, error)
	// Signal signals the process. If it has ended already, the error is a
	// *[RequestError] with [CodeNoPayload].
	Signal(ctx context.Context, sig syscall.Signal) error
}

var _ Wrapper = (*Client)(nil)
