package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Side is an execution point of the pool: one of those that the pool program makes, or
// the name of a pod that a test made as a copy of ours (see [Pool.AddSide]).
type Side string

// The execution points that the pool program makes. All but ours have the stock starter: the
// references.
const (
	Ours  Side = "ours"
	Stock Side = "stock"
	// StockDocker and StockApptainer run jobs with images, and no others.
	StockDocker    Side = "stock-docker"
	StockApptainer Side = "stock-apptainer"
)

// Requirements is what picks the side in a job's Requirements.
func (s Side) Requirements() string {
	switch s {
	case Ours:
		return "(TARGET.HasPodStarter =?= true)"
	case Stock:
		// The other references accept no job without an image, and this one none with an image.
		return "(TARGET.HasPodStarter =!= true)"
	case StockDocker:
		return `(TARGET.StockReference =?= "docker")`
	case StockApptainer:
		return `(TARGET.StockReference =?= "apptainer")`
	}
	// The pod's name is that of its startd.
	return fmt.Sprintf(`(regexp("@%s(@|$)", TARGET.Name))`, s)
}

// IsStock reports whether the stock starter runs jobs there.
func (s Side) IsStock() bool { return s == Stock || s == StockDocker || s == StockApptainer }

// StarterComm is the name of the starter in the process table, which the
// kernel cuts after 15 bytes.
func (s Side) StarterComm() string {
	if s.IsStock() {
		return "condor_starter"
	}
	return "condor_pod_starter"[:15]
}

// WrapperComm is the name of the wrapper in the process table.
const WrapperComm = "condor_pod_wrap"

// Pool is a running pool.
type Pool struct {
	Root         string            // of the project
	State        string            // directory of the pool program
	Images       map[string]string // short name, as /image-name has it, to full reference
	DefaultImage string            // short name of the image that the payload container was created with
	User         User
	Mode         Mode // of our execution point
	Versions     Versions
	Slots        int // of each execution point, and payload containers of ours for them
	Spares       int // payload containers of ours that are more
	GPUs         int // of Slots, payload containers of ours that have a device
	Pullers      int // pods that get images onto our node
	// Sidecars says that our payload containers are sidecars, in pods that end with their pilot.
	Sidecars bool
	// Partitionable says that each execution point has one slot, from which its startd cuts the others.
	Partitionable bool
	// Controllers says that the cluster has a controller manager and a scheduler.
	Controllers bool
	// Crun says that crun makes the containers, and not runc.
	Crun bool
	// OwnUsers says that the execution points have user namespaces, and networks of their own.
	OwnUsers bool
	// Network is the one of the pods.
	Network string
	// SubmitNamespace is that of the processes of the submit side, as
	// [Process.Namespace] has it.
	SubmitNamespace string
	sides           map[Side]place
	program         string
}

// The networks of the pods, as `pool up --network` has them.
const (
	HostNetwork = "host" // the machine's
	NATNetwork  = "nat"  // the execution points are behind NAT and reached by a broker
	// IPv6Network is one without IPv4; in MixedNetwork the submit side has both.
	IPv6Network  = "ipv6"
	MixedNetwork = "mixed"
)

// Mode is what our execution point shares with its payload containers; see
// docs/admin/modes.md.
type Mode string

// The modes.
const (
	Shared   Mode = "shared"
	Unshared Mode = "unshared"
	Rootless Mode = "rootless"
)

// Versions are those of HTCondor, such as 25.14.
type Versions struct {
	EP string // both execution points: startd and the stock starter
	AP string // the submit side: schedd, shadow, collector, tools
}

// String is how the pair is written in lists: EP+AP.
func (v Versions) String() string { return v.EP + "+" + v.AP }

// place is an execution point as this machine sees it.
type place struct {
	uid       int    // of payloads
	namespace string // of its daemons' processes, as /proc/PID/ns/pid names it
	pod       string // uid of its pod
	shared    bool   // whether its payloads' processes are in the same namespace
	logs      string // directory of its daemons' logs
}

// stateVariable names the directory of the pool's state, also for the pool program.
const stateVariable = "PODSTARTER_STATE"

// Open finds the pool that runs on this machine. Without one it fails: tests are not
// skipped.
func Open(ctx context.Context) (*Pool, error) {
	root, err := projectRoot()
	if err != nil {
		return nil, err
	}
	state := os.Getenv(stateVariable)
	if state == "" {
		state = filepath.Join(root, "integration", ".state")
	}
	p := &Pool{Root: root, State: state, Images: map[string]string{}, DefaultImage: "debian", sides: map[Side]place{}}
	p.program = filepath.Join(p.State, "bin", "pool")
	if out, err := p.run(ctx, nil, "status"); err != nil {
		return nil, fmt.Errorf("no pool that could run a job (start one with: make pool-up): %w\n%s", err, out)
	}
	if err := p.learn(ctx); err != nil {
		return nil, fmt.Errorf("asking the pool how it is set up: %w", err)
	}
	return p, nil
}

// learn reads what tests need to know.
func (p *Pool) learn(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(p.State, "settings.json"))
	if err != nil {
		return err
	}
	var settings struct {
		Mode             Mode
		Condor, APCondor string
		Slots, Spares    int
		GPUs, Pullers    int
		Partitionable    bool
		Sidecars         bool
		Controllers      bool
		OCIRuntime       string
		UserNamespaces   bool
		Network          string
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		return fmt.Errorf("reading the pool's settings: %w", err)
	}
	p.Mode, p.Slots, p.Spares, p.Crun = settings.Mode, settings.Slots, settings.Spares, settings.OCIRuntime == "crun"
	p.GPUs, p.Pullers, p.Sidecars = settings.GPUs, settings.Pullers, settings.Sidecars
	p.Controllers = settings.Controllers
	p.Partitionable, p.OwnUsers = settings.Partitionable, settings.UserNamespaces
	p.Network = cmp.Or(settings.Network, HostNetwork)
	p.Versions = Versions{EP: settings.Condor, AP: cmp.Or(settings.APCondor, settings.Condor)}
	images, err := p.run(ctx, nil, "images")
	if err != nil {
		return err
	}
	for line := range strings.Lines(images) {
		if name, reference, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			p.Images[name] = reference
		}
	}
	if err := p.learnUser(ctx); err != nil {
		return err
	}
	namespace, err := p.AP(ctx, "readlink", "/proc/self/ns/pid")
	if err != nil {
		return err
	}
	p.SubmitNamespace = strings.TrimSpace(namespace)
	if err := p.learnSide(ctx, Ours, "glidein", p.payloadUID()); err != nil {
		return err
	}
	for _, side := range []Side{Stock, StockDocker, StockApptainer} {
		// There is none unless the pool was asked for it.
		if _, err := p.EP(ctx, side, "true"); err != nil {
			continue
		}
		if err := p.learnSide(ctx, side, side.PodName(), `id -u "$(condor_config_val SLOT1_USER)"`); err != nil {
			return err
		}
	}
	return nil
}

// AddSide reads what tests need to know about a pod that a test made like the glidein,
// with the same container names and its logs in a directory of its own name. Its START
// must keep other jobs away.
func (p *Pool) AddSide(ctx context.Context, side Side) error {
	return p.learnSide(ctx, side, side.PodName(), p.payloadUID())
}

// payloadUID is a shell command that prints the user of our first payload.
func (p *Pool) payloadUID() string {
	if p.Mode == Rootless {
		return `stat -c %u /proc/1` // jobs are the pilot's user
	}
	return `{ condor_config_val POD_STARTER_PAYLOAD_UID || echo 10001; } 2>/dev/null | tail -n 1`
}

// learnSide finds the user of payloads with a shell command.
func (p *Pool) learnSide(ctx context.Context, side Side, logs, uid string) error {
	out, err := p.EP(ctx, side, "sh", "-c", uid+` && readlink /proc/self/ns/pid`)
	if err != nil {
		return err
	}
	at := place{logs: filepath.Join(p.State, "log", logs)}
	if _, err := fmt.Sscan(out, &at.uid, &at.namespace); err != nil {
		return fmt.Errorf("reading %q: %w", out, err)
	}
	daemons, err := Processes(func(q Process) bool { return q.Namespace == at.namespace && q.Pod != "" })
	if err != nil {
		return err
	}
	if len(daemons) == 0 {
		return fmt.Errorf("this machine has no daemon of the %s side", side)
	}
	at.pod, at.shared = daemons[0].Pod, side == Stock || !side.IsStock() && p.Mode == Shared
	p.sides[side] = at
	return nil
}

// Has reports whether the pool has an execution point.
func (p *Pool) Has(side Side) bool {
	_, ok := p.sides[side]
	return ok
}

// HasStock reports whether the pool has the execution point with the stock starter for
// jobs without an image.
func (p *Pool) HasStock() bool { return p.Has(Stock) }

// PayloadUID is the user that jobs of the first slot run as.
func (p *Pool) PayloadUID(side Side) int { return p.sides[side].uid }

// PayloadList is the list of a pod's spec that has our payload containers.
func (p *Pool) PayloadList() string {
	if p.Sidecars {
		return "initContainers"
	}
	return "containers"
}

// IsPayloadUID says whether jobs of an execution point may run as that user: one for each
// payload container of ours.
func (p *Pool) IsPayloadUID(side Side, uid int) bool {
	users := p.Slots
	if !side.IsStock() {
		users = p.PayloadUsers()
	}
	return uid >= p.sides[side].uid && uid < p.sides[side].uid+users
}

// PIDNamespace is the namespace of the processes of an execution point's pod, as
// [Process.Namespace] has it.
func (p *Pool) PIDNamespace(side Side) string { return p.sides[side].namespace }

// Payload keeps the processes of jobs of the first slot; with spares, which any slot may
// have, those of all slots.
func (p *Pool) Payload(side Side) func(Process) bool {
	if p.Spares > 0 && !side.IsStock() {
		return p.Payloads(side, p.PayloadUsers())
	}
	return p.Payloads(side, 1)
}

// InPod keeps all processes of the containers of an execution point's pod, whether or not
// they see each other.
func (p *Pool) InPod(side Side) func(Process) bool {
	at := p.sides[side]
	return func(q Process) bool { return q.Pod == at.pod }
}

// Inside keeps the processes that the daemons of an execution point see: all of its pod's,
// if those share a namespace.
func (p *Pool) Inside(side Side) func(Process) bool {
	at := p.sides[side]
	return func(q Process) bool { return q.Namespace == at.namespace }
}

// Starters keeps the starters that run jobs.
func (p *Pool) Starters(side Side) func(Process) bool {
	at := p.sides[side]
	return func(q Process) bool {
		return q.Comm == side.StarterComm() && q.Namespace == at.namespace && !q.IsErrand()
	}
}

// IsErrand tells a process of our starter that runs no job.
func (p Process) IsErrand() bool {
	return slices.ContainsFunc(p.Args, func(arg string) bool {
		return slices.Contains([]string{"-classad", "-monitor", "-keep", "-heal", "-end-pod", "-pilot-stops", "-event", "-check"}, arg)
	})
}

// APIServer keeps the API server of this pool; this machine may have others.
func (p *Pool) APIServer(q Process) bool {
	return q.Comm == "kube-apiserver" && slices.ContainsFunc(q.Args, func(a string) bool { return strings.Contains(a, p.State+"/") })
}

// Image is the full reference of one of the pool's images.
func (p *Pool) Image(name string) string {
	reference, ok := p.Images[name]
	if !ok {
		panic(fmt.Sprintf("the pool packs no image %q, only %v", name, p.Images))
	}
	return reference
}

// AP runs a command as the pool's user on the submit side, in that user's
// home directory, and returns its standard output.
func (p *Pool) AP(ctx context.Context, argv ...string) (string, error) {
	return p.run(ctx, nil, append(p.asUser(), argv...)...)
}

// EP runs a command as root in the container of an execution point's daemons.
func (p *Pool) EP(ctx context.Context, side Side, argv ...string) (string, error) {
	return p.EPInput(ctx, side, nil, argv...)
}

// EPInput is EP with a standard input.
func (p *Pool) EPInput(ctx context.Context, side Side, stdin io.Reader, argv ...string) (string, error) {
	return p.run(ctx, stdin, append(side.verb(), argv...)...)
}

// PilotInput is EPInput for commands that a pilot without root must do itself: root has no
// rights over another user's processes and files there. In other modes it is the same.
func (p *Pool) PilotInput(ctx context.Context, side Side, stdin io.Reader, argv ...string) (string, error) {
	return p.run(ctx, stdin, append(p.pilotVerb(side), argv...)...)
}

// pilotVerb is the pool program's verb that runs a command as who may do what the daemons may.
func (p *Pool) pilotVerb(side Side) []string {
	if side.IsStock() || p.Mode != Rootless {
		return side.verb()
	}
	// By its name the daemons know it as an ordinary user, by the pool's key as one of theirs.
	return append(side.verb(), "--pilot", "env", "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=IDTOKENS")
}

// Suite runs a command where programs for the pilot image are built.
func (p *Pool) Suite(ctx context.Context, stdin io.Reader, argv ...string) (string, error) {
	return p.run(ctx, stdin, append([]string{"suite"}, argv...)...)
}

// verb is the pool program's verb that runs a command in an execution point.
func (s Side) verb() []string {
	switch s {
	case Ours:
		return []string{"ep"}
	case Stock:
		return []string{"ep", "--stock"}
	}
	return []string{"ep", "--pod", s.PodName()}
}

// Up restores missing parts of the pool. The error contains what it said of its steps.
func (p *Pool) Up(ctx context.Context, argv ...string) error {
	said, err := p.run(ctx, nil, append([]string{"up"}, argv...)...)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// Config is the value of one knob of an execution point's starter.
func (p *Pool) Config(ctx context.Context, side Side, knob string) (string, error) {
	out, err := p.EP(ctx, side, "condor_config_val", "-subsystem", "STARTER", knob)
	return strings.TrimSpace(out), err
}

// run executes the pool program. The error contains its standard error.
func (p *Pool) run(ctx context.Context, stdin io.Reader, argv ...string) (string, error) {
	result, err := p.try(ctx, stdin, argv...)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("pool %s: exit code %d: %s", strings.Join(argv, " "), result.Code, strings.TrimSpace(result.Stderr))
	}
	return result.Stdout, err
}

// projectRoot is the checkout above the working directory: the directory with the
// product's go.mod, which is not the nearest one.
func projectRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the project's directory: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module podstarter\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the project's directory: no go.mod of podstarter above the working directory")
		}
		dir = parent
	}
}
