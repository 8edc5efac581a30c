package main

func localJobTests(run string) []tests { return []tests{{"starter/localjob", run}} }

// Mistakes in the life of a job of the local universe, and in what the schedd and the user are told of it.
var localUniverseMutants = []mutant{
	{
		Name:  "a requeued job counts as done",
		File:  "starter/localjob/conclude.go",
		Old:   "\t\tl.ad.SetString(\"RequeueReason\", d.Reason)\n\t\treturn ExitRequeue\n\t}\n\treturn ExitCompleted",
		New:   "\t\tl.ad.SetString(\"RequeueReason\", d.Reason)\n\t\treturn ExitCompleted\n\t}\n\treturn ExitCompleted",
		Tests: localJobTests("TestEnds"),
	},
	{
		Name:  "the queue is tried only once",
		File:  "starter/localjob/conclude.go",
		Old:   `if try >= retries {`,
		New:   `if true {`,
		Tests: localJobTests("TestEnds"),
	},
	{
		Name:  "the schedd's secrets reach the user's log",
		File:  "starter/localjob/run.go",
		Old:   `l.ad = l.ad.Public()`,
		New:   `_ = l.ad.Public()`,
		Tests: localJobTests("TestEnds"),
	},
	{
		Name:  "the wrapper's directory stays",
		File:  "starter/localjob/conclude.go",
		Old:   "\tif l.control != \"\" {",
		New:   "\tif false {",
		Tests: localJobTests("TestEnds"),
	},
	{
		Name:  "who holds a job by hand loses the reason",
		File:  "condor/qmgmt/updater.go",
		Old:   `} else if status == statusHeld {`,
		New:   `} else if status == statusHeld && false {`,
		Tests: []tests{{"condor/qmgmt", "TestUpdate$"}},
	},
	{
		Name:  "the queue is changed in nobody's name",
		File:  "condor/qmgmt/conn.go",
		Old:   "\tif q.User == \"\" {",
		New:   "\tif true {",
		Tests: []tests{{"condor/qmgmt", "TestUpdate$"}},
	},
	{
		Name:  "a reason of several lines forges an event",
		File:  "condor/userlog/event.go",
		Old:   `fmt.Fprintf(&b, "\t%s\n", oneLine(e.Reason))`,
		New:   `fmt.Fprintf(&b, "\t%s\n", e.Reason)`,
		Tests: []tests{{"condor/userlog", "TestEvents"}},
	},
	{
		Name:  "a log may be a device",
		File:  "condor/userlog/log.go",
		Old:   `} else if !info.Mode().IsRegular() {`,
		New:   `} else if !info.Mode().IsRegular() && false {`,
		Tests: []tests{{"condor/userlog", "TestLogsThatCannotBeWritten"}},
	},
	{
		Name:  "what is undefined lets a policy fire",
		File:  "condor/jobpolicy/policy.go",
		Old:   "\tr, ok := v.Real()\n\treturn ok && int64(r) != 0",
		New:   "\tr, ok := v.Real()\n\treturn !ok || int64(r) != 0",
		Tests: []tests{{"condor/jobpolicy", "TestPolicies"}},
	},
	{
		Name:  "a starter of root believes root in place of the user's wrapper",
		File:  "payload/dial.go",
		Old:   `if int(cred.Uid) != o.User {`,
		New:   `if int(cred.Uid) != o.User && cred.Uid != 0 {`,
		Tests: payloadTests("TestPeerOfAnotherUser"),
	},
	{
		Name:  "a line feed in an attribute forges an event",
		File:  "condor/userlog/event.go",
		Old:   `ad.SetString(name, oneLine(text))`,
		New:   `ad.SetString(name, text)`,
		Tests: []tests{{"condor/userlog", "TestForgedInformation"}},
	},
	{
		Name:  "the queue refuses a reason of several lines",
		File:  "condor/qmgmt/updater.go",
		Old:   `if text := asLine.Replace(expr.OldString()); u.said`,
		New:   `if text := expr.OldString(); u.said`,
		Tests: []tests{{"condor/qmgmt", "TestUpdateOfLines"}},
	},
	{
		Name:  "a stranger's connection ends the job",
		File:  "starter/endpoint/endpoint.go",
		Old:   "\tif o.Reversed != nil {",
		New:   "\tif true {",
		Tests: localJobTests("TestReversedConnection"),
	},
	{
		Name:  "what the wrapper left runs on",
		File:  "starter/localjob/conclude.go",
		Old:   `if err := endOrphans(ctx); err != nil {`,
		New:   `if err := error(nil); err != nil {`,
		Tests: localJobTests("TestWrapperInTheOwnersHands"),
	},
	{
		Name:  "a file system that hangs keeps the starter for ever",
		File:  "starter/localjob/start.go",
		Old:   `case <-l.orders.Hard():`,
		New:   `case <-make(chan int):`,
		Tests: localJobTests("TestHangingLog"),
	},
	{
		Name:  "a number is an account's name",
		File:  "starter/localjob/ad.go",
		Old:   `"0123456789") == "" {`,
		New:   `"0123456789") == "x" {`,
		Tests: localJobTests("TestLookedUpAccount"),
	},
}
