package k8sexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// measure is what is known of a payload container's size: a file for each in the private
// directory, which outlives starters. Whoever has the container's lease may change it.
type measure struct {
	PodUID string `json:"pod_uid"`
	// Own are the limits with which the pod was made.
	Own podapi.Limits `json:"own"`
	// Least are its requests, below which no limit may be (core/validation.go:validateContainerResize).
	Least podapi.Limits `json:"least"`
	// Now are the limits in the pod's spec; nothing if a starter may have died while it changed them.
	Now podapi.Limits `json:"now"`
	// Sidecar says that the container is one of the pod's initContainers.
	Sidecar bool `json:"sidecar,omitempty"`
}

const maxMeasureFile = 4096

func measureFile(container string) string { return "size." + container + ".json" }

// readMeasure gives false if nothing is known, or nothing sensible.
func readMeasure(dir *os.Root, container string) (m measure, ok bool) {
	data, err := privatedir.Read(dir, measureFile(container), maxMeasureFile)
	if err != nil || json.Unmarshal(data, &m) != nil {
		return measure{}, false
	}
	return m, m.Own != podapi.Limits{}
}

// wanted are the limits for a job. A resource that the manifest does not limit stays so, and a
// container has never less than it requests.
func (m measure) wanted(job payload.Size) podapi.Limits {
	pick := func(own, least, job int64) int64 {
		if own == 0 || job <= 0 {
			return own
		}
		return max(job, least)
	}
	return podapi.Limits{MilliCPU: pick(m.Own.MilliCPU, m.Least.MilliCPU, job.MilliCPU), Memory: pick(m.Own.Memory, m.Least.Memory, job.Memory)}
}

// fit gives the container the limits that the job's slot was provisioned with, before it is
// made anew. A job whose slot has more memory than its container can get would be held for
// using it, so that is an error, a *verdict.Failure or the cause of ctx's end; all else is
// logged. It makes one API call if the limits differ, and one more for the first job of the
// container.
func (l *lease) fit(ctx context.Context, req payload.BindRequest) error {
	if !l.backend.opt.Resize || req.Size == (payload.Size{}) {
		return nil
	}
	m, ok := readMeasure(l.private, l.name)
	if !ok {
		var err error
		if m, err = l.measure(ctx); err != nil {
			return err
		}
	}
	want := m.wanted(req.Size)
	l.fitted = want
	if want == m.Now {
		return nil
	}
	err := l.resize(ctx, m, want)
	if err != nil && want.Memory > max(m.Now.Memory, m.Least.Memory) {
		return notResized(err)
	}
	if err != nil {
		l.fitted = podapi.Limits{}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.backend.log.Warn("The payload container keeps limits that are not the slot's", "container", l.name, "error", err)
	}
	return nil
}

// notResized is the failure if the API server refused: a limit or a quota of the namespace may
// stand in the way of one job, and not of the next.
func notResized(err error) error {
	f := (*verdict.Failure)(nil)
	if !errors.As(err, &f) || f.Reason == verdict.ReasonPrivateDir || f.Reason == verdict.ReasonResize {
		return err
	}
	return &verdict.Failure{Origin: verdict.FromAPI, Reason: verdict.ReasonResize, Message: f.Error()}
}

// errResize is the cause of the end of a context in which a container was to be resized.
var errResize = errors.New("the time for a change of limits is over")

// tooLong is the failure if that took too long.
func tooLong(err error, after time.Duration, why string) error {
	if !errors.Is(err, errResize) {
		return err
	}
	return &verdict.Failure{Origin: verdict.FromClock, Reason: verdict.ReasonResize, Message: fmt.Sprintf("nothing after %s%s", after, why)}
}

// measure asks for the limits with which the pod was made.
func (l *lease) measure(ctx context.Context) (measure, error) {
	limit := l.backend.timing.resize
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errResize)
	defer cancel()
	var pod *corev1.Pod
	err := l.backend.pod.Call(ctx, "get", func(ctx context.Context, api podapi.API) (err error) {
		pod, err = api.Get(ctx)
		return err
	})
	if err != nil {
		return measure{}, tooLong(err, limit, "")
	}
	c := podapi.SpecOf(pod, l.name)
	if c == nil {
		return measure{}, &verdict.Failure{Origin: verdict.FromPod, Reason: verdict.ReasonNoContainer, Message: l.name}
	}
	m := measure{PodUID: string(pod.UID), Own: podapi.LimitsOf(c.Resources.Limits), Least: podapi.LimitsOf(c.Resources.Requests), Sidecar: podapi.IsSidecar(pod, l.name)}
	m.Now = m.Own
	return m, nil
}

// resize changes the limits in the pod's spec. The kubelet sets those of a running container
// within a second or so, and makes new containers with them.
func (l *lease) resize(ctx context.Context, m measure, want podapi.Limits) error {
	limit := l.backend.timing.resize
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errResize)
	defer cancel()
	patch, err := podapi.ResizePatch(l.name, m.Sidecar, want)
	if err != nil {
		return err
	}
	// From here on the pod may be changed even if this process dies.
	m.Now = podapi.Limits{}
	if err := privatedir.WriteJSON(l.private, measureFile(l.name), m); err != nil {
		return &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}
	}
	err = l.backend.pod.Call(ctx, "resize", func(ctx context.Context, api podapi.API) error {
		_, err := api.Resize(ctx, patch, false)
		return err
	})
	if err != nil {
		return tooLong(err, limit, "")
	}
	m.Now = want
	if err := privatedir.WriteJSON(l.private, measureFile(l.name), m); err != nil {
		l.backend.log.Warn("cannot note the size of the payload container", "container", l.name, "error", err)
	}
	l.backend.log.Info("Changed the limits of the payload container", "container", l.name, "cpu", fmt.Sprintf("%dm", want.MilliCPU), "memory", want.Memory)
	return nil
}

// confirm waits until the container has the memory of its job's slot: the kubelet may refuse
// or put off a change, and then the container is still as it was. The wrapper's control group
// says so, without a call of the API server.
func (l *lease) confirm(ctx context.Context, c *container) error {
	want := l.fitted.Memory &^ (pageSize - 1)
	if want == 0 {
		return nil
	}
	limit := l.backend.timing.resize
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errResize)
	defer cancel()
	if c.client.Memory() == nil {
		_, _ = c.client.Usage(ctx) // after an answer the files are there, if there are any
	}
	poll := time.NewTicker(l.backend.timing.leasePoll)
	defer poll.Stop()
	for {
		has, known := l.backend.memoryOf(c.client)
		if !known || has < 0 || has >= want {
			return nil
		}
		select {
		case <-poll.C:
		case <-c.client.Lost():
			return nil // others say so
		case <-ctx.Done():
			return tooLong(context.Cause(ctx), limit, l.whyNot(context.WithoutCancel(ctx)))
		}
	}
}

// pageSize is the least of Linux: limits of memory are whole pages.
const pageSize = 4096

func memoryOf(client *payload.Client) (limit int64, known bool) {
	files := client.Memory()
	if files == nil {
		return 0, false
	}
	now, known := files.Figures()
	return now.Limit, known
}

// whyNot is what the kubelet says of a change that it has not made (KEP-1287).
func (l *lease) whyNot(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, l.backend.timing.check)
	defer cancel()
	api, err := l.backend.connect()
	if err != nil {
		return ""
	}
	pod, err := api.Get(ctx)
	if err != nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if (c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress) && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf(" (%s %s: %s)", c.Type, c.Reason, c.Message)
		}
	}
	return ""
}

// unfit gives the container the limits back that the pod was made with. A starter that dies
// leaves that to the next job.
func (l *lease) unfit(ctx context.Context) {
	if l.fitted == (podapi.Limits{}) {
		return
	}
	m, ok := readMeasure(l.private, l.name)
	if !ok || m.Now == m.Own {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.backend.timing.giveBack)
	defer cancel()
	if err := l.resize(ctx, m, m.Own); err != nil && !errors.Is(err, fs.ErrClosed) {
		l.backend.log.Warn("The payload container keeps the limits of its last job, until the next", "container", l.name, "error", err)
	}
}
