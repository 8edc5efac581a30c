package lives_test

import (
	"context"
	"os"
	"testing"

	"podstarter/payload"
)

// reach is a shell command that says who has a network: that of AF_INET shows in the answer to a datagram, for which
// nobody need listen.
const reach = `bash -c 'exec 3<>/dev/udp/127.0.0.1/9' 2>/dev/null && echo "$who has one" >>@/noted || echo "$who has none" >>@/noted`

// TestNoNetwork: a job that wants no network has none, nor have its scripts and the site's in its place. The site's beside
// it have.
func TestNoNetwork(t *testing.T) {
	programs := map[string]string{"up": "who=setup; " + reach, "down": "who=teardown; " + reach, "pilot": "who=pilot; " + reach}
	knobs := map[string]string{
		"STARTER_ALLOW_JOB_PRE_AND_POST_CMD": "true", "POD_STARTER_SETUP": "@/site/pilot",
		"POD_STARTER_CONTAINER_SETUP": "@/site/up", "POD_STARTER_CONTAINER_TEARDOWN": "@/site/down",
	}
	scripts := "PreCmd = \"pre\"\nPostCmd = \"post\"\nTransferInput = \"pre,post\"\n"
	files := map[string]string{"pre": "#!/bin/sh\nwho=pre; " + reach + "\n", "post": "#!/bin/sh\nwho=post; " + reach + "\n"}
	noted := func(has string) string {
		return "pilot has one\nsetup has " + has + "\npre has " + has + "\njob has " + has + "\npost has " + has + "\nteardown has " + has + "\n"
	}
	run(t, []life{
		{
			name: "none", job: scripts + `DockerNetworkType = "none"`, files: files, knobs: knobs, programs: programs, script: "who=job; " + reach,
			want: want{last: "job_exit 0 100", log: []string{"has no network"}, check: func(w *world) { w.sameFile("noted", noted("none")) }},
		},
		{
			name: "the machine's", job: scripts + `DockerNetworkType = "host"`, files: files, knobs: knobs, programs: programs, script: "who=job; " + reach,
			want: want{last: "job_exit 0 100", check: func(w *world) { w.sameFile("noted", noted("one")) }},
		},
		{
			name: "an old wrapper", job: `DockerNetworkType = "none"`, script: "exit 0",
			backend: func(_ *world, b payload.Backend) payload.Backend { return old{b} },
			want:    want{last: "error 1021/0", says: "install both from one build"},
		},
	})
}

// old is a backend whose wrappers do not know that there can be no network.
type old struct{ payload.Backend }

type oldLease struct{ payload.Lease }

type oldContainer struct{ payload.Container }

type oldWrapper struct{ payload.Wrapper }

func (b old) Lease(ctx context.Context, wish payload.Wish) (payload.Lease, error) {
	l, err := b.Backend.Lease(ctx, wish)
	return oldLease{l}, err
}

func (l oldLease) Bind(ctx context.Context, req payload.BindRequest) (payload.Container, error) {
	c, err := l.Lease.Bind(ctx, req)
	return oldContainer{c}, err
}

func (c oldContainer) Client() payload.Wrapper { return oldWrapper{c.Container.Client()} }

func (w oldWrapper) Start(ctx context.Context, s payload.Spec, files ...*os.File) (payload.Started, error) {
	if s.NoNetwork {
		return payload.Started{}, &payload.RequestError{Op: payload.OpStart, Code: payload.CodeBadRequest, Message: `json: unknown field "no_network"`}
	}
	return w.Wrapper.Start(ctx, s, files...)
}
