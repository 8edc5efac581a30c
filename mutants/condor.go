package main

func shadowTests(run string) []tests    { return []tests{{"condor/shadow", run}} }
func pluginTests(run string) []tests    { return []tests{{"condor/plugin", run}} }
func condorJobTests(run string) []tests { return []tests{{"condor/job", run}} }

// Mistakes in the talk with HTCondor's daemons, its plugins, logs and knobs.
var condorMutants = []mutant{
	{
		Name:  "an exception of a Java program counts as success",
		File:  "condor/java/ending.go",
		Old:   `e.Status, e.Said = syscall.WaitStatus(syscall.SIGTERM), `,
		New:   `e.Status, e.Said = e.Status, `,
		Tests: []tests{{"condor/java", "TestEndingOf"}},
	},
	{
		Name:  "the PATH of a node in a pod begins with a directory of the pilot",
		File:  "condor/job/node.go",
		Old:   "\tif s.InPod {\n\t\treturn nil\n\t}\n",
		New:   "",
		Tests: condorJobTests("TestNodeEnvironment"),
	},
	{
		Name:  "the lease of a job whose shadow came back counts from before",
		File:  "condor/shadow/link.go",
		Old:   "\tc.stamp(begin)\n",
		New:   "\t_ = begin\n",
		Tests: shadowTests("TestResume$"),
	},
	{
		Name:  "a stream that lost nothing cannot be reopened",
		File:  "condor/shadow/stream.go",
		Old:   `if err == nil && size < s.offset {`,
		New:   `if err == nil && size <= s.offset {`,
		Tests: shadowTests("TestStreamOutput"),
	},
	{
		Name:  "the connection for a Kerberos credential stays open",
		File:  "condor/shadow/usercred.go",
		Old:   "\tdefer s.Close()\n",
		New:   "",
		Tests: shadowTests("TestKerberosConnection"),
	},
	{
		Name:  "the startd gets secrets in the clear",
		File:  "condor/startd/update.go",
		Old:   `cedar.AdOptions{OmitPrivate: true}`,
		New:   `cedar.AdOptions{OmitPrivate: false}`,
		Tests: []tests{{"condor/startd", "TestUpdates"}},
	},
	{
		Name:  "the window of statistics drifts",
		File:  "condor/job/statistics.go",
		Old:   `s.moved = time.Unix(now.Unix()-since%s.quantum, 0)`,
		New:   `s.moved = now`,
		Tests: condorJobTests("TestStatisticsWindow"),
	},
	{
		Name:  "an exit hook has no time limit",
		File:  "condor/job/hooks.go",
		Old:   "\t\tif hook == HookJobExit {\n",
		New:   "\t\tif hook == HookPrepareJob {\n",
		Tests: condorJobTests("TestReadHooks"),
	},
	{
		Name:  "a plugin that cannot be executed is tried for ever",
		File:  "condor/plugin/many.go",
		Old:   `if try < executeTries && passing(err) {`,
		New:   `if passing(err) {`,
		Tests: pluginTests("TestNotExecuted"),
	},
	{
		Name:  "a plugin that could not be asked for want of memory is forgotten",
		File:  "condor/plugin/discover.go",
		Old:   "\t\tif passing(err) {\n\t\t\ta.Asked = 0 // not to be remembered\n\t\t}\n",
		New:   "",
		Tests: pluginTests("TestPassingTroubleIsNotCached"),
	},
	{
		Name:  "chirp serves so many clients in all, not at a time",
		File:  "condor/chirp/session.go",
		Old:   "\tdefer func() { <-s.clients }()\n",
		New:   "",
		Tests: chirpTests("TestClientsComeAndGo"),
	},
	{
		Name:  "a log that was set aside stays open",
		File:  "condor/daemonlog/file.go",
		Old:   "\tdefer func() { _ = unix.Close(old) }() // releases",
		New:   "\tdefer func() { _ = old }() // releases",
		Tests: []tests{{"condor/daemonlog", "TestRotation$"}},
	},
	{
		Name:  "each file that condor_tail shows may have all of the bytes",
		File:  "condor/owner/peek.go",
		Old:   "\t\tif left >= 0 {\n\t\t\tleft -= size\n\t\t}\n",
		New:   "",
		Tests: []tests{{"condor/owner", "TestApportion"}},
	},
	{
		Name:  "a line for the event log is longer than its room",
		File:  "condor/shadow/report.go",
		Old:   `if len(text) > maxGeneric {`,
		New:   `if len(text) > maxGeneric+1 {`,
		Tests: shadowTests("TestNoReply"),
	},
	{
		Name:  "a connection for a question to the startd stays open",
		File:  "condor/startd/reactivate.go",
		Old:   "\tdefer s.Close()\n",
		New:   ``,
		Tests: []tests{{"condor/startd", "TestMayReactivate"}},
	},
	{
		Name:  "a group is refused to files that return",
		File:  "condor/job/refusal.go",
		Old:   `return !i.FileTransfer && ad`,
		New:   `return ad`,
		Tests: condorJobTests("TestRefused"),
	},
	{
		Name:  "a wish that is false is refused",
		File:  "condor/job/refusal.go",
		Old:   `return ad.BoolOr(name, false) }`,
		New:   `_, err := ad.GetBool(name); return err == nil }`,
		Tests: condorJobTests("TestRefused"),
	},
	{
		Name:  "a manifest may be wherever the job says",
		File:  "condor/job/manifest.go",
		Old:   `!filepath.IsLocal(dir) || `,
		New:   ``,
		Tests: condorJobTests("TestRefused"),
	},
}
