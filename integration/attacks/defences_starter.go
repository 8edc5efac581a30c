package attacks

var starterDefences = []Defence{
	{
		Name: Identity,
		In:   hasRoot,
		What: "the starter touches the sandbox with the payload's user and groups (`setfsuid`)",
		Changes: []Change{{
			File: "sandbox/beneath/owner.go",
			Old:  "func (o Owner) Do(fn func() error) error {\n\tif !o.Switches() {\n\t\treturn fn()",
			New:  "func (o Owner) Do(fn func() error) error {\n\tif true {\n\t\treturn fn()",
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
			File: "sandbox/jobfiles/expand.go",
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
		In:   hasRoot,
		What: "each payload container of a pod has a user of its own",
		Changes: []Change{{
			File: "k8sexec/lease.go",
			Old:  "id := l.backend.opt.BaseUID + l.index\n",
			New:  "id := l.backend.opt.BaseUID\n",
		}, {
			// It takes what another slot's job has for that of an earlier one then.
			File: "starter/activation/start.go",
			Old:  `stale, err := a.job.Sandbox.RemoveStale(ctx)`,
			New:  `stale, err := []string(nil), error(nil)`,
		}},
	},
	{
		Name: Sweep,
		Node: true,
		What: "the starter kills all processes of the payload's user when the job has ended",
		Changes: []Change{{
			File: "starter/payloadrun/container.go",
			Old:  `if c == nil || c.occupancy == vacant {`,
			New:  `if true {`,
		}},
	},
	{
		Name: Dismissal,
		What: "the starter tells the wrapper of the container that was to leave, whatever signal the runtime sends",
		Changes: []Change{{
			File: "k8sexec/await.go",
			Old:  "return client.Leave(waiting)\n",
			New:  "return waiting.Err()\n",
		}},
	},
	{
		Name:   Secrets,
		What:   "no program of the pod has a secret among its arguments",
		Beside: []string{"sh", "-c", `exec sh -c "read line" careless "$(cat /etc/podstarter/credentials/pool_password)"`},
	},
	{
		Name: Vacant,
		Node: true,
		What: "the starter takes a payload container, and makes a sandbox for its user, only when no process of an earlier job is alive: it kills those that it sees; else the wrapper must confirm, or the container is made anew",
		Changes: []Change{{
			File: "k8sexec/lease.go",
			Old:  `if err := l.vacate(ctx); err != nil {`,
			New:  `if err := error(nil); err != nil {`,
		}},
	},
	{
		Name:   TaskLimit,
		Node:   true,
		What:   "a job with more processes and threads than the site allows is killed, and held",
		Config: "POD_STARTER_MAX_PROCESSES = 0",
	},
	{
		Name: JobPlugins,
		In:   rootless,
		What: "plugins that jobs bring are refused if the pilot is not root, because they would run as the pilot's user",
		Changes: []Change{{
			File: "starter/transfer/plugins.go",
			Old:  "if !f.Settings.SeparateUsers() {\n\t\treturn plugin.Refuse",
			New:  "if !f.Settings.SeparateUsers() {\n\t\treturn plugin.Allow",
		}},
	},
	{
		Name: Confined,
		In:   rootless,
		What: "if the pilot is not root, the kernel leaves plugins and hooks only the job's files, those of the pilot's image, and HTCondor's configuration (Landlock)",
		Changes: []Change{{
			File: "starter/hostprog/confinement.go",
			Old:  "if j.Host.separate {\n\t\treturn confinement{}, nil",
			New:  "if true {\n\t\treturn confinement{}, nil",
		}},
	},
	{
		Name: PluginUser,
		In:   hasRoot,
		What: "plugins run as the payload's user, in a group of their own",
		Changes: []Change{{
			File: "starter/hostprog/host.go",
			Old:  `As: as, group: pluginGroup`,
			New:  `As: sandbox.Self(), group: pluginGroup`,
		}},
	},
	{
		Name: PluginEnviron,
		What: "a plugin that the job brings gets only a few harmless variables of the pilot's environment",
		Changes: []Change{{
			File: "condor/plugin/environ.go",
			Old:  `p.FromJob && !forJobs(name)`,
			New:  `p.FromJob && !forJobs(name) && false`,
		}},
	},
	{
		Name: PluginOutput,
		What: "the starter keeps only the beginning and the end of a plugin's output",
		Changes: []Change{{
			File: "starter/hostprog/outcome.go",
			Old:  `maxUntrustedOutput = 128 << 10`,
			New:  `maxUntrustedOutput = 1 << 30`,
		}},
	},
	{
		Name: PluginRemains,
		What: "when a plugin has ended, the starter kills the processes of its user and group",
		Changes: []Change{{
			File: "starter/hostprog/host.go",
			Old:  `if e := left.kill(ctx); e != nil && err == nil {`,
			New:  `if e := error(nil); e != nil && err == nil {`,
		}},
	},
	{
		Name: HookUser,
		In:   hasRoot,
		What: "hooks run as the payload's user",
		Changes: []Change{{
			File: "starter/hostprog/program.go",
			Old:  `if p.As.Switches() {`,
			New:  `if p.As.Switches() && p.group != 0 {`,
		}},
	},
	{
		Name: HookGroup,
		In:   hasRoot,
		What: "hooks run in a group that no payload is in, so that no payload may trace them",
		Changes: []Change{{
			File: "starter/hostprog/program.go",
			Old:  `Uid: uint32(p.As.UID), Gid: nobodysGroup}`,
			New:  `Uid: uint32(p.As.UID), Gid: uint32(p.As.GID)}`,
		}},
	},
	{
		Name: HookEnviron,
		What: "hooks get the starter's environment and the variables that tell a job where it is, and nothing that the job's owner has chosen",
		Changes: []Change{{
			File: "starter/payloadrun/job.go",
			Old:  "env := job.NewEnv()\n\tif err := job.Publish",
			New:  "env := job.NewEnv()\n\t_ = env.MergeAd(j.Ad)\n\tif err := job.Publish",
		}},
	},
	{
		Name: VisitUser,
		In:   hasRoot,
		What: "the ssh server by which a job's owner logs in is a process of its own, whose user is no payload's",
		Changes: []Change{{
			File: "sshtojob/host.go",
			Old:  `const nobody = 65534`,
			New:  `const nobody = 10001`,
		}},
	},
	{
		Name: CommandKeys,
		What: "the starter accepts commands only with the key of a session",
		Changes: []Change{{
			File: "internal/cedar/server.go",
			Old:  `if r.level != Allow {`,
			New:  `if r.level != Allow && false {`,
		}},
	},
	{
		Name: OwnerOnly,
		What: "the starter accepts commands of the owner's tools only with the key that it made for the owner",
		Changes: []Change{{
			File: "starter/visitors/sessions.go",
			Old:  `user == "" || c.User != user {`,
			New:  `c.User != user && false {`,
		}},
	},
	{
		Name: SocketPeer,
		In:   hasRoot,
		What: "the starter asks the kernel who connects to its abstract socket, and accepts only HTCondor's own users",
		Changes: []Change{{
			File: "starter/endpoint/endpoint.go",
			Old:  `return !slices.Contains(trusted, int(uid)) }`,
			New:  `return !slices.Contains(trusted, int(uid)) && false }`,
		}},
	},
	{
		Name: Cookie,
		What: "a client of the chirp proxy must first send a secret word from the job's sandbox",
		Changes: []Change{{
			File: "condor/chirp/session.go",
			Old:  `[]byte(x.o.Cookie)) == 1:`,
			New:  `[]byte(x.o.Cookie)) >= 0:`,
		}},
	},
}
