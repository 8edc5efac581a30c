package main

func reportTests(run string) []tests  { return []tests{{"starter/report", run}} }
func journalTests(run string) []tests { return []tests{{"starter/journal", run}} }
func tallyTests(run string) []tests   { return []tests{{"starter/tally", run}} }

// Mistakes in what operators are told.
var reportMutants = []mutant{
	{
		Name:  "control characters reach the log",
		File:  "starter/journal/event.go",
		Old:   `case r == unicode.ReplacementChar || !unicode.IsPrint(r):`,
		New:   `case r == unicode.ReplacementChar:`,
		Tests: journalTests("TestClean"),
	},
	{
		Name:  "what a line escapes makes it too long",
		File:  "starter/journal/write.go",
		Old:   "\tenc.SetEscapeHTML(false)",
		New:   "\t_ = enc",
		Tests: journalTests("TestLongestLine"),
	},
	{
		Name:  "a journal that nobody reads grows",
		File:  "starter/journal/write.go",
		Old:   `if info.Size()+int64(len(line)) > maxFile {`,
		New:   `if info.Size()+int64(len(line)) > 1<<40 {`,
		Tests: journalTests("TestNobodyReads"),
	},
	{
		Name:  "the end of the old journal is read twice",
		File:  "starter/journal/read.go",
		Old:   `return rest, end, nil`,
		New:   `return rest, from, nil`,
		Tests: journalTests("TestBetweenFiles"),
	},
	{
		Name:  "the end of the old journal is never read",
		File:  "starter/journal/read.go",
		Old:   `return append(rest, events...), at, err`,
		New:   `return events, at, err`,
		Tests: journalTests("TestBetweenFiles|TestRenew"),
	},
	{
		Name:  "a starter that died is looked at after the journal",
		File:  "starter/report/running.go",
		Old:   `if seen, ok := l[pid]; !ok || seen.there || !seen.began.Equal(r[pid].Time) {`,
		New:   `if seen := l[pid]; seen.there {`,
		Tests: reportTests("TestEarlierPilot|TestEachCountsOnce|TestLines|TestStarterDies"),
	},
	{
		Name:  "starters of an earlier pilot count as alive",
		File:  "starter/report/running.go",
		Old:   `l.began, l.there = e.Time, !gone && isAlive(pid)`,
		New:   `l.began, l.there = e.Time, isAlive(pid)`,
		Tests: reportTests("TestEarlierPilot"),
	},
	{
		Name:  "the position is not kept with the totals",
		File:  "starter/report/reporter.go",
		Old:   `r.memory.Read, r.changed = at, false`,
		New:   `r.changed = false`,
		Tests: reportTests("TestEachCountsOnce"),
	},
	{
		Name:  "the keeper leaves before the last job's end",
		File:  "starter/report/reporter.go",
		Old:   `if stopping == nil && len(r.memory.Running) == 0 {`,
		New:   `if stopping == nil {`,
		Tests: reportTests("TestStop"),
	},
	{
		Name:  "whoever writes lines waits for a reader",
		File:  "starter/outlet/outlet.go",
		Old:   `unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC`,
		New:   `unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC`,
		Tests: reportTests("TestNobodyListens"),
	},
	{
		Name:  "lines follow a link",
		File:  "starter/outlet/outlet.go",
		Old:   `unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC`,
		New:   `unix.O_NONBLOCK|unix.O_CLOEXEC`,
		Tests: reportTests("TestNobodyListens"),
	},
	{
		Name:  "labels are what registries say",
		File:  "starter/tally/tally.go",
		Old:   "\t\tlabels[i] = word(l)",
		New:   "\t\tlabels[i] = l",
		Tests: tallyTests("TestFewLabels"),
	},
	{
		Name:  "there are as many series as reasons",
		File:  "starter/tally/tally.go",
		Old:   `!ok && len(*in) >= most {`,
		New:   `!ok && len(*in) >= 1000*most {`,
		Tests: tallyTests("TestFewLabels"),
	},
	{
		Name:  "a user's mistake becomes an event of the pod",
		File:  "starter/report/events.go",
		Old:   `case e.Outcome == journal.Requeued && e.Blame != payload.User.String():`,
		New:   `case e.Outcome == journal.Requeued || e.Blame == payload.User.String():`,
		Tests: reportTests("TestWhichEvents"),
	},
	{
		Name:  "each failure becomes an event",
		File:  "starter/report/events.go",
		Old:   `ok && now.Sub(last) < sameAgain || h.full`,
		New:   `ok && now.Sub(last) < 0 || h.full`,
		Tests: reportTests("TestFewEvents"),
	},
	{
		Name:  "events come as fast as failures",
		File:  "starter/report/events.go",
		Old:   `h.full = h.full.Add(eventPause)`,
		New:   `h.full = now`,
		Tests: reportTests("TestFewEvents"),
	},
	{
		Name:  "the operator does not hear of a job's end",
		File:  "starter/activation/life.go",
		Old:   "\ta.noteEnd(code)\n",
		New:   "",
		Tests: []tests{{"starter/activation/lives", "TestEnds|TestOrders"}},
	},
	{
		Name:  "a job that was held counts as one that failed",
		File:  "starter/activation/notes.go",
		Old:   `if shadow.ShouldVacate(f.Code, f.Subcode) {`,
		New:   `if !shadow.ShouldVacate(f.Code, f.Subcode) {`,
		Tests: []tests{{"starter/activation/lives", "TestBackend"}},
	},
}
