package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// measured are attributes whose value is a measurement, a time or a number that the
// system chose. Only their presence and their type are compared. A name that ends in
// * stands for all that begin so.
var measured = []string{
	// times
	"QDate", "CompletionDate", "EnteredCurrentStatus", "JobStartDate", "JobCurrentStartDate",
	"JobCurrentStartExecutingDate", "JobCurrentFinishTransferInputDate", "JobCurrentFinishTransferOutputDate",
	"JobCurrentStartTransferInputDate", "JobCurrentStartTransferOutputDate", "JobLastStartDate", "LastJobLeaseRenewal", "JobDisconnectedDate",
	"JobLastCheckpointTime", "LastMatchTime", "LastSuspensionTime", "LastVacateTime", "ShadowBday", "StdoutMtime", "StderrMtime", "TransferInFinished", "TransferInStarted",
	"TransferInQueued", "TransferOutFinished", "TransferOutStarted", "TransferOutQueued", "ReleaseTime", "StageOutStart", "StageOutFinish", "StageInStart", "StageInFinish", "JobFinishedHookDone",
	"JobLastStartTransferInputDate", "JobLastFinishTransferInputDate",
	// durations
	"ActivationDuration", "ActivationExecutionDuration", "ActivationSetUpDuration", "ActivationSetupDuration", "ActivationTeardownDuration",
	"CommittedTime", "NewlyCommittedTime", "CommittedSlotTime", "CumulativeSlotTime", "CumulativeTransferTime", "CumulativeRemoteSysCpu", "CumulativeRemoteUserCpu",
	"InitialWaitDuration", "JobDuration", "LastRemoteWallClockTime", "RemoteWallClockTime", "StatsLifetime*", "RecentStatsLifetime*", "StatsLastUpdateTime*", "RecentStatsTickTime*",
	"LastSuspensionTime", "CommittedSuspensionTime", "CumulativeSuspensionTime", "WallClockCheckpoint", "PostJobDuration", "PostJobPid", "PostJobStartDate", "PreJobDuration", "PreJobPid", "PreJobStartDate", "RemoteSysCpu", "RemoteUserCpu", "ServerTime",
	// use of resources
	"DiskProvisioned", "DiskUsage", "DiskUsage_RAW", "ImageSize", "ImageSize_RAW", "ResidentSetSize", "ResidentSetSize_RAW",
	"ProportionalSetSizeKb", "ProportionalSetSizeKb_RAW", "Block*", "RecentBlock*", "CPUInstructions", "IOWait", "ScratchDirFileCount",
	// numbers and names given out
	"ClusterId", "GlobalJobId", "JobPid", "RemoteSlotID", "NumPidsMax", "LastRemoteHost", "RemoteHost", "StarterIpAddr", "StartdIpAddr", "StartdPrincipal",
	"PublicClaimId", "PublicClaimIds", "LastPublicClaimIds", "ClaimId", "LastClaimId", "LastPublicClaimId", "SlotName", "StartdName", "MachineAttr*", "CondorScratchDir",
	"AutoClusterAttrs", "AutoClusterId", "LastRemotePool", "ShadowIpAddr",
}

var (
	slotPattern   = regexp.MustCompile(`slot\d+(?:_\d+)?@[A-Za-z0-9_.-]+|\bslot\d+(?:_\d+)?\b`)
	sinfulPattern = regexp.MustCompile(`<[0-9.:\[\]a-f]+\?[^>]*>|<(?:[0-9.]+|\[[0-9a-f:.]+\]):\d+>`)
	// ipPattern is where daemons name each other by their addresses.
	ipPattern = regexp.MustCompile(`\b((?:STARTER|SHADOW|SCHEDD) at|GoAhead message from) (?:\d+(?:\.\d+){3}|[0-9a-f]*:[0-9a-f:]*[0-9a-f])`)
	// hostPattern is a name that HTCondor makes from an address, as nobody asks a name server here.
	hostPattern = regexp.MustCompile(`(^|[^0-9A-Za-z.])(?:\d{1,3}(?:-\d{1,3}){3}|(?:fd00|2001)-[0-9a-f-]+)(?:\.pool\.invalid|\b)`)
	// localPattern is where plugins tell the name of their machine: that of the pod, if the
	// pod has a network of its own.
	localPattern   = regexp.MustCompile(`\b(TransferLocalMachineName = )"glidein(?:-stock)?"`)
	stampPattern   = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?`)
	scratchPattern = regexp.MustCompile(`/dir_\d+`)
	// volumePattern is where the manifest of a pilot without root has sandboxes, in place
	// of EXECUTE (POD_STARTER_SCRATCH_DIR in deploy/glidein-rootless).
	volumePattern  = regexp.MustCompile(`/var/lib/podstarter/scratch(/jobs/dir_\d+)`)
	spoolPattern   = regexp.MustCompile(`(/spool/condor/)\d+/\d+/cluster\d+\.proc\d+\.subproc\d+`)
	clusterPattern = regexp.MustCompile(`cluster \d+`)
	tookPattern    = regexp.MustCompile(`\bDurationInSeconds = [0-9]+`)
	webPattern     = regexp.MustCompile(`(://127\.0\.0\.1):\d{2,}`)
	endPattern     = regexp.MustCompile(`\bWhen = \d+`) // in the ticket of execution
	usagePattern   = regexp.MustCompile(`\d+ \d\d:\d\d:\d\d`)
)

// lastedPattern is how long a plugin has run; transferTimes are measurements in what
// plugins report. noPluginPattern is what stock starters add to any error of a plugin
// if another configured one is not installed, as one of the usual ones often is, or took
// long to say what it can on a busy machine; the job is not concerned. globalPattern is the end of a GlobalJobId in a URL,
// publicPattern the name of a public input file, waitedPattern what curl says about a
// connection that failed.
var (
	waitedPattern   = regexp.MustCompile(`\bafter [0-9]+ ms\b`)
	publicPattern   = regexp.MustCompile(`(/public/)[0-9a-f]{16,32}\b`)
	globalPattern   = regexp.MustCompile(`_[0-9]+\.[0-9]+_[0-9]{10}/`)
	transferTimes   = regexp.MustCompile(`\b(TransferStartTime|TransferEndTime|ConnectionTimeSeconds|TotalSeconds) = [-+.0-9E]+`)
	lastedPattern   = regexp.MustCompile(`\b(DurationInSeconds) = [0-9]+`)
	noPluginPattern = regexp.MustCompile(`\|FILETRANSFER:(?:1:FILETRANSFER: Failed to execute \S+ -classad: No such file or directory skipping|110:No output from \S+ -classad, ignoring)`)
)

// words replaces what is particular to one run in a text: directories, the user,
// slot names, addresses, times.
func words(text string, job harness.Job) string {
	text = strings.ReplaceAll(text, job.Dir[strings.LastIndexByte(job.Dir, '/')+1:], "<directory>")
	if job.Owner != "" {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(job.Owner)+`\b`).ReplaceAllString(text, "<user>")
	}
	for _, rewrite := range []struct {
		pattern *regexp.Regexp
		by      string
	}{
		{slotPattern, "<slot>"},
		{webPattern, "$1:<port>"},
		{sinfulPattern, "<address>"},
		{hostPattern, "$1<host>"},
		{ipPattern, "$1 <ip>"},
		{localPattern, `$1"<host>"`},
		{stampPattern, "<time>"},
		{volumePattern, "/var/lib/condor/execute$1"},
		{scratchPattern, "/dir_<pid>"},
		{usagePattern, "<duration>"},
		{endPattern, "When = <time>"},
		{lastedPattern, "$1 = <n>"},
		{transferTimes, "$1 = <n>"},
		{publicPattern, "$1<sum>"},
		{waitedPattern, "after <n> ms"},
		{noPluginPattern, ""},
		{globalPattern, "_<job>_<time>/"},
		{spoolPattern, "$1<spool>"},
		{clusterPattern, "cluster <n>"},
		{tookPattern, "DurationInSeconds = <n>"},
		{regexp.MustCompile(regexp.QuoteMeta(sidePicks(job.Side))), "<side>"},
		// Last, since the address 127.0.0.1 contains the job 127.0; and not in a
		// version, since 25.12.0 contains the job 12.0.
		{regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(job.ID()) + `(\.?(?:[^0-9.]|$))`), "${1}<job>${2}"},
	} {
		text = rewrite.pattern.ReplaceAllString(text, rewrite.by)
	}
	return text
}

// sidePicks is the clause of Requirements that sends a job to a side.
func sidePicks(side harness.Side) string { return side.Requirements() }

func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool { return matches(pattern, name) })
}

// matches compares names without regard to case; the first * of a pattern stands
// for any text.
func matches(pattern, name string) bool {
	pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	prefix, suffix, open := strings.Cut(pattern, "*")
	if !open {
		return pattern == name
	}
	return len(name) >= len(prefix)+len(suffix) && strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix)
}

// History is a history ad without anything particular to one run: by lower-case name,
// the expression or, for a measured attribute, its type.
func History(ad *classads.Ad, job harness.Job) map[string]string {
	values := map[string]string{}
	for name, expr := range ad.All() {
		if leftToChance(fleeting, name) {
			continue
		}
		text := expr.OldString()
		switch _, err := strconv.ParseFloat(text, 64); {
		case listed(measured, name):
			text = kind(expr)
		case err != nil: // a number may look like a job's
			text = words(text, job)
		}
		values[strings.ToLower(name)] = text
	}
	return values
}

// kind is the type of an expression's value, in angle brackets.
func kind(expr *classads.Expr) string {
	text := expr.OldString()
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return "<integer>"
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return "<real>"
	}
	if strings.HasPrefix(text, `"`) {
		return "<string>"
	}
	return "<expression>"
}

var numberPattern = regexp.MustCompile(`\b\d+(?:\.\d+)?\b`)

// Events is an event log as a sequence of lines without anything particular to one
// run. The ImageSize event comes when a measurement has grown, which depends on
// timing: it appears at most once, before all others.
func Events(events []harness.Event, job harness.Job) []string {
	var sized, lines []string
	for _, e := range events {
		head := fmt.Sprintf("%03d %s", e.Number, words(e.Headline, job))
		if e.Number == harness.EventImageSize {
			if sized == nil {
				sized = append(sized, head[:3]+numbers(head[3:]))
				for _, line := range e.Body {
					sized = append(sized, "006   "+numberPattern.ReplaceAllString(line, "<n>"))
				}
			}
			continue
		}
		lines = append(lines, head)
		for _, line := range e.Body {
			lines = append(lines, fmt.Sprintf("%03d   %s", e.Number, resources(words(line, job))))
		}
	}
	return append(sized, lines...)
}

func numbers(text string) string { return numberPattern.ReplaceAllString(text, "<n>") }

var (
	resourcePattern    = regexp.MustCompile(`^\s*(Cpus|Disk \(KB\)|Memory \(MB\)|Gpus|GPUs|Payloads|TimeExecute \(s\)|TimeSlotBusy \(s\))\s*:`)
	provisionedPattern = regexp.MustCompile(`^Disk = \d+$`)
)

// resources removes the measured numbers from the table of a terminate event, and
// from the execute event the size of the disk, which others use as well.
func resources(line string) string {
	m := resourcePattern.FindString(line)
	switch {
	case provisionedPattern.MatchString(line):
		return "Disk = <n>"
	case strings.HasPrefix(strings.TrimSpace(line), "Partitionable Resources :"):
		return strings.Join(strings.Fields(line), " ") // columns are as wide as their numbers
	case strings.TrimSpace(m) == "":
		return line
	case strings.HasPrefix(strings.TrimSpace(m), "Cpus"):
		return "Cpus : <fleeting>"
	case strings.HasPrefix(strings.TrimSpace(m), "Payloads"):
		return strings.Join(strings.Fields(line), " ") // not measured
	}
	return strings.TrimSpace(m) + " " + strings.Join(strings.Fields(numbers(line[len(m):])), " ")
}

// Lines compares two normalised event logs; the name of a difference is the
// line that only one side has.
func Lines(name string, stock, ours []string) []Difference {
	var found []Difference
	count := map[string]int{}
	for _, line := range stock {
		count[line]++
	}
	for _, line := range ours {
		count[line]--
	}
	for _, line := range slices.Concat(stock, ours) {
		n := count[line]
		if n == 0 {
			continue
		}
		count[line] = 0
		d := Difference{Case: name, In: InEvents, Name: line, Stock: Absent, Ours: Absent}
		if n > 0 {
			d.Stock = times(n)
		} else {
			d.Ours = times(-n)
		}
		found = append(found, d)
	}
	// The shadow writes the events of file transfer beside the others.
	for _, transfers := range []bool{false, true} {
		a, b := sharedLines(stock, ours, transfers), sharedLines(ours, stock, transfers)
		if slices.Equal(a, b) {
			continue
		}
		what := "order"
		if transfers {
			what = "order of transfers"
		}
		found = append(found, Difference{Case: name, In: InEvents, Name: what, Stock: strings.Join(a, "; "), Ours: strings.Join(b, "; ")})
	}
	return found
}

// transferEvent is how lines about file transfer begin.
const transferEvent = "040"

// sharedLines are those of a that b has as often, in the order of a: either of file
// transfer or of all else. What only one has, or has more often, is a difference by
// itself.
func sharedLines(a, b []string, transfers bool) []string {
	count := map[string]int{}
	for _, line := range a {
		count[line]++
	}
	for _, line := range b {
		count[line]--
	}
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return count[line] != 0 || strings.HasPrefix(line, transferEvent) != transfers })
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Values compares two normalised records of one kind, by name.
func Values(name, in string, stock, ours map[string]string) []Difference {
	names := slices.Concat(slices.Collect(maps.Keys(stock)), slices.Collect(maps.Keys(ours)))
	slices.Sort(names)
	var found []Difference
	for _, key := range slices.Compact(names) {
		d := Difference{Case: name, In: in, Name: key, Stock: Absent, Ours: Absent}
		if value, ok := stock[key]; ok {
			d.Stock = cmp.Or(value, "(empty)")
		}
		if value, ok := ours[key]; ok {
			d.Ours = cmp.Or(value, "(empty)")
		}
		if d.Stock != d.Ours {
			found = append(found, d)
		}
	}
	return found
}
