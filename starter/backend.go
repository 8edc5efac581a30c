package main

import (
	"context"
	"log/slog"

	"podstarter/condor/config"
	"podstarter/k8sexec"
	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/starter/settings"
)

// Backend is a way to run payloads. The starter picks one when it starts and
// then knows nothing of where payloads live.
type Backend interface {
	// Check finds mistakes in the configuration before a job does. Each names
	// the knob or the line of the manifest to change. With a warning jobs can
	// be run, with an error they cannot.
	Check(ctx context.Context) (warnings []string, err error)
	// Audit looks at more than Check, for a person who asks, and says what is
	// well, too.
	Audit(ctx context.Context) []payload.Finding
	// Lease takes a payload slot for this activation alone, so that its user
	// is known before any file is made. It is given back by Lease.Release,
	// or by the end of the process.
	Lease(ctx context.Context) (Lease, error)
}

// Lease is a payload slot that belongs to this activation.
type Lease interface {
	// Owner is the user and group of the slot's payload.
	Owner() (uid, gid int)
	// Bind makes the slot run the image and answers when a wrapper of that
	// very container has announced itself. The errors are *payload.Verdict
	// where it is known whose fault they are.
	Bind(ctx context.Context, req payload.BindRequest) (Container, error)
	// Release gives the slot back. What is left of the payload has been
	// swept away before.
	Release(ctx context.Context) error
}

// Container is a payload slot that runs the image that this activation asked
// for.
type Container interface {
	// Client talks to the slot's wrapper.
	Client() *payload.Client
	// Image is the image as it was bound, for the log.
	Image() string
	// PlatformEnv names variables of the container's environment that are
	// neither the image's nor the job's; see payload.Spec.HideEnv.
	PlatformEnv() []string
	// Ending tells that the container is going to be ended from outside, with
	// the job in it.
	Ending() <-chan payload.Notice
	// Lost tells that the container ended or was made anew under the job,
	// and why.
	Lost() <-chan error
}

// localUsers is how many payload users, from POD_STARTER_PAYLOAD_UID on, are
// set aside for jobs beside the starter; no machine has as many slots.
const localUsers = 1024

// newBackend makes the backend that the settings name.
func newBackend(ctx context.Context, set settings.Settings, cfg *config.Config, log *slog.Logger) (Backend, error) {
	if set.Backend == settings.BackendLocal {
		b, err := localexec.New(localexec.Options{Dir: set.StateDir(), UID: set.PayloadUID, Users: localUsers, Log: log})
		if err != nil {
			return nil, err
		}
		noCheck := func(context.Context) ([]string, error) { return nil, nil }
		return adapt[*localexec.Lease, *localexec.Container]{b, noCheck, auditLocal}, nil
	}
	b, err := newPodBackend(ctx, set, cfg, log)
	if err != nil {
		return nil, err
	}
	return adapt[*k8sexec.Lease, *k8sexec.Container]{b, b.Check, b.Audit}, nil
}

// newPodBackend is the backend of a pod, which can do more than run payloads.
func newPodBackend(ctx context.Context, set settings.Settings, cfg *config.Config, log *slog.Logger) (*k8sexec.Backend, error) {
	return k8sexec.New(ctx, k8sexec.Options{
		PodName: set.PodName, PodNamespace: set.PodNamespace,
		Containers: set.Containers, BaseUID: set.PayloadUID,
		ControlDir: set.ControlDir, PrivateDir: set.PrivateDir, Execute: set.Condor.Execute, Scratch: set.ScratchDir,
		BindTimeout:   set.BindTimeout,
		ThrowawayTags: set.ThrowawayTags, DigestLifetime: set.DigestLifetime, Reset: set.Reset,
		KubernetesDir: set.KubernetesDir, Log: log,
	})
}

// adapt gives a backend with types of its own the shape of the interfaces here:
// in Go a method that returns a concrete type does not satisfy an interface
// whose method returns an interface.
type adapt[L leaseOf[C], C Container] struct {
	backend interface {
		Lease(ctx context.Context) (L, error)
	}
	check func(ctx context.Context) ([]string, error)
	audit func(ctx context.Context) []payload.Finding
}

// leaseOf is a Lease whose containers are of type C.
type leaseOf[C Container] interface {
	Owner() (uid, gid int)
	Bind(ctx context.Context, req payload.BindRequest) (C, error)
	Release(ctx context.Context) error
}

func (a adapt[L, C]) Check(ctx context.Context) ([]string, error) { return a.check(ctx) }

func (a adapt[L, C]) Audit(ctx context.Context) []payload.Finding { return a.audit(ctx) }

// auditLocal has nothing to look at: jobs run beside the starter.
func auditLocal(context.Context) []payload.Finding {
	return []payload.Finding{{Grade: payload.OK, What: "payloads", Detail: "run beside the starter, without a choice of image"}}
}

func (a adapt[L, C]) Lease(ctx context.Context) (Lease, error) {
	l, err := a.backend.Lease(ctx)
	if err != nil {
		return nil, err
	}
	return adaptLease[C]{l}, nil
}

type adaptLease[C Container] struct{ leaseOf[C] }

func (l adaptLease[C]) Bind(ctx context.Context, req payload.BindRequest) (Container, error) {
	c, err := l.leaseOf.Bind(ctx, req)
	if err != nil {
		return nil, err
	}
	return c, nil
}
