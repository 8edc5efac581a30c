package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-multierror"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/k8sexec/verdict"
)

// findings are the mistakes and warnings of a check.
type findings struct {
	mistakes *multierror.Error
	warnings []*options.Mistake
}

func (f *findings) bad(knob, format string, args ...any) where {
	m := options.NewMistake(knob, format, args...)
	f.mistakes = multierror.Append(f.mistakes, m)
	return where{m}
}

func (f *findings) warn(knob, format string, args ...any) where {
	m := options.NewMistake(knob, format, args...)
	f.warnings = append(f.warnings, m)
	return where{m}
}

// where lets a caller add the place of a mistake, if it is known.
type where struct{ mistake *options.Mistake }

// at notes the line of the pod's manifest to change, which begins with
// spec.containers[name=...] if container is not empty.
func (w where) at(container, line string) {
	w.mistake.Line = "spec." + line
	if container != "" {
		w.mistake.Line = inContainers(container) + "." + line
	}
}

// knobTo notes what to change if that is no line of the spec.
func (w where) knobTo(line string) { w.mistake.Line = line }

// Check looks for everything that would keep jobs from running, and changes nothing.
// The error is a *multierror.Error of *[options.Mistake], each of one line; warnings
// are lines about settings that work but should be changed. It takes some 10 ms when
// all is well, and at most a few seconds.
func (b *Inspector) Check(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.Time)
	defer cancel()
	var f findings
	b.checkDirectories(&f)
	if pod := b.checkAPI(ctx, &f); pod != nil {
		b.checkPod(pod, &f)
		b.checkSizes(pod, &f)
		b.checkPermissions(ctx, pod, &f)
	}
	if f.mistakes != nil {
		f.mistakes.ErrorFormat = options.OneLineEach
	}
	for _, w := range f.warnings {
		warnings = append(warnings, w.Error())
	}
	return warnings, f.mistakes.ErrorOrNil()
}

// checkDirectories checks the directories as the pilot sees them.
func (b *Inspector) checkDirectories(f *findings) {
	for _, d := range []struct{ knob, path string }{{options.KnobControlDir, b.Options.ControlDir}, {options.KnobPrivateDir, b.Options.PrivateDir}} {
		info, err := os.Lstat(d.path)
		if err == nil && d.knob == options.KnobControlDir && !b.Self.IsRoot() {
			b.checkGroupDirectory(d.path, info, f)
			continue
		}
		if err == nil {
			err = privatedir.OwnedByUs(d.path, info, 0o077)
		}
		if err != nil {
			f.bad(d.knob, "must be a directory that only root can enter: %v", err)
		}
	}
	private, err := privatedir.Open(b.Options.PrivateDir)
	if err != nil {
		return // reported above
	}
	defer private.Close()
	const probe = "check"
	if err := private.WriteFile(probe, nil, 0o600); err != nil {
		f.bad(options.KnobPrivateDir, "cannot be written to: %v", err)
		return
	}
	_ = private.Remove(probe)
}

// checkAPI reads the pod; nil if that failed.
func (b *Inspector) checkAPI(ctx context.Context, f *findings) *corev1.Pod {
	api, err := b.Connect()
	if err != nil {
		f.bad(options.KnobKubernetesDir, "%v", err)
		return nil
	}
	pod, err := api.Get(ctx)
	if err == nil {
		return pod
	}
	why := verdict.OfAPI(err)
	name := b.Options.PodNamespace + "/" + b.Options.PodName
	switch why.Code {
	case http.StatusNotFound:
		f.bad(options.KnobPodName, "there is no pod %s", name)
	case http.StatusForbidden:
		f.bad(options.KnobPodName, "the service account may not get pod %s; allow get, watch and patch on pods with resourceNames [%s] in a Role of the namespace: %s",
			name, b.Options.PodName, why.Message)
	case http.StatusUnauthorized:
		f.bad(options.KnobKubernetesDir, "the API server does not accept the token in %s", filepath.Join(b.Options.KubernetesDir, "token"))
	default:
		f.bad(options.KnobBackend, "is pod, but the API server at %s does not answer: %s", b.Options.Server, why.Message)
	}
	return nil
}

// checkPermissions tries the two verbs that have not been used yet. The patch is a dry
// run, but admission policies judge it like a real one.
func (b *Inspector) checkPermissions(ctx context.Context, pod *corev1.Pod, f *findings) {
	api, err := b.Connect()
	if err != nil {
		return
	}
	tried := make(map[bool]bool) // permissions are on the pod, but a policy may know nothing of sidecars
	for _, name := range b.Options.Containers {
		spec, sidecar := podapi.SpecOf(pod, name), podapi.IsSidecar(pod, name)
		if spec == nil || tried[sidecar] {
			continue // spec's absence is reported already
		}
		tried[sidecar] = true
		patch, err := podapi.BindingPatch(podapi.Binding{Container: name, Spec: spec.Image, Nonce: podapi.NewNonce(), Sidecar: sidecar, DefaultImage: spec.Image})
		if err == nil {
			_, err = api.Patch(ctx, patch, true)
		}
		b.checkAnswer("patch", err, f)
	}
	b.checkResize(ctx, pod, f)
	w, err := api.Watch(ctx, pod.ResourceVersion)
	if err == nil {
		w.Stop()
	}
	b.checkAnswer("watch", err, f)
}

func (b *Inspector) checkAnswer(verb string, err error, f *findings) {
	if err == nil {
		return
	}
	why := verdict.OfAPI(err)
	name := b.Options.PodNamespace + "/" + b.Options.PodName
	if why.Code == http.StatusForbidden && !verdict.IsAdmission(verdict.Worded(err)) {
		f.bad(options.KnobPodName, "the service account may not %s pod %s; allow get, watch and patch on pods with resourceNames [%s] in a Role of the namespace: %s",
			verb, name, b.Options.PodName, why.Message)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		f.warn(options.KnobBackend, "the API server took longer than %s to answer", b.Time)
		return
	}
	f.bad(options.KnobPodName, "cannot %s pod %s: %s", verb, name, why.Message)
}

// quoted lists names for a message.
func quoted(names []string) string { return fmt.Sprintf("%q", names) }
