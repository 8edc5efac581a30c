package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// Bounds of an audit. A person waits for it, so it may ask more than [Inspector.Check],
// but not forever.
const (
	auditTime         = 30 * time.Second
	timeForAContainer = time.Second // more, for each payload container
)

// report collects the findings of an audit.
type report struct{ found []payload.Finding }

func (r *report) ok(what, format string, args ...any) {
	r.found = append(r.found, payload.Finding{Grade: payload.OK, What: what, Detail: fmt.Sprintf(format, args...)})
}

func (r *report) warn(what, fix, format string, args ...any) {
	r.found = append(r.found, payload.Finding{Grade: payload.Warn, What: what, Fix: fix, Detail: fmt.Sprintf(format, args...)})
}

func (r *report) bad(what, fix, format string, args ...any) {
	r.found = append(r.found, payload.Finding{Grade: payload.Bad, What: what, Fix: fix, Detail: fmt.Sprintf(format, args...)})
}

// section runs some of the checks of [Inspector.Check]. It reports their findings, or
// one line that all is well.
func (r *report) section(what string, check func(*findings), good string) {
	var f findings
	check(&f)
	add := func(grade payload.Grade, m *options.Mistake) {
		r.found = append(r.found, payload.Finding{Grade: grade, What: what, Detail: m.Text, Fix: m.Fix()})
	}
	if f.mistakes != nil {
		for _, err := range f.mistakes.Errors {
			if m, ok := err.(*options.Mistake); ok { //nolint:errorlint // findings.bad puts nothing else in
				add(payload.Bad, m)
			}
		}
	}
	for _, m := range f.warnings {
		add(payload.Warn, m)
	}
	if f.mistakes == nil && f.warnings == nil {
		r.ok(what, "%s", good)
	}
}

// Audit checks everything that [Inspector.Check] checks, and whatever could make this
// pod less safe than it should be: rights that the token has and does not need, the
// isolation of pilot, payload and cluster from each other, and whether each wrapper
// answers. It changes nothing: patches are dry runs. It makes some 50 API calls, and
// briefly leases each payload container that is free. If the time is over before all
// containers were looked at, it says so.
func (b *Inspector) Audit(ctx context.Context) []payload.Finding {
	start := time.Now()
	limit := auditTime + time.Duration(len(b.Options.Containers))*timeForAContainer
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var r report
	r.section("directories", b.checkDirectories,
		fmt.Sprintf("%s and %s are closed to all but root, and writable", b.Options.ControlDir, b.Options.PrivateDir))
	b.auditExecute(&r)
	b.auditToken(&r, time.Now())
	var pod *corev1.Pod
	began := time.Now()
	f := new(findings)
	pod = b.checkAPI(ctx, f)
	r.section("API server", func(into *findings) { *into = *f },
		fmt.Sprintf("%s gives pod %s/%s in %s", b.Options.Server, b.Options.PodNamespace, b.Options.PodName, time.Since(began).Round(time.Millisecond)))
	if pod == nil {
		return r.found
	}
	r.section("rights that are needed", func(f *findings) { b.checkPermissions(ctx, pod, f) }, "get, watch and patch of this pod")
	b.auditRights(ctx, pod, &r)
	b.auditImages(ctx, pod, &r)
	b.auditPod(pod, &r)
	b.auditRegistries(ctx, pod, &r)
	r.section("sizes", func(f *findings) { b.checkSizes(pod, f) }, b.sizes(pod))
	r.section("shared memory", func(f *findings) { b.checkSharedMemory(pod, f) }, "each payload container has its own /dev/shm")
	for i, name := range b.Options.Containers {
		if ctx.Err() != nil {
			r.warn("time", "condor_pod_starter -check, when node and API server have less to do", "nobody looked at the wrappers in %s: the checks before took %s",
				plural(b.Options.Containers[i:]), time.Since(start).Round(time.Second))
			break
		}
		if c := podapi.SpecOf(pod, name); c != nil {
			b.auditContainer(pod, c, &r)
		}
		b.auditWrapper(ctx, pod, name, &r)
	}
	b.auditPullers(ctx, pod, &r)
	auditCgroups("/sys/fs/cgroup", &r)
	b.nameLists(pod, r.found)
	return r.found
}

// line is a line of the manifest of a container.
func line(container, rest string) string { return inContainers(container) + "." + rest }

func inContainers(name string) string { return "spec.containers[name=" + name + "]" }

// nameLists corrects the lines of sidecars: their list is another.
func (b *Inspector) nameLists(pod *corev1.Pod, found []payload.Finding) {
	for _, name := range b.Options.Containers {
		if podapi.IsSidecar(pod, name) {
			for i := range found {
				found[i].Fix = strings.ReplaceAll(found[i].Fix, inContainers(name), "spec.initContainers[name="+name+"]")
			}
		}
	}
}

// plural joins a list for a sentence.
func plural(items []string) string { return strings.Join(items, ", ") }
