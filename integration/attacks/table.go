package attacks

// An Attack is something that a hostile job tries.
type Attack struct {
	Name   string // as the probe knows it, but for those of the outcome
	Threat string // for docs/threats.md
	Tried  string // how
	// Falls are lists of defences: the attack gets through if all of one list
	// are off.
	Falls [][]string
	// Outside: what came of it is not in the job's report, the test looks.
	Outside bool
	// Plugin: not the job tries it, but a file transfer plugin that the job brings, in
	// the pilot container. The probe knows it without PluginPrefix.
	Plugin bool
	// Victim: it is tried where a neighbour runs in the other slot.
	Victim bool
}

// Names of attacks that the test itself looks after.
const (
	Loot       = "loot"
	LootBelow  = "loot-below"
	Survivors  = "survivors"
	Orphans    = "orphans"
	GoDebug    = "go-settings"
	Arguments  = "arguments"
	LeftBehind = "leftovers"
	StopSignal = "stop-signal"
	Pipe       = "pipe"
)

// PluginPrefix begins the names of what plugins try, or have left.
const PluginPrefix = "plugin-"

// Attacks is the table.
var Attacks = []Attack{
	{
		Name:   "setuid",
		Threat: "A setuid-root program in the user's image",
		Tried:  "runs one that the image brings, and looks whose it began as",
		Falls:  [][]string{{Escalation, NoNewPrivs}},
	},
	{
		Name:   "root",
		Threat: "The job becomes root again",
		Tried:  "asks for root's ids (`setresuid`)",
		Falls:  [][]string{{User}},
	},
	{
		Name:   "groups",
		Threat: "The image's `/etc/group` and `/etc/passwd` make the job a member of other groups, root's among them",
		Tried:  "looks at its groups",
		Falls:  [][]string{{Groups}},
	},
	{
		Name:   "signal",
		Threat: "The job stops or kills wrapper, starter or HTCondor's daemons",
		Tried:  "signals each of them",
		Falls:  [][]string{{User}},
	},
	{
		Name:   "pry-wrapper",
		Threat: "The job looks into the wrapper, or makes it do things",
		Tried:  "`ptrace`, and `/proc/PID/` `environ`, `mem`, `fd`, `root`, `cwd`",
		Falls:  [][]string{{User, NoRights}},
	},
	{
		Name:   "pry-pilot",
		Threat: "A job that has become root of its container looks into the pilot, where the pod's token and the pool's credentials are",
		Tried:  "the same with starter and daemons, and reads the token by way of `/proc/PID/root`",
		Falls:  [][]string{{User, NoRights, FewerRights}},
	},
	{
		Name:   "token",
		Threat: "The job takes the pod's token from its own file system",
		Tried:  "reads it where the kubelet puts it",
		Falls:  [][]string{{User, NoToken}},
	},
	{
		Name:   "replace-wrapper",
		Threat: "The job replaces the wrapper that the next job is started by",
		Tried:  "writes beside it",
		Falls:  [][]string{{User, ReadOnly}},
	},
	{
		Name:   "control-directory",
		Threat: "The job forges an exit record, or the wrapper's socket",
		Tried:  "writes into the control directories of all slots",
		Falls:  [][]string{{ClosedParent, ClosedControl}, {User}},
	},
	{
		Name:   "connect",
		Threat: "The job gives the wrapper orders",
		Tried:  "connects to its socket and waits for the greeting",
		Falls:  [][]string{{ClosedParent, ClosedControl, Peer}, {User}},
	},
	{
		Name:   "descriptors",
		Threat: "The job inherits an open file",
		Tried:  "lists its descriptors",
		Falls:  [][]string{{Descriptors}},
	},
	{
		Name:   "environment",
		Threat: "The job learns the nonce of its binding, or takes itself for a part of the cluster",
		Tried:  "looks at its environment",
		Falls:  [][]string{{Environment}},
	},
	{
		Name:    Arguments,
		Threat:  "A secret stands among the arguments of a process, which all of the pod can read",
		Tried:   "reads all of them, and the test looks for the pool's password and for tokens",
		Falls:   [][]string{{Secrets}},
		Outside: true,
	},
	{
		Name:    GoDebug,
		Threat:  "The image's `GODEBUG`, `LD_PRELOAD` and the like steer the wrapper",
		Tried:   "the image sets them, and the test looks at the wrapper's environment",
		Falls:   [][]string{{GoSettings}},
		Outside: true,
	},
	{
		Name:    Loot,
		Threat:  "A symbolic link in the sandbox has root fetch a file of the pilot",
		Tried:   "an output file that is a link to the pool's password, which must not arrive at the access point",
		Falls:   [][]string{{Identity, Beneath}},
		Outside: true,
	},
	{
		Name:    LootBelow,
		Threat:  "A symbolic link in the middle of a path does so",
		Tried:   "an output file below a directory that is a link to that of the password",
		Falls:   [][]string{{Identity, Beneath}},
		Outside: true,
	},
	{
		Name:    Pipe,
		Threat:  "A named pipe among the output files has the starter wait for ever",
		Tried:   "an output file that is one",
		Falls:   [][]string{{Kinds, NoWaiting}},
		Outside: true,
	},
	{
		Name:    StopSignal,
		Threat:  "The image's `STOPSIGNAL` is one that stops nothing, so that the next job waits for the pod's grace period",
		Tried:   "the image names `SIGUSR2`, and the test looks whether its container had to be killed",
		Falls:   [][]string{{AllSignals, Dismissal}},
		Outside: true,
	},
	{
		Name:    Survivors,
		Threat:  "Processes outlive their job",
		Tried:   "leaves some that have left session and parent, ignore signals, are stopped, or fork for ever",
		Falls:   [][]string{{Sweep, DeadMan}},
		Outside: true,
	},
	{
		Name:    Orphans,
		Threat:  "A job outlives its starter",
		Tried:   "the test kills the starter",
		Falls:   [][]string{{DeadMan}},
		Outside: true,
	},
	{
		Name:    LeftBehind,
		Threat:  "A job finds what another one had in shared memory",
		Tried:   "leaves a file in `/dev/shm` and System V shared memory, for which the next job looks",
		Falls:   [][]string{{Leftovers, MakeWay}},
		Outside: true,
	},
	{
		Name:   "neighbour-signal",
		Threat: "A job kills that of another slot, perhaps by a pattern (`pkill`)",
		Tried:  "signals all processes whose arguments match",
		Falls:  [][]string{{SlotUsers}},
		Victim: true,
	},
	{
		Name:   "neighbour-process",
		Threat: "A job looks into that of another slot",
		Tried:  "as with the wrapper",
		Falls:  [][]string{{SlotUsers}},
		Victim: true,
	},
	{
		Name:   "neighbour-files",
		Threat: "A job reads the sandbox of another slot",
		Tried:  "reads a file in all sandboxes",
		Falls:  [][]string{{SlotUsers}, {SandboxMode}},
		Victim: true,
	},
	{
		Name:   "neighbour-memory",
		Threat: "A job reads the shared memory of another slot's",
		Tried:  "opens the other's file in `/dev/shm` and attaches its System V segment, both of mode 0600",
		Falls:  [][]string{{SlotUsers}},
		Victim: true,
	},
	{
		Name:   PluginPrefix + "root",
		Threat: "A file transfer plugin that the job brings is root in the pilot container, where it runs",
		Tried:  "asks for root's ids (`setresuid`)",
		Falls:  [][]string{{PluginUser}},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "signal",
		Threat: "It stops or kills starter or daemons",
		Tried:  "signals each of them",
		Falls:  [][]string{{PluginUser}},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "pry-pilot",
		Threat: "It looks into them",
		Tried:  "`ptrace`, and `/proc/PID/` `environ`, `mem`, `fd`, `root`, `cwd`",
		Falls:  [][]string{{PluginUser}},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "token",
		Threat: "It takes the pod's token, which is in its file system",
		Tried:  "reads it where the kubelet puts it",
		Falls:  [][]string{{PluginUser}},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "neighbour-files",
		Threat: "It reads the sandbox of another slot",
		Tried:  "reads a file in all sandboxes",
		Falls:  [][]string{{SlotUsers}, {SandboxMode}, {PluginUser}},
		Plugin: true,
		Victim: true,
	},
	{
		Name:   PluginPrefix + "environment",
		Threat: "It learns what the site keeps in the pilot's environment",
		Tried:  "looks at its own",
		Falls:  [][]string{{PluginEnviron}},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "flood",
		Threat: "It has the starter run out of memory",
		Tried:  "writes 256 MiB to its standard output, and looks at the starter's peak",
		Falls:  [][]string{{PluginOutput}},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "survivors",
		Threat: "What it has started outlives it",
		Tried:  "starts a process in a session of its own, for which the job looks",
		Falls:  [][]string{{PluginRemains}},
	},
}

// A Setting is an execution point with some defences off.
type Setting struct {
	Name   string
	Open   bool // in the pod whose manifest lacks openPod
	Off    []string
	Victim bool // a neighbour runs
	Second bool // another job follows in the same slot
	Killed bool // a starter is killed
	Pipe   bool // a job sends a named pipe
}

// openPod are the defences that the second pod lacks in all its settings.
var openPod = []string{Escalation, FewerRights, ReadOnly, NoToken, ClosedParent}

// Settings are all that every attack is tried in, pod by pod in this order.
var Settings = []Setting{
	{Name: "as deployed", Victim: true, Second: true, Killed: true, Pipe: true},
	{
		Name: "careless wrapper, one user", Victim: true, Second: true, Pipe: true,
		Off: []string{
			NoNewPrivs, Groups, Descriptors, Environment, GoSettings, ClosedControl, Peer, AllSignals,
			// Without the next a neighbour of the same user would be taken for an earlier job.
			Leftovers, MakeWay,
			Identity, Kinds, SlotUsers, Secrets, PluginEnviron, PluginOutput, PluginRemains,
		},
	},
	{
		Name: "user that can be given up", Second: true, Pipe: true,
		Off: []string{User, Leftovers, Beneath, NoWaiting, Sweep, Dismissal},
	},
	{
		Name: "root with the wrapper's capabilities", Killed: true,
		Off: []string{User, NoRights, DeadMan},
	},
	{Name: "open pod", Open: true, Victim: true, Off: []string{NoRights, Peer, PluginUser}},
	{Name: "open pod, user that can be given up", Open: true, Off: []string{User}},
	{
		Name: "open pod, careless programs", Open: true, Killed: true,
		Off: []string{User, NoRights, DeadMan, Identity, Beneath, Sweep},
	},
	{
		Name: "open pod and control directory", Open: true,
		Off: []string{NoNewPrivs, ClosedControl},
	},
	{
		Name: "open pod and wrapper", Open: true, Victim: true, Second: true, Pipe: true,
		Off: []string{ClosedControl, Peer, SandboxMode, MakeWay, AllSignals, Kinds, NoWaiting, Dismissal},
	},
}

// off are all defences that the setting lacks.
func (s Setting) off() []string {
	if s.Open {
		return append(append([]string{}, openPod...), s.Off...)
	}
	return s.Off
}

// tries says whether the attack is tried in a setting.
func (a Attack) tries(s Setting) bool {
	switch a.Name {
	case LeftBehind, StopSignal:
		return s.Second
	case Pipe:
		return s.Pipe
	case Orphans:
		return s.Killed
	}
	return s.Victim || !a.Victim
}

// lookUp finds an attack by its name.
func lookUp(name string) Attack {
	for _, a := range Attacks {
		if a.Name == name {
			return a
		}
	}
	panic("no attack " + name)
}

// falls says whether the attack must get through.
func (a Attack) falls(off []string) bool {
	for _, list := range a.Falls {
		if subset(list, off) {
			return true
		}
	}
	return false
}
