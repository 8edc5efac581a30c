//go:build pool

package e2e

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

// tokens is where a credential monitor would leave users' tokens on the submit
// side (SEC_CREDENTIAL_DIRECTORY_OAUTH of the pool's plan).
const tokens = "/var/lib/condor/oauth_credentials"

// TestModeToken: an OAuth token of the job's owner reaches the job in every mode,
// belongs to the job, and is gone when the job is.
func TestModeToken(t *testing.T) {
	oursOnly(t)
	job := submit(t, script(`#!/bin/sh
cat "$_CONDOR_CREDS"/*.use && stat -c %a "$_CONDOR_CREDS"/*.use && [ -O "$(echo "$_CONDOR_CREDS"/*.use)" ] && echo mine
id -G | wc -w
`, "hold = True", `MY.OAuthServicesNeeded = strcat("service", ClusterId)`))[0]
	file := fmt.Sprintf("%s/%s/service%d.use", tokens, pool.User.Name, job.Cluster)
	const put = `umask 077 && mkdir -p "$(dirname "$0")" && cat >"$0"`
	if _, err := pool.APRoot(t.Context(), strings.NewReader("a token\n"), "sh", "-c", put, file); err != nil {
		t.Fatal(err)
	}
	if err := job.Tool(t.Context(), "condor_release"); err != nil {
		t.Fatal(err)
	}
	mustExit(t, job, 0)
	if diff := cmp.Diff("a token\n600\nmine\n1\n", output(t, job, "out")); diff != "" {
		t.Error(diff)
	}
}

// TestRenewedProxy: a job finds the X.509 proxy that its owner has renewed, in
// place of the old one.
func TestRenewedProxy(t *testing.T) {
	oursOnly(t)
	s := script(`#!/bin/sh
old=$(cksum <"$X509_USER_PROXY")
printf waiting >/proc/$$/comm
until [ "$(cksum <"$X509_USER_PROXY")" != "$old" ]; do sleep 0.2; done
grep -c BEGIN "$X509_USER_PROXY" && stat -c %a "$X509_USER_PROXY"
`, "x509userproxy = proxy")
	s.Files = append(s.Files, harness.Proxy("proxy"), harness.Proxy("newer"))
	job := submit(t, s)[0]
	if _, err := job.WaitEvent(t.Context(), harness.EventExecute, 1); err != nil {
		t.Fatal(err)
	}
	waiting := func(q harness.Process) bool { return q.Comm == "waiting" && pool.Payload(harness.Ours)(q) }
	if _, err := harness.WaitSome(t.Context(), 1, waiting); err != nil {
		t.Fatal(err)
	}
	// A shadow takes a proxy for the old one if it is not from a later second than
	// its own start.
	dir := pool.User.Home + "/jobs/" + path.Base(job.Dir)
	if _, err := pool.AP(t.Context(), "sh", "-c", `cd "$0" && touch -d '5 seconds' newer && mv newer proxy`, dir); err != nil {
		t.Fatal(err)
	}
	mustExit(t, job, 0)
	if diff := cmp.Diff("3\n600\n", output(t, job, "out")); diff != "" {
		t.Error(diff)
	}
}
