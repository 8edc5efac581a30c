package attacks

import "podstarter/integration/harness"

var podDefences = []Defence{
	{
		Name: Escalation,
		Node: true,
		What: "`allowPrivilegeEscalation: false` in the pod",
		Pod:  payloads(func(c map[string]any) { security(c)["allowPrivilegeEscalation"] = true }),
	},
	{
		Name: FewerRights,
		Node: true,
		In:   hasRoot,
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
		Node: true,
		What: "payload containers mount the wrapper's volume read-only; the starter refuses a pod in which they do not",
		Pod: payloads(func(c map[string]any) {
			for _, m := range list(c, "volumeMounts") {
				if m["name"] == binVolume {
					delete(m, "readOnly")
				}
			}
		}),
		Changes: []Change{{
			File: "k8sexec/audit/check_volumes.go",
			Old:  `at, ok := placeOf(c, c.Command[0]); ok && !at.readOnly {`,
			New:  `at, ok := placeOf(c, c.Command[0]); ok && !at.readOnly && false {`,
		}},
	},
	{
		Name: NoToken,
		Node: true,
		What: "`automountServiceAccountToken: false`; the token is a volume of the pilot container",
		Pod:  func(pod map[string]any) { object(pod, "spec")["automountServiceAccountToken"] = true },
	},
	{
		Name:  ClosedParent,
		What:  "the volume with the control directories has mode 0700",
		Pilot: []string{"chmod", "0755", controlDirectory},
		// Without root on the pilot's side both make sure of it once more.
		Changes: []Change{{
			File: "wrapper/agent/control.go",
			Old:  "if err := peer.admit(int(dir.Fd()), 0o700); err != nil {\n\t\treturn fmt.Errorf(\"close directory",
			New:  "if err := error(nil); err != nil {\n\t\treturn fmt.Errorf(\"close directory",
		}, {
			File: "k8sexec/audit/check_rootless.go",
			Old:  `stat.Uid != 0 || mode&0o027 != 0 ||`,
			New:  `stat.Uid != 0 ||`,
		}},
	},
	{
		Name:   SandboxMode,
		In:     hasRoot,
		What:   "the sandbox has mode 0700 (`JOB_EXECDIR_PERMISSIONS`)",
		Config: "JOB_EXECDIR_PERMISSIONS = world",
	},
	{
		Name: Namespace,
		Node: true,
		In:   []Mode{harness.Unshared, harness.Rootless},
		What: "`shareProcessNamespace: false`; if the pilot is not root, the starter refuses a pod without it, and otherwise a pod of mode unshared without it is one of mode shared",
		Pod:  func(pod map[string]any) { object(pod, "spec")["shareProcessNamespace"] = true },
		Changes: []Change{{
			File: "k8sexec/audit/check_rootless.go",
			Old:  `shares != nil && *shares ||`,
			New:  `shares != nil && *shares && false ||`,
		}},
	},
	{
		Name: OneContainer,
		In:   rootless,
		What: "a pilot that is not root has one payload container, because its jobs all have its user ID; the starter refuses a second one",
		Changes: []Change{{
			File: "k8sexec/audit/check_rootless.go",
			Old:  `if len(b.Options.Containers) > 1 {`,
			New:  `if len(b.Options.Containers) > 9 {`,
		}, {
			File: "starter/settings/settings.go",
			Old:  `case len(s.Containers) > 1:`,
			New:  `case len(s.Containers) > 9:`,
		}, {
			// It takes what another slot's job has for that of an earlier one then.
			File: "sandbox/create.go",
			Old:  `err = beneath.Empty(ctx, s.execute)`,
			New:  `err = beneath.RemoveAll(ctx, s.execute, name)`,
		}, {
			File: "sandbox/sandbox.go",
			Old:  `remove = func() error { return emptyDir(ctx, filepath.Dir(s.dir)) }`,
			New:  `_, _ = emptyDir, filepath.Dir`,
		}},
	},
}
