package main

func activationTests(run string) []tests {
	return []tests{{"starter/payloadrun", run}, {"starter/activation/lives", run}}
}

func livesTests(run string) []tests { return []tests{{"starter/activation/lives", run}} }

// Mistakes in an activation. Tests that run whole activations must notice them.
var activationMutants = []mutant{
	{
		Name:  "a node of a parallel job waits for what the shadow never says",
		File:  "starter/activation/finish.go",
		Old:   `n != nil && n.Number > 0 {`,
		New:   `n != nil && n.Number < 0 {`,
		Tests: livesTests("TestNode"),
	},
	{
		Name:  "a node that is suspended stays",
		File:  "starter/activation/watch.go",
		Old:   `if want && a.job.Info.Node != nil {`,
		New:   `if false {`,
		Tests: livesTests("TestNode"),
	},
	{
		Name:  "a node that ignores its signal outlives an order that leaves no time",
		File:  "starter/activation/watch.go",
		Old:   "\t\t\tcut = uncut.Done()\n",
		New:   "\t\t\t_ = uncut.Done()\n",
		Tests: livesTests("TestNode"),
	},
	{
		Name:  "the records of a Java program are taken for those of its next run",
		File:  "starter/payloadrun/java.go",
		Old:   `range []string{java.StartFile, java.EndFile} {`,
		New:   `range []string{java.EndFile} {`,
		Tests: livesTests("TestJava"),
	},
	{
		Name:  "a job whose JVM failed counts as done",
		File:  "starter/activation/finish.go",
		Old:   `case a.work.run.Requeued():`,
		New:   `case a.work.run.Ordered():`,
		Tests: livesTests("TestJava"),
	},
	{
		Name:  "a sweep's error is dropped",
		File:  "starter/payloadrun/container.go",
		Old:   "\t\tc.occupancy = vacant\n\t}\n\treturn err\n",
		New:   "\t\tc.occupancy = vacant\n\t}\n\treturn nil\n",
		Tests: activationTests(""),
	},
	{
		Name:  "a hold skips the sweep",
		File:  "starter/activation/exiting.go",
		Old:   "\terr := a.work.container.Sweep(ctx)\n\ta.exitHook(ctx)\n",
		New:   "\terr := error(nil)\n\ta.exitHook(ctx)\n",
		Tests: activationTests(""),
	},
	{
		Name:  "what PostCmd left is not swept",
		File:  "starter/activation/finish.go",
		Old:   `if ran { // it may have left something`,
		New:   `if ran && false {`,
		Tests: activationTests(""),
	},
	{
		Name:  "input is retried without limit",
		File:  "starter/activation/getready.go",
		Old:   ` && try < maxInputTries:`,
		New:   `:`,
		Tests: activationTests(""),
	},
	{
		Name:  "the drain of output ignores orders",
		File:  "starter/payloadrun/streams.go",
		Old:   `ctx, release := o.UntilHard(ctx)`,
		New:   `ctx, release := o.UntilCut(ctx)`,
		Tests: activationTests(""),
	},
	{
		Name:  "a job begins whose standard files cannot be opened",
		File:  "starter/activation/start.go",
		Old:   `a.job.Rehearse(ctx, a.work.container, spec); err != nil {`,
		New:   `a.job.Rehearse(ctx, a.work.container, spec); err != nil && false {`,
		Tests: activationTests("Rehearsal"),
	},
	{
		Name:  "data that others write into the job's pipe counts as the job's",
		File:  "starter/payloadrun/streams.go",
		Old:   `unix.Read(int(fd), b[:min(len(b), p.left)])`,
		New:   `unix.Read(int(fd), b)`,
		Tests: activationTests(""),
	},
	{
		Name:  "a job that was ordered to end is held for lack of memory",
		File:  "starter/activation/finish.go",
		Old:   `if a.work.run.Exit.OOMKills == 0 || a.work.run.Ordered() {`,
		New:   `if a.work.run.Exit.OOMKills == 0 {`,
		Tests: activationTests(""),
	},
	{
		Name:  "an order after the job's end changes how it ended",
		File:  "starter/activation/finish.go",
		Old:   `case a.work.run.Ordered() && e != nil && e.Remove:`,
		New:   `case e != nil && e.Remove:`,
		Tests: activationTests(""),
	},
	{
		Name:  "a job that the wrapper killed counts as ended by itself",
		File:  "starter/activation/watch.go",
		Old:   `case exit.Killed != "" && exit.Killed != payload.KilledSweep:`,
		New:   `case exit.Killed != "" && exit.Killed == payload.KilledSweep:`,
		Tests: activationTests(""),
	},
	{
		Name:  "the payload slot is not given back",
		File:  "starter/activation/life.go",
		Old:   `a.lease.Release(ctx)`,
		New:   `error(nil)`,
		Tests: activationTests(""),
	},
	{
		Name:  "what the job set last is lost with the shadow",
		File:  "starter/activation/finish.go",
		Old:   "\t\ta.io.GiveBack(ad)\n\t\treturn fmt.Errorf(\"tell the shadow",
		New:   "\t\treturn fmt.Errorf(\"tell the shadow",
		Tests: livesTests("TestChirp"),
	},
	{
		Name:  "the end of a job whose output is lost is not in its event log",
		File:  "starter/activation/finish.go",
		Old:   `if err := a.peers.shadow.JobTermination(ctx, a.account.process(job.Exited)); submitside`,
		New:   `if err := error(nil); submitside`,
		Tests: livesTests("TestOutput"),
	},
	{
		Name:  "a soft signal goes to all processes of the job",
		File:  "starter/activation/watch.go",
		Old:   `if err := client.Signal(ctx, sig, false); err != nil {`,
		New:   `if err := client.Signal(ctx, sig, true); err != nil {`,
		Tests: livesTests("TestEscalation"),
	},
	{
		Name:  "an update hook outlives the sandbox",
		File:  "starter/activation/life.go",
		Old:   "\ta.site.hooks.EndUpdate()\n",
		New:   "",
		Tests: livesTests("TestHooks"),
	},
	{
		Name:  "the startd is not told where the sandbox is",
		File:  "starter/activation/prepare.go",
		Old:   "\ta.peers.reports.Place(a.job.Sandbox.Scratch())\n",
		New:   "",
		Tests: livesTests("TestPlainLife"),
	},
	{
		Name:  "the shadow does not forget a bad first checkpoint",
		File:  "starter/activation/checkpoint.go",
		Old:   `if bad.Number >= 0 {`,
		New:   `if bad.Number > 0 {`,
		Tests: livesTests("TestDamagedCheckpoints"),
	},
	{
		Name:  "a job that is refused runs",
		File:  "starter/activation/register.go",
		Old:   `refused != nil {`,
		New:   `refused != nil && refused.Code == 0 {`,
		Tests: livesTests("TestEnds"),
	},
	{
		Name:  "a manifest does not return",
		File:  "starter/activation/finish.go",
		Old:   `added = append(added, a.work.inventory.Output()...)`,
		New:   `_ = added`,
		Tests: livesTests("TestManifest"),
	},
}
