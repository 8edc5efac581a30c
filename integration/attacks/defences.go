package attacks

// A Change replaces a snippet of a source file, which must be there exactly once.
type Change struct {
	File     string // from the top of the project
	Old, New string
}

// A Defence is one thing that stands in the way of attacks.
type Defence struct {
	Name string
	What string // what it is, for docs/threats.md
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

	PluginUser    = "payload's user for plugins"
	PluginEnviron = "little environment for plugins of jobs"
	PluginOutput  = "bound on the output of plugins"
	PluginRemains = "nothing left of plugins"
)

// Defences is the table.
var Defences = []Defence{
	{
		Name: Escalation,
		What: "`allowPrivilegeEscalation: false` in the pod",
		Pod:  payloads(func(c map[string]any) { security(c)["allowPrivilegeEscalation"] = true }),
	},
	{
		Name: FewerRights,
		What: "the payload container lacks capabilities that the pilot has; the kernel lets nobody trace a process with more capabilities than its own",
		Pod: func(pod map[string]any) {
			var most any
			for _, c := range containers(pod) {
				if c["name"] == pilotContainer {
					most = object(security(c), "capabilities")["add"]
				}
			}
			payloads(func(c map[string]any) { object(security(c), "capabilities")["add"] = most })(pod)
		},
	},
	{
		Name: ReadOnly,
		What: "the wrapper lies on a volume that payload containers mount read-only; the starter refuses a pod that does not",
		Pod: payloads(func(c map[string]any) {
			for _, m := range list(c, "volumeMounts") {
				if m["name"] == binVolume {
					delete(m, "readOnly")
				}
			}
		}),
		Changes: []Change{{
			File: "k8sexec/check_volumes.go",
			Old:  `at, ok := placeOf(c, c.Command[0]); ok && !at.readOnly {`,
			New:  `at, ok := placeOf(c, c.Command[0]); ok && !at.readOnly && false {`,
		}},
	},
	{
		Name: NoToken,
		What: "`automountServiceAccountToken: false`; the token is a volume of the pilot container",
		Pod:  func(pod map[string]any) { object(pod, "spec")["automountServiceAccountToken"] = true },
	},
	{
		Name:  ClosedParent,
		What:  "the volume with the control directories has mode 0700",
		Pilot: []string{"chmod", "0755", controlDirectory},
	},
	{
		Name:   SandboxMode,
		What:   "the sandbox has mode 0700 (`JOB_EXECDIR_PERMISSIONS`)",
		Config: "JOB_EXECDIR_PERMISSIONS = world",
	},
	{
		Name: NoNewPrivs,
		What: "the wrapper sets `no_new_privs` before it becomes the payload",
		Changes: []Change{{
			File: "wrapper/agent/identity.go",
			Old:  `unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)`,
			New:  `unix.Prctl(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)`,
		}},
	},
	{
		Name: User,
		What: "the payload's real, effective and saved user and group are its own, and that is looked at again before it starts",
		Changes: []Change{{
			File: "wrapper/agent/identity.go",
			Old:  `unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid)`,
			New:  `unix.RawSyscall(unix.SYS_SETRESUID, 0, uid, 0)`,
		}, {
			File: "wrapper/agent/identity.go",
			Old:  `unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid)`,
			New:  `unix.RawSyscall(unix.SYS_SETRESGID, 0, gid, 0)`,
		}, {
			File: "wrapper/agent/identity.go",
			Old:  `ids != [6]uint32{uid, uid, uid, gid, gid, gid} {`,
			New:  `ids != [6]uint32{0, uid, 0, 0, gid, 0} {`,
		}},
	},
	{
		Name: NoRights,
		What: "the wrapper empties the payload's capability sets, the bounding set included",
		Changes: []Change{{
			File: "wrapper/agent/identity.go",
			Old:  `if err := dropBoundingSet(); err != nil {`,
			New:  `if err := error(nil); err != nil {`,
		}, {
			File: "wrapper/agent/identity.go",
			Old:  "if err := dropCapabilities(); err != nil {\n\t\treturn err\n\t}\n\treturn checkIdentity(s.UID",
			New:  "return checkIdentity(s.UID",
		}},
	},
	{
		Name: Groups,
		What: "the wrapper replaces the supplementary groups, which the runtime takes from the image's `/etc/group`",
		Changes: []Change{{
			File: "wrapper/agent/identity.go",
			Old:  `unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {`,
			New:  `unix.RawSyscall(unix.SYS_GETPID, uintptr(len(groups)), uintptr(first), 0); errno != 0 {`,
		}},
	},
	{
		Name: Descriptors,
		What: "the launcher marks what it has open as close-on-exec",
		Changes: []Change{{
			File: "wrapper/agent/launch.go",
			Old:  "unix.CloseOnExec(specFD)\n",
			New:  "\n",
		}, {
			File: "wrapper/agent/launch.go",
			Old:  "f := os.NewFile(specFD, \"job\")\n\tdefer f.Close()\n",
			New:  "f := os.NewFile(specFD, \"job\")\n\tforgotten = f\n",
		}, {
			File: "wrapper/agent/launch.go",
			Old:  "// stageError is a stage that failed.\n",
			New:  "var forgotten *os.File\n\n// stageError is a stage that failed.\n",
		}},
	},
	{
		Name: Environment,
		What: "the wrapper takes its own variables out of what it passes on",
		Changes: []Change{{
			File: "wrapper/agent/environ.go",
			Old:  "e.nonce = value\n",
			New:  "e.nonce = value\n\t\t\te.image = append(e.image, entry)\n",
		}},
	},
	{
		Name: GoSettings,
		What: "the wrapper is static, and starts itself anew without the variables that steer Go's runtime",
		Changes: []Change{{
			File: "wrapper/agent/environ.go",
			Old:  `aside, found := setRuntimeVariablesAside(environ); found {`,
			New:  `aside, found := setRuntimeVariablesAside(environ); found && false {`,
		}},
	},
	{
		Name: ClosedControl,
		What: "the wrapper gives its control directory mode 0700 and its socket 0600",
		Changes: []Change{{
			File: "wrapper/agent/control.go",
			Old:  "if err := peer.admit(int(dir.Fd()), 0o700); err != nil {\n\t\treturn nil, ",
			New:  "if err := unix.Fchmod(int(dir.Fd()), 0o777); err != nil {\n\t\treturn nil, ",
		}, {
			File: "wrapper/agent/main.go",
			Old:  `unix.Umask(0o077)`,
			New:  `unix.Umask(0)`,
		}},
	},
	{
		Name: Peer,
		What: "the wrapper asks the kernel who calls, and turns all but root away",
		Changes: []Change{{
			File: "wrapper/agent/conn.go",
			Old:  `return uid == 0 || uid == os.Geteuid()`,
			New:  `return uid >= 0 || uid == os.Geteuid()`,
		}},
	},
	{
		Name: DeadMan,
		What: "the wrapper kills all of the payload when its connection to the starter ends",
		Changes: []Change{{
			File: "wrapper/agent/loop.go",
			Old:  `a.beginSweep(0, payload.KilledLost)`,
			New:  `_ = payload.KilledLost; a.free()`,
		}, {
			File: "wrapper/agent/loop.go",
			Old:  `go c.read(a.events, a.strike)`,
			New:  `go c.read(a.events, func() {})`,
		}},
	},
	{
		Name: Leftovers,
		What: "the wrapper removes what the payload's user has in shared memory when a job has ended",
		Changes: []Change{{
			File: "wrapper/agent/sweep.go",
			Old:  `if a.uid != 0 || a.run == nil {`,
			New:  `if a.uid >= 0 || a.run == nil {`,
		}},
	},
	{
		Name: MakeWay,
		What: "before a container's first payload the wrapper ends the processes of its user and empties the shared memory",
		Changes: []Change{{
			File: "wrapper/agent/start.go",
			Old:  "if a.uid != 0 {\n\t\treturn nil\n\t}\n\tctx, cancel",
			New:  "if a.uid >= 0 {\n\t\treturn nil\n\t}\n\tctx, cancel",
		}},
	},
	{
		Name: AllSignals,
		What: "the wrapper takes every signal for the image's `STOPSIGNAL`, and leaves",
		Changes: []Change{{
			File: "wrapper/agent/stop.go",
			Old:  "\t\tif !notStopping[sig] {\n",
			New:  "\t\tif !notStopping[sig] && sig > lastSignal {\n",
		}},
	},
	{
		Name: Identity,
		What: "the starter touches the sandbox with the payload's user and groups (`setfsuid`)",
		Changes: []Change{{
			File: "sandbox/beneath/owner.go",
			Old:  "if !o.Switches() {\n\t\treturn fn()",
			New:  "if true {\n\t\treturn fn()",
		}},
	},
	{
		Name: Beneath,
		What: "no path leads out of the sandbox (`openat2`, `RESOLVE_BENEATH`)",
		Changes: []Change{{
			File: "sandbox/beneath/root.go",
			Old:  "flags |= unix.O_CLOEXEC\n\tif name == \"\" {",
			New:  "flags |= unix.O_CLOEXEC\n\tif true {\n\t\treturn unix.Openat(r.fd, name, flags, mode)\n\t}\n\tif name == \"\" {",
		}},
	},
	{
		Name: Kinds,
		What: "named pipes and sockets are not among the files to send",
		Changes: []Change{{
			File: "sandbox/expand.go",
			Old:  "case unix.S_IFSOCK, unix.S_IFIFO:\n\t\treturn nil\n",
			New:  "",
		}},
	},
	{
		Name: NoWaiting,
		What: "files are opened without waiting (`O_NONBLOCK`), and used only if they are regular ones",
		Changes: []Change{{
			File: "sandbox/beneath/file.go",
			Old:  "fd, err := r.open(\"open\", name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)\n\tif err != nil {\n\t\t// A socket",
			New:  "fd, err := r.open(\"open\", name, unix.O_RDONLY|unix.O_NOCTTY, 0)\n\tif err != nil {\n\t\t// A socket",
		}},
	},
	{
		Name: SlotUsers,
		What: "each payload container of a pod has a user of its own",
		Changes: []Change{{
			File: "k8sexec/lease.go",
			Old:  "id := l.backend.opt.BaseUID + l.index\n",
			New:  "id := l.backend.opt.BaseUID\n",
		}, {
			// It takes what another slot's job has for that of an earlier one then.
			File: "starter/start.go",
			Old:  `stale, err := a.sandbox.RemoveStale(ctx)`,
			New:  `stale, err := []string(nil), error(nil)`,
		}},
	},
	{
		Name: Sweep,
		What: "the starter kills all processes of the payload's user when the job has ended",
		Changes: []Change{{
			File: "starter/finish.go",
			Old:  `if a.swept || a.container == nil {`,
			New:  `if true {`,
		}},
	},
	{
		Name: Dismissal,
		What: "the starter tells the wrapper of the container that was to leave, whatever signal the runtime sends",
		Changes: []Change{{
			File: "k8sexec/await.go",
			Old:  "return client.Leave(ctx)\n",
			New:  "return nil\n",
		}},
	},
	{
		Name:   Secrets,
		What:   "no program of the pod has a secret among its arguments",
		Beside: []string{"sh", "-c", `exec sh -c "read line" careless "$(cat /etc/podstarter/credentials/pool_password)"`},
	},
	{
		Name: PluginUser,
		What: "plugins run as the payload's user, in a group of their own",
		Changes: []Change{{
			File: "starter/plugins.go",
			Old:  `as: as, group: pluginGroup`,
			New:  `as: sandbox.Self(), group: pluginGroup`,
		}},
	},
	{
		Name: PluginEnviron,
		What: "of the pilot's environment a job's own plugin gets a few variables that are known to be harmless",
		Changes: []Change{{
			File: "condor/plugin/environ.go",
			Old:  `p.FromJob && !forJobs(name)`,
			New:  `p.FromJob && !forJobs(name) && false`,
		}},
	},
	{
		Name: PluginOutput,
		What: "of what a plugin writes the starter keeps the beginning and the end",
		Changes: []Change{{
			File: "starter/program.go",
			Old:  `maxUntrustedOutput = 128 << 10`,
			New:  `maxUntrustedOutput = 1 << 30`,
		}},
	},
	{
		Name: PluginRemains,
		What: "when a plugin has ended, the starter kills the processes of its user and group",
		Changes: []Change{{
			File: "starter/plugins.go",
			Old:  `if e := left.kill(ctx); e != nil && err == nil {`,
			New:  `if e := error(nil); e != nil && err == nil {`,
		}},
	},
}
