package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-multierror"
	corev1 "k8s.io/api/core/v1"
)

// findings are what a check has come across.
type findings struct {
	mistakes *multierror.Error
	warnings []*Mistake
}

func (f *findings) bad(knob, format string, args ...any) where {
	m := mistake(knob, format, args...)
	f.mistakes = multierror.Append(f.mistakes, m)
	return where{m}
}

func (f *findings) warn(knob, format string, args ...any) where {
	m := mistake(knob, format, args...)
	f.warnings = append(f.warnings, m)
	return where{m}
}

// where takes the place of a mistake, if it is known.
type where struct{ mistake *Mistake }

// at notes the line of the pod's manifest to change, which begins with
// spec.containers[name=...] if container is not empty.
func (w where) at(container, line string) {
	w.mistake.Line = "spec." + line
	if container != "" {
		w.mistake.Line = "spec.containers[name=" + container + "]." + line
	}
}

// Check looks for everything that would keep jobs from running, without changing
// anything. The error is a *multierror.Error of *[Mistake], each of one line;
// warnings are lines about what works but should be otherwise. It takes a few
// seconds at most, and some 10 ms when all is well.
func (b *Backend) Check(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timing.check)
	defer cancel()
	var f findings
	b.checkDirectories(&f)
	if pod := b.checkAPI(ctx, &f); pod != nil {
		b.checkPod(pod, &f)
		b.checkPermissions(ctx, pod, &f)
	}
	if f.mistakes != nil {
		f.mistakes.ErrorFormat = oneLineEach
	}
	for _, w := range f.warnings {
		warnings = append(warnings, w.Error())
	}
	return warnings, f.mistakes.ErrorOrNil()
}

// checkDirectories looks at the pilot's side of the volumes.
func (b *Backend) checkDirectories(f *findings) {
	for _, d := range []struct{ knob, path string }{{knobControlDir, b.opt.ControlDir}, {knobPrivateDir, b.opt.PrivateDir}} {
		info, err := os.Lstat(d.path)
		if err == nil && d.knob == knobControlDir && !b.self.isRoot() {
			b.checkGroupDirectory(d.path, info, f)
			continue
		}
		if err == nil {
			err = ownedByUs(d.path, info, 0o077)
		}
		if err != nil {
			f.bad(d.knob, "must be a directory that root alone can enter: %v", err)
		}
	}
	private, err := openPrivate(b.opt.PrivateDir)
	if err != nil {
		return // said above
	}
	defer private.Close()
	const probe = "check"
	if err := private.WriteFile(probe, nil, 0o600); err != nil {
		f.bad(knobPrivateDir, "cannot be written to: %v", err)
		return
	}
	_ = private.Remove(probe)
}

// checkAPI reads the pod; nil if that did not work.
func (b *Backend) checkAPI(ctx context.Context, f *findings) *corev1.Pod {
	api, err := b.connect()
	if err != nil {
		f.bad(knobKubernetesDir, "%v", err)
		return nil
	}
	pod, err := api.Get(ctx)
	if err == nil {
		return pod
	}
	why := apiFailure(err)
	name := b.opt.PodNamespace + "/" + b.opt.PodName
	switch why.code {
	case http.StatusNotFound:
		f.bad(knobPodName, "there is no pod %s", name)
	case http.StatusForbidden:
		f.bad(knobPodName, "the service account may not get pod %s; allow get, watch and patch on pods with resourceNames [%s] in a Role of the namespace: %s",
			name, b.opt.PodName, why.message)
	case http.StatusUnauthorized:
		f.bad(knobKubernetesDir, "the API server does not accept the token in %s", filepath.Join(b.opt.KubernetesDir, "token"))
	default:
		f.bad(knobBackend, "is pod, but the API server at %s does not answer: %s", b.opt.Server, why.message)
	}
	return nil
}

// checkPermissions tries the two verbs that have not been used yet. The patch is
// a real one for admission policies, too, but a dry run.
func (b *Backend) checkPermissions(ctx context.Context, pod *corev1.Pod, f *findings) {
	api, err := b.connect()
	if err != nil {
		return
	}
	for _, name := range b.opt.Containers {
		spec := specOf(pod, name)
		if spec == nil {
			continue // said already
		}
		patch, err := bindingPatch(name, spec.Image, newNonce(), spec.Image)
		if err == nil {
			_, err = api.Patch(ctx, patch, true)
		}
		b.checkAnswer("patch", err, f)
		break // permissions are on the pod, not on its containers
	}
	w, err := api.Watch(ctx, pod.ResourceVersion)
	if err == nil {
		w.Stop()
	}
	b.checkAnswer("watch", err, f)
}

func (b *Backend) checkAnswer(verb string, err error, f *findings) {
	if err == nil {
		return
	}
	why := apiFailure(err)
	name := b.opt.PodNamespace + "/" + b.opt.PodName
	if why.code == http.StatusForbidden && !isAdmission(worded(err)) {
		f.bad(knobPodName, "the service account may not %s pod %s; allow get, watch and patch on pods with resourceNames [%s] in a Role of the namespace: %s",
			verb, name, b.opt.PodName, why.message)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		f.warn(knobBackend, "the API server took longer than %s to answer", b.timing.check)
		return
	}
	f.bad(knobPodName, "cannot %s pod %s: %s", verb, name, why.message)
}

// quoted lists names for a message.
func quoted(names []string) string { return fmt.Sprintf("%q", names) }
