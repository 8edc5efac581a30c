package main

// Mistakes about jobs without network, and about directories of the image that jobs get anew.
var networkMutants = []mutant{
	{
		Name:  "a socketpair of any family is allowed without network",
		File:  "payload/nonetwork/program.go",
		Old:   `Jt: 1, K: m.socketpair}`,
		New:   `Jt: 0, K: m.socketpair}`,
		Tests: []tests{{"payload/nonetwork", "TestFilter"}},
	},
	{
		Name:  "system calls of x32 are taken for those of amd64",
		File:  "payload/nonetwork/program.go",
		Old:   `if m.foreignFrom != 0 {`,
		New:   `if m.foreignFrom != 0 && false {`,
		Tests: []tests{{"payload/nonetwork", "TestFilter"}},
	},
	{
		Name:  "io_uring works without network",
		File:  "payload/nonetwork/program.go",
		Old:   `[]uint32{m.ringSetup, m.ringEnter, m.ringRegister, m.addKey,`,
		New:   `[]uint32{m.ringEnter, m.ringRegister, m.addKey,`,
		Tests: []tests{{"payload/nonetwork", "TestFilter"}},
	},
	{
		Name:  "the filter is not installed",
		File:  "payload/nonetwork/apply.go",
		Old:   `unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,`,
		New:   `unix.RawSyscall(unix.SYS_GETPID, unix.SECCOMP_SET_MODE_FILTER, flags,`,
		Tests: []tests{{"payload/nonetwork", "TestApply"}, {agentPackage, "TestNoNetwork"}},
	},
	{
		Name:  "a payload that is to have no network gets one",
		File:  "wrapper/agent/launch.go",
		Old:   `if j.Spec.NoNetwork {`,
		New:   `if j.Spec.NoNetwork && false {`,
		Tests: agentTests("TestNoNetwork"),
	},
	{
		Name:  "a session beside a payload without network has one",
		File:  "wrapper/agent/exec.go",
		Old:   `spec.NoNetwork = spec.NoNetwork || a.run.spec.NoNetwork`,
		New:   `spec.NoNetwork = spec.NoNetwork || false`,
		Tests: agentTests("TestNoNetworkBeside"),
	},
	{
		Name:  "what is started beside the job's program has a network",
		File:  "starter/payloadrun/container.go",
		Old:   `spec.NoNetwork = spec.NoNetwork || c.NoNetwork`,
		New:   `spec.NoNetwork = spec.NoNetwork || false`,
		Tests: []tests{{"starter/payloadrun", "TestStartsWithoutNetwork"}},
	},
	{
		Name:  "a network that the site does not have is the pod's",
		File:  "starter/payloadrun/network.go",
		Old:   `case kind == "", strings.EqualFold(kind, "host"),`,
		New:   `case kind != "none", strings.EqualFold(kind, "host"),`,
		Tests: []tests{{"starter/payloadrun", "TestNoNetwork"}},
	},
	{
		Name:  "an empty directory that a link replaced is gone for good",
		File:  "wrapper/agent/link.go",
		Old:   `unix.Unlinkat(dir, name, 0); err != nil || l.replaced == nil {`,
		New:   `unix.Unlinkat(dir, name, 0); err != nil || l.replaced != nil {`,
		Tests: agentTests("TestLink"),
	},
	{
		Name:  "nobody can enter the directories above a link",
		File:  "wrapper/agent/link.go",
		Old:   `openNew(dir, part, &how, err == nil)`,
		New:   `openNew(dir, part, &how, false)`,
		Tests: agentTests("TestLink"),
	},
	{
		Name:  "a directory of mount_under_scratch may be where the sandbox is",
		File:  "starter/payloadrun/scratch.go",
		Old:   `strings.HasPrefix(dir+"/", scratch+"/") {`,
		New:   `strings.HasPrefix(dir+"/", scratch+"//") {`,
		Tests: []tests{{"starter/payloadrun", "TestUnderScratch"}},
	},
	{
		Name:  "a knob that has no effect is not named",
		File:  "starter/settings/notgiven.go",
		Old:   `if value == "" || w.harmless != nil`,
		New:   `if value != "" || w.harmless != nil`,
		Tests: []tests{{"starter/settings", "TestKnobsNotGiven"}},
	},
}
