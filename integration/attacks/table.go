package attacks

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
	HookLoot   = "hook-loot"
	HookRuns   = "hook-commands"
	SitePlugin = "site-plugin"
	ForkBomb   = "fork-bomb"
	Behind     = "job-behind"
	CutOff     = "cut-off"
)

// PluginPrefix begins the names of what plugins try, or have left.
const PluginPrefix = "plugin-"

// The plugins' attacks that the test itself looks after.
const (
	PluginFlood     = PluginPrefix + "flood"
	PluginSurvivors = PluginPrefix + "survivors"
)

// Attacks is the table.
var Attacks = []Attack{
	{
		Name:   "setuid",
		Threat: "A setuid-root program in the user's image",
		Tried:  "runs one from the image, and looks at its user",
		Ways:   []Way{without(Escalation, NoNewPrivs)},
	},
	{
		Name:   "root",
		Threat: "The job becomes root again",
		Tried:  "asks for root's ids (`setresuid`)",
		Ways:   []Way{without(User)},
	},
	{
		Name:   "groups",
		Threat: "The image's `/etc/group` and `/etc/passwd` put the job into other groups, such as root's",
		Tried:  "looks at its groups",
		Ways:   []Way{without(Groups)},
	},
	{
		Name:   "signal",
		Threat: "The job stops or kills wrapper, starter or HTCondor's daemons",
		Tried:  "signals each of them",
		Ways:   []Way{without(User), without(Namespace).in(rootless)},
	},
	{
		Name:   "pry-wrapper",
		Threat: "The job reads the wrapper's memory and files, or controls it",
		Tried:  "`ptrace`, and `/proc/PID/` `environ`, `mem`, `fd`, `root`, `cwd`",
		Ways:   []Way{without(User, NoRights)},
	},
	{
		Name:   "pry-pilot",
		Threat: "A job, perhaps as root of its container, reads memory and files of the pilot, which has the pod's token and the pool's credentials",
		Tried:  "the same with starter and daemons; reads the token through `/proc/PID/root`",
		Ways:   []Way{without(User, NoRights, FewerRights, Namespace).in(hasRoot), without(Namespace).in(rootless)},
	},
	{
		Name:   "token",
		Threat: "The job takes the pod's token from its own file system",
		Tried:  "reads it where the kubelet puts it",
		Ways:   []Way{without(User, NoToken).in(hasRoot), without(NoToken).in(rootless)},
	},
	{
		Name:   "replace-wrapper",
		Threat: "The job replaces the wrapper that starts the next job",
		Tried:  "writes beside it",
		Ways:   []Way{without(User, ReadOnly)},
	},
	{
		Name:   "control-directory",
		Threat: "The job forges an exit record, or the wrapper's socket",
		Tried:  "writes into the control directories of all slots",
		Ways:   []Way{without(ClosedParent, ClosedControl), without(User), without(Groups, ClosedControl).in(rootless)},
	},
	{
		Name:   "connect",
		Threat: "The job gives the wrapper orders",
		Tried:  "connects to its socket and waits for the greeting",
		Ways:   []Way{without(ClosedParent, ClosedControl, Peer), without(User), without(Groups).in(rootless)},
	},
	{
		Name:   "descriptors",
		Threat: "The job inherits an open file",
		Tried:  "lists its descriptors",
		Ways:   []Way{without(Descriptors)},
	},
	{
		Name:   "environment",
		Threat: "The job learns the nonce of its binding, or believes that it is part of the cluster",
		Tried:  "looks at its environment",
		Ways:   []Way{without(Environment)},
	},
	{
		Name:    Arguments,
		Threat:  "A process has a secret among its arguments, which everything in the pod can read",
		Tried:   "reads all of them, and the test looks for the pool's password and for tokens",
		Ways:    []Way{without(Secrets, Namespace)},
		Outside: true,
	},
	{
		Name:    GoDebug,
		Threat:  "The image's `GODEBUG`, `LD_PRELOAD` and the like steer the wrapper",
		Tried:   "the image sets them, and the test looks at the wrapper's environment",
		Ways:    []Way{without(GoSettings)},
		Outside: true,
	},
	{
		Name:    Loot,
		Threat:  "A symbolic link in the sandbox makes root fetch a file of the pilot",
		Tried:   "an output file that is a link to the pool's password, which must not arrive at the access point",
		Ways:    []Way{without(Identity, Beneath)},
		Outside: true,
	},
	{
		Name:    LootBelow,
		Threat:  "A symbolic link in the middle of a path does the same",
		Tried:   "an output file below a directory that is a link to that of the password",
		Ways:    []Way{without(Identity, Beneath)},
		Outside: true,
	},
	{
		Name:    Pipe,
		Threat:  "A named pipe among the output files makes the starter wait for ever",
		Tried:   "an output file that is a named pipe",
		Ways:    []Way{without(Kinds, NoWaiting)},
		Outside: true,
	},
	{
		Name:    CutOff,
		Threat:  "A job that is to have no network (`docker_network_type = none`) reaches somebody",
		Tried:   "makes sockets of all families and kinds, and a ring of io_uring",
		Ways:    []Way{without(NoNetwork)},
		Outside: true,
	},
	{
		Name:    StopSignal,
		Threat:  "The image's `STOPSIGNAL` stops nothing, so the next job waits for the pod's grace period",
		Tried:   "the image names `SIGUSR2`, and the test checks whether its container had to be killed",
		Ways:    []Way{without(AllSignals, Dismissal)},
		Outside: true,
	},
	{
		Name:    Survivors,
		Threat:  "Processes outlive their job",
		Tried:   "leaves processes that have left session and parent, ignore signals, are stopped, or fork for ever",
		Ways:    []Way{without(Sweep, DeadMan)},
		Outside: true,
	},
	{
		Name:    Orphans,
		Threat:  "A job outlives its starter",
		Tried:   "the test kills the starter",
		Ways:    []Way{without(DeadMan)},
		Outside: true,
	},
	{
		Name:    LeftBehind,
		Threat:  "A job finds what another job had in shared memory",
		Tried:   "leaves a file in `/dev/shm` and System V shared memory; the next job looks for them",
		Ways:    []Way{without(Leftovers, MakeWay)},
		Outside: true,
	},
	{
		Name:   "neighbour-signal",
		Threat: "A job kills the job of another slot, perhaps by a pattern (`pkill`)",
		Tried:  "signals all processes whose arguments match",
		Ways:   []Way{without(SlotUsers, Namespace).in(hasRoot), without(Namespace).in(rootless)},
		Victim: true,
	},
	{
		Name:   "neighbour-process",
		Threat: "A job reads memory and files of the job of another slot",
		Tried:  "as with the wrapper",
		Ways:   []Way{without(SlotUsers, Namespace).in(hasRoot), without(Namespace).in(rootless)},
		Victim: true,
	},
	{
		Name:   "neighbour-files",
		Threat: "A job reads the sandbox of another slot",
		Tried:  "reads a file in all sandboxes",
		Ways:   []Way{without(SlotUsers).in(hasRoot), without(SandboxMode).in(hasRoot), without(OneContainer).in(rootless)},
		Victim: true,
	},
	{
		Name:   "neighbour-memory",
		Threat: "A job reads the shared memory of another slot's job",
		Tried:  "opens the other job's file in `/dev/shm` and attaches its System V segment, both with mode 0600",
		Ways:   []Way{without(SlotUsers).in(hasRoot), without(OneContainer).in(rootless)},
		Victim: true,
	},
	{
		Name:    Behind,
		Threat:  "A job whose starter was killed is still alive when the next job, perhaps another owner's, gets its sandbox and tokens",
		Tried:   "waits for the next sandbox and reads it; the test kills the starter, and stops the wrapper so that it does not notice",
		Ways:    []Way{without(Vacant)},
		Outside: true,
		Alone:   true,
	},
	{
		Name:    ForkBomb,
		Threat:  "A fork bomb takes the processes that the neighbours' starters and the pilot need, and they die",
		Tried:   "starts processes until the pod has room for none; the pod has room for twice as many as a job may have",
		Ways:    []Way{without(TaskLimit)},
		Outside: true,
		Alone:   true,
	},
	{
		Name:    HookLoot,
		Threat:  "The job makes a hook of the site read a file of the pilot",
		Tried:   "a symbolic link to the pool's password, at the path from which the exit hook reads the job's notes",
		Ways:    []Way{without(HookUser).in(hasRoot), without(Confined).in(rootless)},
		Outside: true,
	},
	{
		Name:    HookRuns,
		Threat:  "The job makes a hook of the site run its commands",
		Tried:   "`BASH_ENV` in the job's environment names one of its files, and the hook is a script for bash",
		Ways:    []Way{without(HookEnviron)},
		Outside: true,
	},
	{
		Name:   "hook-process",
		Threat: "The job enters the pilot container through a hook that runs at the same time as the same user",
		Tried:  "reads its memory and files, as with the wrapper",
		Ways:   []Way{without(HookGroup, Namespace).in(hasRoot), without(Namespace).in(rootless)},
	},
	{
		Name:   "ssh-server",
		Threat: "The job reads memory and files of the ssh server by which its owner logs in, or controls it",
		Tried:  "the same, while somebody is logged in",
		Ways:   []Way{without(VisitUser, Namespace).in(hasRoot), without(Namespace).in(rootless)},
	},
	{
		Name:   "ssh-stranger",
		Threat: "Somebody who is not its owner logs in to a job",
		Tried:  "asks the pod's starters for a key to log in (`START_SSHD`), over the pod's network",
		Ways:   []Way{without(CommandKeys, OwnerOnly)},
	},
	{
		Name:   "starter-socket",
		Threat: "The job pretends to be condor_shared_port at the starter's abstract socket, which all containers of the pod can reach",
		Tried:  "connects to it and passes a connection, on which the starter must not answer",
		Ways:   []Way{without(SocketPeer)},
		In:     hasRoot,
		Else:   "not held off there: the job is the starter's user; on the connection it needs a key",
	},
	{
		Name:   "chirp-cookie",
		Threat: "A job speaks to another slot's shadow through that slot's chirp proxy, which it reaches over the pod's network",
		Tried:  "guesses the cookie, and asks for an attribute of the job",
		Ways:   []Way{without(Cookie)},
	},
	{
		Name:    SitePlugin,
		Threat:  "A file transfer plugin of the site reads a file of the pilot in place of the job's credentials, and sends it where the job says",
		Tried:   "makes `.condor_creds` itself, with a symbolic link to the pool's password, and sends an output file to a URL",
		Ways:    []Way{without(PluginUser).in(hasRoot), without(Confined).in(rootless)},
		Outside: true,
	},
	{
		Name:   PluginPrefix + "root",
		Threat: "A file transfer plugin that the job brings becomes root in the pilot container, where it runs",
		Tried:  "asks for root's ids (`setresuid`)",
		Ways:   []Way{without(PluginUser)},
		In:     hasRoot,
		Else:   "nobody there is root",
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "signal",
		Threat: "The plugin stops or kills starter or daemons",
		Tried:  "signals each of them",
		Ways:   []Way{without(PluginUser).in(hasRoot), without(JobPlugins, Confined).in(rootless)},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "pry-pilot",
		Threat: "The plugin reads their memory and files",
		Tried:  "`ptrace`, and `/proc/PID/` `environ`, `mem`, `fd`, `root`, `cwd`",
		Ways:   []Way{without(PluginUser).in(hasRoot), without(JobPlugins, Confined).in(rootless)},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "token",
		Threat: "The plugin takes the pod's token, which is in its file system",
		Tried:  "reads it where the kubelet puts it",
		Ways:   []Way{without(PluginUser).in(hasRoot), without(JobPlugins, Confined).in(rootless)},
		Plugin: true,
	},
	{
		Name:   PluginPrefix + "neighbour-files",
		Threat: "The plugin reads the sandbox of another slot",
		Tried:  "reads a file in all sandboxes",
		Ways: []Way{
			without(SlotUsers).in(hasRoot), without(SandboxMode).in(hasRoot), without(PluginUser).in(hasRoot),
			without(OneContainer, JobPlugins, Confined).in(rootless),
		},
		Plugin: true,
		Victim: true,
	},
	{
		Name:   PluginPrefix + "environment",
		Threat: "The plugin learns what the site keeps in the pilot's environment",
		Tried:  "looks at its own",
		Ways:   []Way{without(JobPlugins, PluginEnviron)},
		Plugin: true,
	},
	{
		Name:    PluginFlood,
		Threat:  "The plugin makes the starter run out of memory",
		Tried:   "writes 256 MiB to its standard output, and the test looks at the starter's peak memory",
		Ways:    []Way{without(JobPlugins, PluginOutput)},
		Plugin:  true,
		Outside: true,
	},
	{
		Name:    PluginSurvivors,
		Threat:  "A process that the plugin started outlives it",
		Tried:   "starts a process in a session of its own, for which the test looks",
		Ways:    []Way{without(JobPlugins, PluginRemains), without(PluginUser).in(hasRoot)},
		Plugin:  true,
		Outside: true,
	},
}
