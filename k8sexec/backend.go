package k8sexec

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/audit"
	"podstarter/k8sexec/jointwatch"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
	"podstarter/k8sexec/puller"
	"podstarter/payload"
)

// Backend binds images to the payload containers of one pod. It is safe for
// concurrent use; other processes may have backends of the same pod.
type Backend struct {
	opt  options.Options
	log  *slog.Logger
	life context.Context

	connect func() (podapi.API, error) // the API client, made at its first use
	pod     *podwatch.Pod              // the pilot's own
	pullers *puller.Pullers
	timing  timing
	// memoryOf is the memory limit of a container as its control group has it.
	memoryOf func(*payload.Client) (limit int64, known bool)
	proc     string // where procfs is mounted
	root     int    // the user ID that payload containers start with
	self     audit.Identity
	registry Registry // nil if nobody asks registries
	// killUser ends all processes of a user that this process sees.
	killUser func(ctx context.Context, uid int) error
}

// timing gathers the periods of this package, so that tests can shorten them.
type timing struct {
	// leaseWait is how long all containers may be leased before that is an error.
	// A starter that has just reported its exit may need a moment to end.
	leaseWait time.Duration
	// leasePoll is how often leases are tried meanwhile: no event tells that a
	// lock was released.
	leasePoll time.Duration
	// watchDelay is how long a binding waits for the wrapper before it opens a watch.
	// Fast bindings take 0.1 to 0.2 s, and the status shows no failure earlier than
	// that; the watch starts in the past and misses nothing.
	watchDelay time.Duration
	// stir is when the binding first makes the kubelet look at the pod, if the kubelet
	// may know more than it has published. A pull that is refused fails within a
	// second.
	stir time.Duration
	// dismiss bounds the attempt to connect to the old wrapper and tell it to leave. A
	// longer attempt could get in the way of the new wrapper.
	dismiss time.Duration
	// leave bounds the wait for a wrapper that was told to leave. It may only say that it
	// leaves, or fail to kill its payload; the kubelet ends both.
	leave time.Duration
	// kill bounds the killing of what is left of an earlier payload; SIGKILL takes
	// milliseconds.
	kill time.Duration
	// resize bounds a change of a container's limits, and the wait until it has them: the
	// kubelet needs a second at most unless it puts that off, for minutes.
	resize time.Duration
	// giveBack bounds the change back, for which a slot waits.
	giveBack time.Duration
	// idle bounds the wait until a wrapper whose starter died says that it is idle: it
	// sweeps, which takes as long as killing, or its container is being started again.
	idle time.Duration
	// rest is how long it takes after a new container until the kubelet is at rest
	// again: it looks at containers once a second, and must have looked three times
	// before it acts at once on the next change (docs/developer/turnover.md).
	rest time.Duration
	// nudge is the time after which a wrapper that still has an old nonce is told to
	// leave again; it doubles.
	nudge time.Duration
	// silence is how long a container of ours may run without its wrapper
	// announcing itself.
	silence time.Duration
	// learn bounds the wait for the status of a running container, which comes a second
	// or two late, and later on busy nodes.
	learn time.Duration
	// recall bounds the same wait where the next binding has to wait, too.
	recall time.Duration
	// ahead is how long a container that was made ahead may take to announce itself: a
	// few of the kubelet's turns on a busy node.
	ahead time.Duration
	// restock bounds the calls that make containers ahead, since their leases are taken
	// for as long.
	restock time.Duration
	// autopsy bounds the wait until the status shows why a container ended.
	autopsy time.Duration
	// doubt is how long a failure to run, which may belong to the previous image, must
	// persist until it counts as this image's: the kubelet tries again after 10 s.
	doubt time.Duration
	// notice bounds the call that asks why the pod is being taken down, and when: the
	// job's own grace period begins after the answer.
	notice time.Duration
	// tick is how often a waiting binding looks whether it has to report, and whom the
	// kubelet is busy with.
	tick time.Duration
	// progress is when a slow binding first reports that it waits; the pause doubles
	// each time.
	progress time.Duration
	// check bounds all API calls of Check: the startd waits for it.
	check time.Duration
}

// apiTimes: an upgrade of a single API server takes tens of seconds; after a minute the
// job had better go back to the queue. The service level objective for API calls is 1 s
// at the 99th percentile (kubernetes/community sig-scalability/slos).
var apiTimes = podwatch.Times{Patience: time.Minute, Call: 10 * time.Second, Retry: 200 * time.Millisecond}

var defaultTiming = timing{
	leaseWait:  10 * time.Second,
	leasePoll:  50 * time.Millisecond,
	watchDelay: 500 * time.Millisecond,
	stir:       1500 * time.Millisecond,
	dismiss:    100 * time.Millisecond,
	leave:      5 * time.Second,
	kill:       10 * time.Second,
	resize:     10 * time.Second,
	giveBack:   3 * time.Second,
	idle:       15 * time.Second,
	rest:       3300 * time.Millisecond,
	nudge:      3 * time.Second,
	silence:    30 * time.Second,
	learn:      30 * time.Second,
	recall:     4 * time.Second,
	ahead:      10 * time.Second,
	restock:    5 * time.Second,
	autopsy:    5 * time.Second,
	doubt:      12 * time.Second,
	notice:     time.Second,
	tick:       time.Second,
	progress:   5 * time.Second,
	check:      4 * time.Second,
}

// New makes a backend. It makes no call to the API server, and reads only the
// environment and the file that names the namespace; ctx bounds what the backend does
// in the background. All errors are mistakes in the options, one *[options.Mistake]
// each.
func New(ctx context.Context, opt options.Options) (*Backend, error) {
	if err := opt.Complete(); err != nil {
		return nil, err
	}
	b := &Backend{opt: opt, log: opt.Log, life: ctx, timing: defaultTiming, memoryOf: memoryOf, proc: "/proc", self: audit.OwnIdentity(), killUser: killUser}
	client := sync.OnceValues(func() (*podapi.Client, error) { return podapi.New(opt) })
	b.connect = func() (podapi.API, error) { return client() }
	b.pod = &podwatch.Pod{Connect: b.connect, Times: apiTimes, Log: opt.Log}
	b.pullers = &puller.Pullers{Names: opt.Pullers, Dir: opt.PrivateDir, Timeout: opt.BindTimeout, Times: apiTimes, Log: opt.Log,
		Pace: puller.Pace{Poll: 4 * b.timing.leasePoll, Occupied: 2 * time.Second, Progress: b.timing.progress, Stir: b.timing.stir, Doubt: b.timing.doubt},
		Connect: func(pod string) (podapi.API, error) {
			c, err := client()
			if err != nil {
				return nil, err
			}
			return c.Of(pod), nil
		}}
	return b, nil
}

// AskRegistry has the backend ask about images; nil for nobody. It is called before anything else.
func (b *Backend) AskRegistry(r Registry) { b.registry = r }

// Registry is what a backend asks of registries.
type Registry = audit.Registry

// follow calls see with the pilot's pod and then with its later states, see
// [jointwatch.Watch.Follow].
func (b *Backend) follow(ctx context.Context, pod *corev1.Pod, see func(*corev1.Pod) bool) {
	w := jointwatch.Watch{Dir: b.opt.PrivateDir, Pod: b.pod, Pace: jointwatch.DefaultPace, Log: b.log, Life: b.life}
	w.Follow(ctx, pod, see)
}
