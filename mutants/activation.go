package main

func activationTests(run string) []tests { return []tests{{"starter/activation", run}} }

// Mistakes in the life of an activation. Tests that live whole lives must notice them.
var activationMutants = []mutant{
	{
		Name:  "a sweep's error is dropped",
		File:  "starter/activation/finish.go",
		Old:   "\ta.swept = err == nil\n\treturn err\n",
		New:   "\ta.swept = err == nil\n\treturn nil\n",
		Tests: activationTests(""),
	},
	{
		Name:  "there is no sweep after a hold",
		File:  "starter/activation/exiting.go",
		Old:   "\terr := a.sweep(ctx)\n\ta.exitHook(ctx)\n",
		New:   "\terr := error(nil)\n\ta.exitHook(ctx)\n",
		Tests: activationTests(""),
	},
	{
		Name:  "what PostCmd left is not swept",
		File:  "starter/activation/finish.go",
		Old:   "\t\ta.swept = false // it may have left something\n",
		New:   "",
		Tests: activationTests(""),
	},
	{
		Name:  "input is tried without limit",
		File:  "starter/activation/getready.go",
		Old:   ` && try < maxInputTries:`,
		New:   `:`,
		Tests: activationTests(""),
	},
	{
		Name:  "the drain of output knows no order",
		File:  "starter/activation/streams.go",
		Old:   `ctx, release := a.orders.UntilHard(ctx)`,
		New:   `ctx, release := context.WithCancel(ctx)`,
		Tests: activationTests(""),
	},
	{
		Name:  "what others write into the job's pipe is the job's",
		File:  "starter/activation/streams.go",
		Old:   `unix.Read(int(fd), b[:min(len(b), p.left)])`,
		New:   `unix.Read(int(fd), b)`,
		Tests: activationTests(""),
	},
	{
		Name:  "a job that was ordered to end is held for want of memory",
		File:  "starter/activation/finish.go",
		Old:   `if a.payload.exit.OOMKills == 0 || a.payload.ordered {`,
		New:   `if a.payload.exit.OOMKills == 0 {`,
		Tests: activationTests(""),
	},
	{
		Name:  "an order after the job's end changes how it ended",
		File:  "starter/activation/finish.go",
		Old:   `case a.payload.ordered && e != nil && e.Remove:`,
		New:   `case e != nil && e.Remove:`,
		Tests: activationTests(""),
	},
	{
		Name:  "a job that the wrapper killed has ended by itself",
		File:  "starter/activation/watch.go",
		Old:   `case exit.Killed != "" && exit.Killed != payload.KilledSweep:`,
		New:   `case exit.Killed != "" && exit.Killed == payload.KilledSweep:`,
		Tests: activationTests(""),
	},
	{
		Name:  "the payload slot is not given back",
		File:  "starter/activation/activation.go",
		Old:   `a.lease.Release(ctx)`,
		New:   `error(nil)`,
		Tests: activationTests(""),
	},
}
