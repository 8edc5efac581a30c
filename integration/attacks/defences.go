package attacks

import "slices"

// A Change replaces a snippet of a source file, which must be there exactly once.
type Change struct {
	File     string // from the top of the project
	Old, New string
}

// A Defence is one thing that stops attacks.
type Defence struct {
	Name string
	What string // what it is, for docs/developer/threats.md
	In   []Mode // the modes that have it; nil: all
	// Node: the node's kernel and container runtime do it for the pod, or it goes by what
	// they show of processes and control groups.
	Node bool
	// How it is switched off; any of these.
	Changes []Change
	Pod     func(pod map[string]any) // edits the pod's manifest
	Pilot   []string                 // a command of the pilot container
	Beside  []string                 // one that runs there all the time, with an input that does not end
	Config  string                   // a line of HTCondor's configuration
}

// Defences of the pod's manifest and configuration.
const (
	Escalation   = "allowPrivilegeEscalation"
	FewerRights  = "fewer capabilities than the pilot"
	ReadOnly     = "read-only wrapper"
	NoToken      = "no token in payload containers"
	ClosedParent = "closed control volume"
	SandboxMode  = "sandbox mode"
	Namespace    = "a PID namespace for each container"
	OneContainer = "one payload container a pod"
)

// Defences of the wrapper.
const (
	NoNewPrivs    = "no_new_privs"
	User          = "user for good"
	NoRights      = "no capabilities"
	Groups        = "no foreign groups"
	Descriptors   = "no open files"
	Environment   = "own environment"
	GoSettings    = "settings of Go set aside"
	ClosedControl = "closed control directory"
	Peer          = "peer credentials"
	DeadMan       = "dead-man's switch"
	Leftovers     = "shared memory emptied"
	MakeWay       = "way made for the next job"
	AllSignals    = "every signal but a few means leave"
	NoNetwork     = "no sockets but Unix ones without network"
)

// Defences of the starter.
const (
	Identity  = "payload's identity for files"
	Beneath   = "paths beneath the sandbox"
	Kinds     = "pipes and sockets left out"
	NoWaiting = "opening without waiting"
	SlotUsers = "a user for each slot"
	Sweep     = "sweep at the end"
	Dismissal = "dismissal by request"
	Secrets   = "secrets in files and pipes alone"

	HookUser    = "payload's user for hooks"
	HookGroup   = "a group of their own for hooks"
	HookEnviron = "nothing of the job's environment for hooks"
	VisitUser   = "a user of its own for the ssh server"
	CommandKeys = "keys for commands"
	OwnerOnly   = "tools for the job's owner alone"
	SocketPeer  = "HTCondor's users alone at the starter's socket"
	Vacant      = "nothing of an earlier job alive when a sandbox is made"
	TaskLimit   = "a limit of processes"
	Cookie      = "cookie of the chirp proxy"

	JobPlugins    = "no plugins of jobs"
	Confined      = "files kept from what runs for a job"
	PluginUser    = "payload's user for plugins"
	PluginEnviron = "little environment for plugins of jobs"
	PluginOutput  = "bound on the output of plugins"
	PluginRemains = "nothing left of plugins"
)

// Defences is the table.
var Defences = slices.Concat(podDefences, wrapperDefences, starterDefences)
