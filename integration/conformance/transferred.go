package conformance

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"podstarter/integration/harness"
)

// transferHistory notes what the execution point's log of transfers has of the job
// (FILE_TRANSFER_STATS_LOG): the file itself, and the job's records in their order, with
// each attribute's type where its value is a time.
var transferHistory = Note("the history of transfers", func(ctx context.Context, r *Run) (string, error) {
	submitted, err := os.Stat(filepath.Join(r.Job().Dir, "job.sub"))
	if err != nil {
		return "", err
	}
	result, err := r.Pool.TryPilot(ctx, r.Side, "sh", "-c", transferHistoryScript, strconv.Itoa(r.Job().Cluster), strconv.FormatInt(submitted.ModTime().Unix(), 10))
	if err != nil {
		return "", err
	}
	return timeless(result), nil
})

// transferHistoryScript prints the records of a cluster's jobs, those of a file that
// was set aside first. The log outlives the access point, which then counts from 1 again:
// what comes before the first file since the job was submitted is of others. The owner of
// HTCondor's other logs is "condor", whoever that is in the execution point.
const transferHistoryScript = `log=$(condor_config_val FILE_TRANSFER_STATS_LOG) && owner=$(stat -c '%U %G' "$log") && mode=$(stat -c '%n %A' "$log") || exit
[ "$owner" != "$(stat -c '%U %G' "$(condor_config_val LOG)/StartLog")" ] || owner='condor condor'
echo "$mode $owner"
awk -v mine="JobClusterId = $0" -v since="$1" '
	function end() {
		if (cedar && began >= since) ours = 1
		if (ours && has) printf "%s", text
		text = ""; has = cedar = began = 0
	}
	$0 == "***" { end() }
	{ text = text $0 "\n" }
	$0 == mine { has = 1 }
	$0 == "TransferProtocol = \"cedar\"" { cedar = 1 }
	$1 == "TransferStartTime" { began = $3 + 0 }
	END { end() }' $(ls "$log.old" 2>/dev/null) "$log"
`

// In records of transfers: the job's number, and times, whose type shows.
var (
	recordCluster = regexp.MustCompile(`(?m)^JobClusterId = \d+$`)
	wholeTime     = regexp.MustCompile(`(?m)\b(Transfer(?:Start|End)Time|ConnectionTimeSeconds) = -?\d+( |;|$)`)
	realTime      = regexp.MustCompile(`(?m)\b(Transfer(?:Start|End)Time|ConnectionTimeSeconds) = -?\d+[.E][-+.0-9E]+( |;|$)`)
)

// timeless replaces what is another in each run.
func timeless(found harness.Result) string {
	text := recordCluster.ReplaceAllString(found.Stdout+found.Stderr, "JobClusterId = <cluster>")
	text = wholeTime.ReplaceAllString(text, "$1 = <number>$2")
	return strings.TrimSpace(realTime.ReplaceAllString(text, "$1 = <real>$2"))
}
