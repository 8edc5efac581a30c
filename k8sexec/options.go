package k8sexec

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"
)

// Values of [Options.Reset].
const (
	// ResetAlways gives every job a fresh container.
	ResetAlways = "always"
	// ResetImage keeps the container for the next job of the same owner that
	// wants the same image, once nothing of the last one is left.
	ResetImage = "image"
)

// Options are the settings of a [Backend]. The comments name the knob that each
// is read from, which is what mistakes are reported under.
type Options struct {
	// PodName is the pilot's own pod (POD_STARTER_POD_NAME).
	PodName string
	// PodNamespace is its namespace (POD_STARTER_POD_NAMESPACE); empty for the
	// one that KubernetesDir names.
	PodNamespace string
	// Containers are the payload containers of the pod (POD_STARTER_CONTAINERS).
	Containers []string
	// BaseUID is the user and group of payloads in the first container; the next
	// one has BaseUID+1, and so on (POD_STARTER_PAYLOAD_UID).
	BaseUID int
	// ControlDir holds one control directory for each payload container
	// (POD_STARTER_CONTROL_DIR).
	ControlDir string
	// PrivateDir is for the pilot container alone: leases, digests
	// (POD_STARTER_PRIVATE_DIR).
	PrivateDir string
	// Execute is the directory of sandboxes (EXECUTE). It is only checked.
	Execute string
	// Scratch takes its place with a pilot that is not root
	// (POD_STARTER_SCRATCH_DIR). It is only checked.
	Scratch string
	// BindTimeout bounds a binding (POD_STARTER_BIND_TIMEOUT).
	BindTimeout time.Duration
	// ThrowawayTags allows image strings of the form name:once@digest
	// (POD_STARTER_THROWAWAY_TAGS).
	ThrowawayTags bool
	// DigestLifetime is how long the digest that a tag pointed to is believed to
	// be its digest still; 0 asks the kubelet each time
	// (POD_STARTER_DIGEST_LIFETIME). From 600 s on, an image that comes back under
	// its plain tag meets no back-off: that is when the kubelet forgets (twice
	// its longest back-off, client-go util/flowcontrol/backoff.go:hasExpired).
	DigestLifetime time.Duration
	// Reset is [ResetAlways], also when empty, or [ResetImage]
	// (POD_STARTER_RESET).
	Reset string
	// KubernetesDir has the files token, ca.crt and namespace
	// (POD_STARTER_KUBERNETES_DIR).
	KubernetesDir string
	// Server is the address of the API server, https://host:port; empty for the
	// one of the environment (KUBERNETES_SERVICE_HOST and _PORT).
	Server string
	// Log gets progress and warnings; nil for none.
	Log *slog.Logger
}

// Backend binds images to the payload containers of one pod. It is safe for
// concurrent use; other processes may have backends of the same pod.
type Backend struct {
	opt  Options
	log  *slog.Logger
	life context.Context

	connect func() (podAPI, error) // the API client, made at its first use
	timing  timing
	proc    string // where procfs is mounted
	root    int    // the user that payload containers begin as
	self    identity
	// killUser ends all processes of a user that this one sees.
	killUser func(ctx context.Context, uid int) error
}

// timing gathers the periods of this package, so that tests can shorten them.
type timing struct {
	// apiPatience is how long an API server that is away is waited for in a
	// binding. An upgrade of a single API server takes tens of seconds; a job that
	// has waited a minute is better off in the queue.
	apiPatience time.Duration
	// apiCall bounds one call. The service level objective for API calls is 1 s at
	// the 99th percentile (kubernetes/community sig-scalability/slos).
	apiCall time.Duration
	// apiRetry is the first pause between two attempts; it doubles up to apiCall/2.
	apiRetry time.Duration
	// leaseWait is how long all containers may be leased before that is an error.
	// A starter that has just reported its exit may need a moment to end.
	leaseWait time.Duration
	// leasePoll is how often leases are tried meanwhile: no event tells that a
	// lock was released.
	leasePoll time.Duration
	// watchDelay is how long the wrapper alone is listened to before a watch is
	// opened. Fast bindings take 0.1 to 0.2 s, and no failure shows earlier than
	// that in the status; the watch starts in the past and misses nothing.
	watchDelay time.Duration
	// stir is when a kubelet that may know more than it has published is made to look
	// at the pod, for the first time. A pull that is refused fails within a second.
	stir time.Duration
	// dismiss bounds the attempt to connect to the old wrapper and tell it to leave.
	// It is there or it is not; a longer attempt could get in the new one's way.
	dismiss time.Duration
	// kill bounds the killing of what is left of an earlier payload; SIGKILL takes
	// milliseconds.
	kill time.Duration
	// idle bounds the wait for the word of the wrapper whose starter has died: it
	// sweeps, which takes as long as killing, or its container is being started again.
	idle time.Duration
	// rest is how long after a container was made anew the kubelet is at rest again:
	// it looks at containers once a second, and looks three times before it acts on
	// the next change at once (docs/developer/turnover.md).
	rest time.Duration
	// nudge is the time after which a wrapper that still has an old nonce is told to
	// leave again; it doubles.
	nudge time.Duration
	// silence is how long a container of ours may run without its wrapper
	// announcing itself.
	silence time.Duration
	// learn bounds the wait for the status of a container that runs, which trails
	// by a second or two, longer on busy nodes.
	learn time.Duration
	// recall is the same wait when the next binding is held up by it.
	recall time.Duration
	// autopsy bounds the wait for the status to tell why a container ended.
	autopsy time.Duration
	// doubt is how long a failure to run that may be of the image before has to
	// stand to be taken for one of this image: the kubelet tries again after 10 s.
	doubt time.Duration
	// notice bounds the question why the pod is being taken down, and when: the
	// job's own grace period begins after the answer.
	notice time.Duration
	// progress is when a binding that takes long first says so; the pause doubles
	// each time.
	progress time.Duration
	// check bounds all API calls of Check: the startd waits for it.
	check time.Duration
}

var defaultTiming = timing{
	apiPatience: time.Minute,
	apiCall:     10 * time.Second,
	apiRetry:    200 * time.Millisecond,
	leaseWait:   10 * time.Second,
	leasePoll:   50 * time.Millisecond,
	watchDelay:  500 * time.Millisecond,
	stir:        1500 * time.Millisecond,
	dismiss:     100 * time.Millisecond,
	kill:        10 * time.Second,
	idle:        15 * time.Second,
	rest:        3300 * time.Millisecond,
	nudge:       3 * time.Second,
	silence:     30 * time.Second,
	learn:       30 * time.Second,
	recall:      4 * time.Second,
	autopsy:     5 * time.Second,
	doubt:       12 * time.Second,
	notice:      time.Second,
	progress:    5 * time.Second,
	check:       4 * time.Second,
}

// New makes a backend. It makes no call to the API server and reads nothing but
// the environment and the file that names the namespace; the context bounds what the backend does in
// the background. All errors are mistakes in the options, one *[Mistake] each.
func New(ctx context.Context, opt Options) (*Backend, error) {
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
			mistakes = multierror.Append(mistakes, mistake(knobPodNamespace, "is empty, and the service account's directory does not name the namespace either: %v", err))
		}
		opt.PodNamespace = strings.TrimSpace(string(text))
	}
	if opt.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			mistakes = multierror.Append(mistakes, mistake(knobBackend, "is pod, but KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not in the environment: "+
				"this is no pod, or the daemon was started without the pod's environment"))
		}
		opt.Server = "https://" + net.JoinHostPort(host, port)
	}
	for _, m := range opt.mistakes() {
		mistakes = multierror.Append(mistakes, m)
	}
	if mistakes != nil {
		mistakes.ErrorFormat = oneLineEach
		return nil, mistakes
	}
	b := &Backend{opt: opt, log: opt.Log, life: ctx, timing: defaultTiming, proc: "/proc", self: ownIdentity(), killUser: killUser}
	b.connect = sync.OnceValues(func() (podAPI, error) { return newPodClient(opt) })
	return b, nil
}

// containerName is what Kubernetes allows as the name of a container (RFC 1123
// label). Names become file names here.
var containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// mistakes are those that show without looking at the system.
func (o *Options) mistakes() []error {
	var found []error
	bad := func(knob, format string, args ...any) { found = append(found, mistake(knob, format, args...)) }
	if o.PodName == "" {
		bad(knobPodName, "is empty; give the pilot container an environment variable POD_NAME with a fieldRef to metadata.name")
	}
	if len(o.Containers) == 0 {
		bad(knobContainers, "names no payload container")
	}
	seen := make(map[string]bool)
	for _, name := range o.Containers {
		switch {
		case !containerName.MatchString(name):
			bad(knobContainers, "%q is not the name of a container", name)
		case seen[name]:
			bad(knobContainers, "names %s twice", name)
		}
		seen[name] = true
	}
	if o.BaseUID <= 0 {
		bad(knobPayloadUID, "is %d; payloads need a user of their own, and not root", o.BaseUID)
	}
	for _, d := range []struct{ knob, path string }{{knobControlDir, o.ControlDir}, {knobPrivateDir, o.PrivateDir}, {knobKubernetesDir, o.KubernetesDir}} {
		if !filepath.IsAbs(d.path) {
			bad(d.knob, "%q is not an absolute path", d.path)
		}
	}
	if o.BindTimeout <= 0 {
		bad(knobBindTimeout, "is %s; give an image the time it takes to be pulled", o.BindTimeout)
	}
	if o.DigestLifetime < 0 {
		bad(knobDigestLifetime, "is %s", o.DigestLifetime)
	}
	if o.Reset != ResetAlways && o.Reset != ResetImage {
		bad(knobReset, "%q is neither %s nor %s", o.Reset, ResetAlways, ResetImage)
	}
	return found
}

// The names of the knobs as an admin knows them, for messages.
const (
	knobBackend        = "POD_STARTER_BACKEND"
	knobPodName        = "POD_STARTER_POD_NAME"
	knobPodNamespace   = "POD_STARTER_POD_NAMESPACE"
	knobContainers     = "POD_STARTER_CONTAINERS"
	knobPayloadUID     = "POD_STARTER_PAYLOAD_UID"
	knobControlDir     = "POD_STARTER_CONTROL_DIR"
	knobPrivateDir     = "POD_STARTER_PRIVATE_DIR"
	knobBindTimeout    = "POD_STARTER_BIND_TIMEOUT"
	knobThrowawayTags  = "POD_STARTER_THROWAWAY_TAGS"
	knobDigestLifetime = "POD_STARTER_DIGEST_LIFETIME"
	knobReset          = "POD_STARTER_RESET"
	knobKubernetesDir  = "POD_STARTER_KUBERNETES_DIR"
	knobExecute        = "EXECUTE"
	knobScratchDir     = "POD_STARTER_SCRATCH_DIR"
)

// Mistake is something that an admin has to mend, in one line.
type Mistake struct {
	// Knob is the HTCondor setting to look at first.
	Knob string
	// Text says what is wrong and what to do.
	Text string
	// Line is the line of the pod's manifest to change, if it is one, such as
	// spec.containers[name=payload].workingDir: /.
	Line string
}

// Error implements error.
func (m *Mistake) Error() string { return m.Knob + ": " + m.Text }

func mistake(knob, format string, args ...any) *Mistake {
	return &Mistake{Knob: knob, Text: fmt.Sprintf(format, args...)}
}

// oneLineEach formats several mistakes for a log file.
func oneLineEach(errs []error) string {
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}
