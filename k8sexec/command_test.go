package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/registry"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// told is a registry that knows one digest, and notes what it is asked.
type told struct {
	asked      []string
	err        error
	commandErr error
}

func (r *told) Resolve(_ context.Context, img imageref.Image) (digest.Digest, error) {
	r.asked = append(r.asked, "resolve "+img.String())
	return testDigest, r.err
}

func (r *told) Command(_ context.Context, img imageref.Image, d digest.Digest) (registry.Command, error) {
	// Answers are kept.
	if question := "command " + img.Repository + "@" + d.String(); !slices.Contains(r.asked, question) {
		r.asked = append(r.asked, question)
	}
	return registry.Command{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"}}, errors.Join(r.err, r.commandErr)
}

// TestCommandOfImage: a binding that needs the image's command pins the image first, so that the
// command is that of what runs.
func TestCommandOfImage(t *testing.T) {
	const otherDigest = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	const image, repo = "registry.example.com/u/tool:2", "registry.example.com/u/tool"
	broken := errors.New("503")
	for name, tt := range map[string]struct {
		pin    bool
		latest bool
		known  digest.Digest // of the tag, from before
		change func(o *options.Options)
		err    error
		// reported is the digest that the kubelet reports after the start.
		reported digest.Digest
		unknown  bool   // what runs, so that nobody may be asked for its command
		spec     string // its end
		asked    []string
	}{
		"pinned":                       {pin: true, spec: "@" + testDigest, asked: []string{"resolve " + image, "command " + repo + "@" + testDigest}},
		"known":                        {pin: true, known: otherDigest, spec: "@" + otherDigest, asked: []string{"command " + repo + "@" + otherDigest}},
		"known, and always the latest": {pin: true, latest: true, known: otherDigest, spec: "@" + testDigest, asked: []string{"resolve " + image, "command " + repo + "@" + testDigest}},
		"not pinned":                   {spec: image, reported: otherDigest, asked: []string{"command " + repo + "@" + otherDigest}},
		"no answer":                    {pin: true, err: broken, spec: image, asked: []string{"resolve " + image}},
		"no lifetime":                  {pin: true, change: func(o *options.Options) { o.DigestLifetime = 0 }, spec: "@" + testDigest, asked: []string{"resolve " + image, "command " + repo + "@" + testDigest}},
		"no throw-away tag":            {pin: true, change: func(o *options.Options) { o.ThrowawayTags = false }, spec: image, unknown: true, asked: []string{"resolve " + image, "command " + repo + "@" + testDigest}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &told{err: tt.err}
			w := newWorld(t, func(o *options.Options) {
				if tt.change != nil {
					tt.change(o)
				}
			})
			w.backend.AskRegistry(r)
			l := w.lease()
			defer release(t, l)
			if tt.known != "" {
				if err := l.digests().learn(imageref.Image{Repository: repo, Tag: "2"}, tt.known); err != nil {
					t.Fatal(err)
				}
			}
			got, err := l.Bind(t.Context(), payload.BindRequest{Activation: "job-1", Image: image, Owner: "alice", Pin: tt.pin, Latest: tt.latest})
			if err != nil {
				t.Fatal(err)
			}
			if spec := w.spec("payload"); !strings.HasSuffix(spec, tt.spec) {
				t.Errorf("patched in as %q, want …%s", spec, tt.spec)
			}
			if tt.reported != "" {
				w.report("payload", 1, repo+"@"+tt.reported.String())
			}
			found, err := got.Command(t.Context())
			if tt.unknown != (err != nil && tt.err == nil) || !tt.unknown && !errors.Is(err, tt.err) {
				t.Errorf("command: %v, want %v", err, tt.err)
			}
			want := payload.ImageCommand{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"}}
			if diff := cmp.Diff(want, found); err == nil && diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.asked, r.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
	w := newWorld(t, nil)
	l, c := w.bind(image)
	defer release(t, l)
	if _, err := c.Command(t.Context()); err == nil {
		t.Error("a command, and nobody was asked")
	}
}

// TestWrongPlatform: an image for another processor is not pulled to find that out. The pod stays as it is.
func TestWrongPlatform(t *testing.T) {
	r := &told{commandErr: fmt.Errorf("asking: %w", registry.ErrPlatform)}
	w := newWorld(t, nil)
	w.backend.AskRegistry(r)
	l := w.lease()
	defer release(t, l)
	before := w.spec("payload")
	_, err := l.Bind(t.Context(), payload.BindRequest{Activation: "job-1", Image: "registry.example.com/u/tool:2", Owner: "alice", Pin: true})
	v := (*payload.Verdict)(nil)
	if !errors.As(err, &v) || v.Blame != payload.User || v.Subcode != verdict.SubcodePlatform {
		t.Errorf("%v; want the user's fault, subcode %d", err, verdict.SubcodePlatform)
	}
	if spec := w.spec("payload"); spec != before {
		t.Errorf("the pod has %s now", spec)
	}
	if _, known := l.digests().lookup(imageref.Image{Repository: "registry.example.com/u/tool", Tag: "2"}); known {
		t.Error("the digest is kept, so that the next binding would pull the image")
	}
	// The site's choice is not the job's fault.
	_, err = l.Bind(t.Context(), payload.BindRequest{Activation: "job-2", Image: "registry.example.com/u/tool:2", ChosenBy: "SOME_KNOB", Pin: true})
	if !errors.As(err, &v) || v.Blame != payload.Site || !strings.Contains(v.Message, "SOME_KNOB") {
		t.Errorf("chosen by the site: %v", err)
	}
}

// TestGuessedDigest: a digest that only the registry told, and that the node cannot pull, for whatever
// reason, does not keep the image from running by its tag.
func TestGuessedDigest(t *testing.T) {
	const image, repo = "registry.example.com/u/tool:2", "registry.example.com/u/tool"
	for name, state := range map[string]corev1.ContainerState{
		"gone":        waitingFor("ErrImagePull", "failed to resolve reference: not found"),
		"never pulls": waitingFor("ErrImageNeverPull", "Container image is not present with pull policy of Never"),
		"throttled":   waitingFor("ImagePullBackOff", "Back-off pulling image: unexpected status code 429 Too Many Requests: toomanyrequests"),
	} {
		t.Run(name, func(t *testing.T) {
			r := &told{}
			w := newWorld(t, nil)
			w.backend.AskRegistry(r)
			w.broken.Store(true)
			w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
				if strings.Contains(podapi.SpecOf(pod, "payload").Image, "@") {
					for range verdict.MaxTries {
						w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = state })
					}
					return
				}
				w.restart(pod, changed)
			}
			l := w.lease()
			defer release(t, l)
			c, err := l.Bind(t.Context(), payload.BindRequest{Activation: "job-1", Image: image, Owner: "alice", Pin: true})
			if err != nil {
				t.Fatal(err)
			}
			if spec := w.spec("payload"); spec != image {
				t.Errorf("patched in as %q, want the plain reference", spec)
			}
			if _, known := l.digests().lookup(imageref.Image{Repository: repo, Tag: "2"}); known {
				t.Error("the digest is still believed")
			}
			w.report("payload", 1, repo+"@"+testDigest)
			if _, err := c.Command(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"resolve " + image, "command " + repo + "@" + testDigest}, r.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
