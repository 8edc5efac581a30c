package attacks

var wrapperDefences = []Defence{
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
		Name: NoNetwork,
		What: "the launcher puts a job without network under a filter of system calls",
		Changes: []Change{{
			File: "wrapper/agent/launch.go",
			Old:  `if j.Spec.NoNetwork {`,
			New:  `if j.Spec.NoNetwork && false {`,
		}},
	},
	{
		Name: User,
		What: "the payload's real, effective and saved user and group are its own; the launcher checks this again before it starts the payload",
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
		What: "the wrapper removes its own variables from the payload's environment",
		Changes: []Change{{
			File: "wrapper/agent/environ.go",
			Old:  "e.nonce = value\n",
			New:  "e.nonce = value\n\t\t\te.image = append(e.image, entry)\n",
		}},
	},
	{
		Name: GoSettings,
		What: "the wrapper is static, and executes itself again without the variables that change Go's runtime",
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
		}, {
			File: "wrapper/agent/control.go",
			Old:  `c.temporarySocket(), 0o600)`,
			New:  `c.temporarySocket(), 0o606)`,
		}},
	},
	{
		Name: Peer,
		In:   hasRoot,
		What: "the wrapper asks the kernel who connects, and accepts only root",
		Changes: []Change{{
			File: "wrapper/agent/conn.go",
			Old:  `return uid == 0 || uid == os.Geteuid()`,
			New:  `return uid >= 0 || uid == os.Geteuid()`,
		}},
	},
	{
		Name: DeadMan,
		Node: true,
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
		What: "the wrapper treats every signal as the image's `STOPSIGNAL`, and leaves",
		Changes: []Change{{
			File: "wrapper/agent/stop.go",
			Old:  "\t\tif !notStopping[sig] {\n",
			New:  "\t\tif !notStopping[sig] && sig > lastSignal {\n",
		}},
	},
}
