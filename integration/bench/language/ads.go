// Package language compares our ClassAd language with HTCondor's own library, on ads
// of HTCondor's daemons: how long reading, printing and matching takes.
package language

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// number is the number of machines, and of jobs.
const number = 1000

// patience is how long a thousand slots may take to be advertised.
const patience = 3 * time.Minute

// crowd is the name of the startd with a thousand slots. It runs beside the pool's
// startd in the same container; neither removes anything of the other.
const crowd = "crowd"

// startCrowd starts that startd, and prints its process ID.
var startCrowd = fmt.Sprintf(`mkdir -p /tmp/%[1]s/execute /tmp/%[1]s/log && chown -R condor: /tmp/%[1]s
export _CONDOR_STARTD_NAME=%[1]s _CONDOR_NUM_CPUS=%[2]d _CONDOR_NUM_SLOTS_TYPE_1=%[2]d _CONDOR_MEMORY=%[2]d000
export _CONDOR_START='TARGET.RequestCpus <= 2 || SlotID %% 3 == 0'
export _CONDOR_EXECUTE=/tmp/%[1]s/execute _CONDOR_LOG=/tmp/%[1]s/log _CONDOR_SPOOL=/tmp/%[1]s _CONDOR_LOCK=/tmp/%[1]s
export _CONDOR_USE_SHARED_PORT=false _CONDOR_USE_PROCD=false _CONDOR_SEC_USE_FAMILY_SESSION=false _CONDOR_STARTD_CRON_JOBLIST=
setsid condor_startd -f -t >/tmp/%[1]s/log/all 2>&1 </dev/null & echo $!`, crowd, number)

const endCrowd = `kill -QUIT "$1"; while kill -0 "$1" 2>/dev/null; do sleep 0.1; done; rm -rf /tmp/` + crowd

// machines are the ads of the slots of such a startd, as condor_status prints them.
func machines(ctx context.Context, pool *harness.Pool) (text string, err error) {
	pid, err := pool.EP(ctx, harness.Stock, "sh", "-c", startCrowd)
	if err != nil {
		return "", fmt.Errorf("starting a startd with %d slots: %w", number, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_, failed := pool.EP(ctx, harness.Stock, "sh", "-c", endCrowd, "end", strings.TrimSpace(pid))
		err = errors.Join(err, failed)
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		text, err = pool.AP(ctx, "condor_status", "-long", "-constraint", `regexp("@`+crowd+`@", Name)`)
		if err != nil {
			return "", fmt.Errorf("asking for the ads of %d slots: %w", number, err)
		}
		if n := count(text); n >= number {
			return text, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("a startd with %d slots has advertised %d of them: %w", number, count(text), ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// submission are jobs on hold that want machines of many kinds, most of which exist.
var submission = fmt.Sprintf(`executable = /bin/true
hold = true
request_cpus = 1 + $(Process) %% 3
request_memory = 128 + 16 * ($(Process) %% 90)
request_disk = 1024 * (1 + $(Process) %% 7)
requirements = TARGET.HasFileTransfer && (SlotID >= $(Process) %% 4 * 250 || regexp("^slot[0-9]*$(Process)@", TARGET.Name)) && SlotID %% 7 != $(Process) %% 7
rank = KFlops + $(Process) * (TARGET.SlotID < 500)
+ProjectName = "project$(Process)"
queue %d
`, number)

// jobs are ads as condor_q prints them.
func jobs(ctx context.Context, pool *harness.Pool) (text string, err error) {
	out, err := pool.AP(ctx, "sh", "-c", `printf '%s' "$1" >many.sub && condor_submit -terse many.sub && rm many.sub`, "submit", submission)
	if err != nil {
		return "", fmt.Errorf("submitting %d jobs: %w", number, err)
	}
	cluster, _, _ := strings.Cut(strings.TrimSpace(out), ".")
	defer func() {
		_, failed := pool.AP(context.WithoutCancel(ctx), "condor_rm", cluster)
		err = errors.Join(err, failed)
	}()
	text, err = pool.AP(ctx, "condor_q", "-long", cluster)
	if err == nil && count(text) != number {
		err = fmt.Errorf("%d ads", count(text))
	}
	if err != nil {
		return "", fmt.Errorf("asking for the ads of %d jobs: %w", number, err)
	}
	return text, nil
}

// count is the number of ads in what a tool printed.
func count(text string) int {
	return strings.Count(strings.TrimSpace(text), "\n\n") + min(len(strings.TrimSpace(text)), 1)
}
