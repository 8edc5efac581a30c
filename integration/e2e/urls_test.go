//go:build pool

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// web is the pool's web server.
func web(t *testing.T) harness.Web {
	t.Helper()
	w, err := pool.Web()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// trusted is the web server, whose authority the execution points trust while the
// test runs.
func trusted(t *testing.T) harness.Web {
	t.Helper()
	w := web(t)
	if err := w.Trust(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Distrust(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// put makes the web server serve a file, below a directory that is the test's own.
func put(t *testing.T, w harness.Web, name, content string) (path string) {
	t.Helper()
	path = fmt.Sprintf("/e2e/%s-%d/%s", t.Name(), os.Getpid(), name)
	if err := w.Put(path, []byte(content)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestModeURLs: the stock curl_plugin fetches over HTTP and HTTPS, as the job's
// user, whatever pilot and payload container share.
func TestModeURLs(t *testing.T) {
	w := trusted(t)
	plain, secure := put(t, w, "plain", "by HTTP\n"), put(t, w, "secure", "by HTTPS\n")
	s := script("#!/bin/sh\ncat plain secure\n"+`find . ! -user "$(id -u)"`, fmt.Sprintf("transfer_input_files = %s%s, %s%s", w.Plain, plain, w.Secure, secure))
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	if got := output(t, job, "out"); got != "by HTTP\nby HTTPS\n" {
		t.Errorf("the job found %q", got)
	}
}

// TestModeSecretsByURL: a plugin that reads files gives the job none of the pilot's.
func TestModeSecretsByURL(t *testing.T) {
	oursOnly(t)
	s := script("#!/bin/sh\ncat pool_password\n", "transfer_input_files = file:///etc/podstarter/credentials/pool_password")
	// Also to a slot that does not offer the method.
	s.Requirements = "TARGET.HasFileTransferPluginMethods =!= undefined"
	job := submit(t, s)[0]
	after := []int{harness.EventHeld, harness.EventEvicted, harness.EventShadowException, harness.EventExecute}
	events, err := job.WaitEvents(soon(t, patience), "its input to fail", func(events []harness.Event) bool {
		return slices.ContainsFunc(events, func(e harness.Event) bool { return slices.Contains(after, e.Number) })
	})
	if err != nil {
		t.Fatal(err)
	}
	if has(events, harness.EventExecute) {
		t.Errorf("the job got the pool's password: %s", harness.Headlines(events))
	}
}

// TestUntrustedServer: HTTPS protects only if the server's certificate is verified.
func TestUntrustedServer(t *testing.T) {
	w := web(t)
	path := put(t, w, "secure", "by HTTPS\n")
	job := submit(t, script("#!/bin/sh\ncat secure\n", "transfer_input_files = "+w.Secure+path))[0]
	end := ending(t, job)
	if !end.Held || end.Code != 13 || !strings.Contains(end.Reason, "certificate") {
		t.Errorf("the job was not put on hold for the certificate: %s", end)
	}
	asked, err := w.Requests(path)
	if err != nil || len(asked) > 0 {
		t.Errorf("the server was asked in spite of its certificate: %v, %v", asked, err)
	}
}

// TestThousandURLs: a thousand files are one run of the plugin, and the shadow
// accepts the reports about them. The test logs the time beside the stock starter's.
func TestThousandURLs(t *testing.T) {
	const many = 1000
	w := web(t)
	var urls []string
	sum := 0
	for i := range many {
		urls = append(urls, w.Plain+put(t, w, fmt.Sprintf("file%04d", i), strconv.Itoa(i)+"\n"))
		sum += i
	}
	thousand := script(`#!/bin/sh
trap 'exit 0' USR1
cat file* | awk '{ n++; sum += $1 } END { print n, sum }'
printf summed >/proc/$$/comm
while :; do sleep 0.1; done
`, "transfer_input_files = "+strings.Join(urls, ","))
	job := submit(t, thousand)[0]
	took := inputTook(t, job)
	payload := pool.Payload(side)
	found, err := harness.WaitSome(soon(t, patience), 1, func(q harness.Process) bool { return q.Comm == "summed" && payload(q) })
	if err != nil {
		t.Fatal(err)
	}
	starter, err := harness.One("starter", pool.Starters(side))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("input took %s; the starter had %d KiB of memory at most", took, starter.VmHWM)
	if side == harness.Ours && starter.VmHWM > 64<<10 {
		t.Errorf("the starter had %d KiB of memory", starter.VmHWM)
	}
	if err := unix.Kill(found[0].PID, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	mustExit(t, job, 0)
	if got, want := strings.TrimSpace(output(t, job, "out")), fmt.Sprintf("%d %d", many, sum); got != want {
		t.Errorf("the job counts and sums up %q, want %q", got, want)
	}
	asked, err := w.Requests(fmt.Sprintf("/e2e/%s-%d/", t.Name(), os.Getpid()))
	if err != nil || len(asked) < many {
		t.Errorf("the server was asked for %d files, %v", len(asked), err)
	}
	records, err := pool.AP(t.Context(), "condor_history", "-epochs", "-type", "INPUT", "-long", job.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(records, "PluginBasename ="); got != 1 {
		t.Errorf("%d runs of plugins are on record", got)
	}
	if got := strings.Count(records, "TransferSuccess = true"); got != many {
		t.Errorf("%d successful transfers are on record", got)
	}

	if side != harness.Ours || !pool.HasStock() {
		return
	}
	thousand.Side = harness.Stock
	job = submit(t, thousand)[0]
	stock := inputTook(t, job)
	t.Logf("the stock starter's input took %s, %.2f times as long", stock, stock.Seconds()/took.Seconds())
}

// inputTook waits until a job runs and returns how long its input took, by the event
// log.
func inputTook(t *testing.T, job harness.Job) time.Duration {
	t.Helper()
	var began time.Time
	for _, number := range []int{harness.EventFileTransfer, harness.EventExecute} {
		_, err := job.WaitEvents(soon(t, patience), fmt.Sprintf("event %03d", number), func(events []harness.Event) bool { return has(events, number) })
		if err != nil {
			t.Fatal(err)
		}
		if began.IsZero() {
			began = time.Now()
		}
	}
	return time.Since(began).Round(10 * time.Millisecond)
}
