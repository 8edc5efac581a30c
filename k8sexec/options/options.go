// Package options has the settings of a pod's backend, and finds the mistakes in them.
package options

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
)

// Values of [Options.Reset].
const (
	// ResetAlways gives every job a fresh container.
	ResetAlways = "always"
	// ResetImage keeps the container for the next job of the same owner that wants the
	// same image, once nothing of the last job is left.
	ResetImage = "image"
)

// Options are the settings of a pod's backend. The comments name the knob of each;
// mistakes are reported under these names.
type Options struct {
	// PodName is the pilot's own pod (POD_STARTER_POD_NAME).
	PodName string
	// PodNamespace is its namespace (POD_STARTER_POD_NAMESPACE); empty for the
	// one that KubernetesDir names.
	PodNamespace string
	// Containers are the payload containers of the pod (POD_STARTER_CONTAINERS).
	Containers []string
	// Spares is how many of them are more than the slots need (POD_STARTER_SPARES).
	// A slot takes any container that is free; those used are made new meanwhile.
	Spares int
	// GPUContainers are those of Containers that have graphics processors
	// (POD_STARTER_GPU_CONTAINERS). The backend only checks them.
	GPUContainers []string
	// BaseUID is the user and group of payloads in the first container; the next
	// one has BaseUID+1, and so on (POD_STARTER_PAYLOAD_UID).
	BaseUID int
	// ControlDir holds one control directory for each payload container
	// (POD_STARTER_CONTROL_DIR).
	ControlDir string
	// PrivateDir is only for the pilot container: leases, digests
	// (POD_STARTER_PRIVATE_DIR).
	PrivateDir string
	// Execute is the directory of sandboxes (EXECUTE). The backend only checks it.
	Execute string
	// Scratch takes its place with a pilot that is not root (POD_STARTER_SCRATCH_DIR).
	// The backend only checks it.
	Scratch string
	// BindTimeout bounds a binding (POD_STARTER_BIND_TIMEOUT).
	BindTimeout time.Duration
	// ThrowawayTags allows image strings of the form name:once@digest
	// (POD_STARTER_THROWAWAY_TAGS).
	ThrowawayTags bool
	// DigestLifetime is how long the starter goes by the digest that a tag pointed to;
	// 0 has the tag looked up each time (POD_STARTER_DIGEST_LIFETIME). From 600 s on,
	// an image that comes back under its plain tag meets no back-off, since the kubelet
	// has forgotten it by then (twice its longest back-off, client-go
	// util/flowcontrol/backoff.go:hasExpired).
	DigestLifetime time.Duration
	// Reset is [ResetAlways], also when empty, or [ResetImage]
	// (POD_STARTER_RESET).
	Reset string
	// Pullers are containers of other pods on the node, which get images onto it
	// (POD_STARTER_PULLERS). Without one, payload containers pull their images.
	Pullers []Puller
	// Resize gives a payload container the limits that its job's slot was provisioned with
	// (POD_STARTER_RESIZE).
	Resize bool
	// KubernetesDir has the files token, ca.crt and namespace
	// (POD_STARTER_KUBERNETES_DIR).
	KubernetesDir string
	// Server is the address of the API server, https://host:port; empty for the
	// one of the environment (KUBERNETES_SERVICE_HOST and _PORT).
	Server string
	// Called, if not nil, is told of each request to the API server: its verb, such as
	// "patch", and the HTTP status of the answer, 0 if there was none. It may be called from
	// any goroutine.
	Called func(verb string, code int)
	// Offer is what slots offer to jobs; nil if nobody knows. Only checks ask.
	Offer func() Offer
	// Log gets progress and warnings; nil for none.
	Log *slog.Logger
}

// containerName is what Kubernetes allows as the name of a container (RFC 1123
// label), apart from its length. Names become file names here.
var containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// maxName is the most bytes of such a name. A repetition up to it in the expression would
// take each starter 40 KB.
const maxName = 63

// podName is what Kubernetes allows as the name of a pod (RFC 1123 subdomain), apart from
// its length.
var podName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// maxPodName is the most bytes of such a name.
const maxPodName = 253

// mistakes are those that can be found without looking at the system.
func (o *Options) mistakes() []error {
	var found []error
	bad := func(knob, format string, args ...any) { found = append(found, NewMistake(knob, format, args...)) }
	if o.PodName == "" {
		bad(KnobPodName, "is empty; give the pilot container an environment variable POD_NAME with a fieldRef to metadata.name")
	}
	if len(o.Containers) == 0 {
		bad(KnobContainers, "names no payload container")
	}
	seen := make(map[string]bool)
	for _, name := range o.Containers {
		switch {
		case len(name) > maxName, !containerName.MatchString(name):
			bad(KnobContainers, "%q is not the name of a container", name)
		case seen[name]:
			bad(KnobContainers, "names %s twice", name)
		}
		seen[name] = true
	}
	switch {
	case o.Spares < 0:
		bad(KnobSpares, "is %d; it is the number of payload containers that are more than the slots need", o.Spares)
	case o.Spares >= len(o.Containers) && len(o.Containers) > 0:
		bad(KnobSpares, "is %d, and %s names %d; it must be at most %d, so that a container is left for a slot", o.Spares, KnobContainers, len(o.Containers), len(o.Containers)-1)
	}
	pullers := make(map[Puller]bool)
	for _, p := range o.Pullers {
		switch {
		case len(p.Pod) > maxPodName || len(p.Container) > maxName || !podName.MatchString(p.Pod) || !containerName.MatchString(p.Container):
			bad(KnobPullers, "%q is not the name of a pod, or of a pod and a container as POD/CONTAINER", p)
		case p.Pod == o.PodName:
			bad(KnobPullers, "names the pilot's own pod, whose slots would wait for each pull; name other pods on its node")
		case pullers[p]:
			bad(KnobPullers, "names %s twice", p)
		}
		pullers[p] = true
	}
	if o.BaseUID <= 0 {
		bad(KnobPayloadUID, "is %d; payloads need a user of their own, and not root", o.BaseUID)
	}
	for _, d := range []struct{ knob, path string }{{KnobControlDir, o.ControlDir}, {KnobPrivateDir, o.PrivateDir}, {KnobKubernetesDir, o.KubernetesDir}} {
		if !filepath.IsAbs(d.path) {
			bad(d.knob, "%q is not an absolute path", d.path)
		}
	}
	if o.BindTimeout <= 0 {
		bad(KnobBindTimeout, "is %s; it must be long enough to pull an image", o.BindTimeout)
	}
	if o.DigestLifetime < 0 {
		bad(KnobDigestLifetime, "is %s", o.DigestLifetime)
	}
	if o.Reset != ResetAlways && o.Reset != ResetImage {
		bad(KnobReset, "%q is neither %s nor %s", o.Reset, ResetAlways, ResetImage)
	}
	return found
}

// The names of the knobs as an admin knows them, for messages.
const (
	KnobBackend        = "POD_STARTER_BACKEND"
	KnobPodName        = "POD_STARTER_POD_NAME"
	KnobPodNamespace   = "POD_STARTER_POD_NAMESPACE"
	KnobContainers     = "POD_STARTER_CONTAINERS"
	KnobSpares         = "POD_STARTER_SPARES"
	KnobGPUContainers  = "POD_STARTER_GPU_CONTAINERS"
	KnobPayloadUID     = "POD_STARTER_PAYLOAD_UID"
	KnobControlDir     = "POD_STARTER_CONTROL_DIR"
	KnobPrivateDir     = "POD_STARTER_PRIVATE_DIR"
	KnobBindTimeout    = "POD_STARTER_BIND_TIMEOUT"
	KnobThrowawayTags  = "POD_STARTER_THROWAWAY_TAGS"
	KnobDigestLifetime = "POD_STARTER_DIGEST_LIFETIME"
	KnobReset          = "POD_STARTER_RESET"
	KnobPullers        = "POD_STARTER_PULLERS"
	KnobResize         = "POD_STARTER_RESIZE"
	KnobKubernetesDir  = "POD_STARTER_KUBERNETES_DIR"
	KnobExecute        = "EXECUTE"
	KnobScratchDir     = "POD_STARTER_SCRATCH_DIR"
)

// Mistake is something that an admin has to correct, in one line.
type Mistake struct {
	// Knob is the HTCondor setting to look at first.
	Knob string
	// Text says what is wrong and what to do.
	Text string
	// Line is the line of the pod's manifest to change, if there is one, such as
	// spec.containers[name=payload].workingDir: /.
	Line string
}

// Error implements error.
func (m *Mistake) Error() string { return m.Knob + ": " + m.Text }

// NewMistake makes a mistake about a knob.
func NewMistake(knob, format string, args ...any) *Mistake {
	return &Mistake{Knob: knob, Text: fmt.Sprintf(format, args...)}
}

// OneLineEach formats several mistakes for a log file.
func OneLineEach(errs []error) string {
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Complete fills in the defaults, and finds the mistakes that can be found without
// looking at the system: one *[Mistake] each. It reads only the environment and the
// file that names the namespace.
func (opt *Options) Complete() error {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Reset == "" {
		opt.Reset = ResetAlways
	}
	var mistakes *multierror.Error
	if opt.PodNamespace == "" {
		text, err := os.ReadFile(filepath.Join(opt.KubernetesDir, "namespace"))
		if err != nil {
			mistakes = multierror.Append(mistakes, NewMistake(KnobPodNamespace, "is empty, and the service account's directory does not name the namespace either: %v", err))
		}
		opt.PodNamespace = strings.TrimSpace(string(text))
	}
	if opt.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			mistakes = multierror.Append(mistakes, NewMistake(KnobBackend, "is pod, but KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not in the environment: "+
				"this is no pod, or the daemon was started without the pod's environment"))
		}
		opt.Server = "https://" + net.JoinHostPort(host, port)
	}
	for _, m := range opt.mistakes() {
		mistakes = multierror.Append(mistakes, m)
	}
	if mistakes != nil {
		mistakes.ErrorFormat = OneLineEach
		return mistakes
	}
	return nil
}

// WrapperProgram is the name of the wrapper's file in its volume.
const WrapperProgram = "condor_pod_wrapper"

// Fix is what to change: the line of the manifest, or the knob.
func (m *Mistake) Fix() string {
	if m.Line != "" {
		return m.Line
	}
	return m.Knob
}
