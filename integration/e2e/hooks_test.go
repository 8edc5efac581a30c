//go:build pool

package e2e

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// sitePrograms is the directory of a site's programs in the pilot container.
const sitePrograms = "/usr/local/libexec/e2e"

// siteProgram puts a program into the pilot container until the test ends, and
// returns its path.
func siteProgram(t *testing.T, name, content string) string {
	t.Helper()
	at := path.Join(sitePrograms, name)
	const install = `mkdir -p "$(dirname "$0")" && cat >"$0" && chmod 755 "$0"`
	if _, err := pool.EPInput(t.Context(), side, strings.NewReader(content), "sh", "-c", install, at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(context.Background(), side, "rm", "-f", at); err != nil {
			t.Error(err)
		}
	})
	return at
}

// TestHooksChooseTheImage: a hook can choose the image before the transfer or after
// it. The hook at the end of the job runs as the payload's user, in a group of its
// own, before the output is sent.
func TestHooksChooseTheImage(t *testing.T) {
	oursOnly(t)
	says := func(name string) string {
		return siteProgram(t, "image-"+name, fmt.Sprintf("#!/bin/sh\necho 'SingularityImage = %s'\n", classads.QuoteOld(pool.Image(name))))
	}
	exit := siteProgram(t, "exit", "#!/bin/sh\n{ echo $1; id -u; id -g; grep '^ExitCode =' -; } >hook.exit\n")
	configure(t,
		"E2EBEFORE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = "+says("busybox"),
		"E2EBEFORE_HOOK_JOB_EXIT = "+exit,
		"E2EAFTER_HOOK_PREPARE_JOB = "+says("probe"),
		"E2EAFTER_HOOK_JOB_EXIT = "+exit,
	)
	images := map[string]string{"E2EBEFORE": "busybox", "E2EAFTER": "probe"}
	jobs := map[string]harness.Job{}
	for keyword := range images {
		s := job("facts exit=3", "+HookKeyword = "+classads.QuoteOld(keyword))
		s.Name = "hooks-" + strings.ToLower(keyword)
		jobs[keyword] = submit(t, s)[0]
	}
	for keyword, image := range images {
		mustExit(t, jobs[keyword], 3)
		seen, err := jobs[keyword].Facts("out")
		if err != nil {
			t.Fatal(err)
		}
		if seen.Image != image {
			t.Errorf("%s: ran in %q, want %s", keyword, seen.Image, image)
		}
		if got, want := output(t, jobs[keyword], "hook.exit"), fmt.Sprintf("exit\n%d\n65534\nExitCode = 3\n", seen.UID); got != want {
			t.Errorf("%s: the hook at the end says %q, want %q", keyword, got, want)
		}
	}
}

// TestJobWrapper: the site's wrapper starts the job inside its image. If it cannot,
// the job's user is told; if it says that it failed, the job goes back to the
// queue.
func TestJobWrapper(t *testing.T) {
	oursOnly(t)
	configure(t, "USER_JOB_WRAPPER = "+siteProgram(t, "wrap", `#!/bin/sh
if [ "$2" = err=refuse ]; then printf 'no such luck\nat all\n' >"$_CONDOR_WRAPPER_ERROR_FILE"; exit 1; fi
WRAPPED="by ${0##*/}"; export WRAPPED
exec "$@"
`))
	in := func(image, steps string) harness.Job {
		s := job(steps, "universe = docker", "docker_image = "+pool.Image(image))
		s.Name = "wrapper-" + strings.NewReplacer("=", "-", " ", "-").Replace(image+"-"+steps)
		return submit(t, s)[0]
	}
	good, shellless, refused := in("busybox", "facts"), in("probe", "facts"), in("busybox", "err=refuse")
	mustExit(t, good, 0)
	seen, err := good.Facts("out")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(seen.Env, "WRAPPED=by wrap") || seen.Image != "busybox" {
		t.Errorf("ran in %q with the environment %q", seen.Image, seen.Env)
	}
	const failedToCreateProcess = 6
	end := ending(t, shellless)
	if !end.Held || end.Code != failedToCreateProcess {
		t.Errorf("%s, want held with code %d", end, failedToCreateProcess)
	}
	for _, word := range []string{"USER_JOB_WRAPPER", "/bin/sh", "choose an image"} {
		if !strings.Contains(end.Reason, word) {
			t.Errorf("the reason %q does not contain %q", end.Reason, word)
		}
	}
	events, err := refused.WaitEvents(soon(t, patience), "an attempt that fails", failed)
	if err != nil {
		t.Fatal(err)
	}
	givenBack(t, events, "The job wrapper failed to execute the job: no such luck|at all")
}

// TestSitePrograms: programs of the site run before and after each job, in the
// pilot and in the payload container: as container-root in an image without a
// shell, and as the job's user.
func TestSitePrograms(t *testing.T) {
	oursOnly(t)
	program, err := os.ReadFile(probe.Link)
	if err != nil {
		t.Fatal(err)
	}
	static := siteProgram(t, "static", string(program))
	pilot := siteProgram(t, "pilot", "#!/bin/sh\necho \"pilot: $1 by $(id -u), $(grep -c '^ClusterId = ' -) job\"\n")
	both := []string{"POD_STARTER_SETUP = " + pilot, "POD_STARTER_TEARDOWN = " + pilot}
	probeImage := []string{"universe = docker", "docker_image = " + pool.Image("probe")}

	t.Run("as root", func(t *testing.T) {
		configure(t, append(both, "POD_STARTER_CONTAINER_SCRIPTS_AS = root", "POD_STARTER_CONTAINER_SETUP = "+static, "POD_STARTER_CONTAINER_TEARDOWN = "+static)...)
		prepared := submit(t, job("peek=/site-setup facts exit=4", probeImage...))[0]
		mustExit(t, prepared, 4)
		seen, err := prepared.Facts("out")
		if err != nil {
			t.Fatal(err)
		}
		if seen.Peeks["/site-setup"] != "readable" || seen.UID == 0 {
			t.Errorf("the job of user %d finds what the set-up left: %v", seen.UID, seen.Peeks)
		}
		run, err := prepared.Run(soon(t, patience), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, stage := range []string{"setup", "teardown"} {
			for _, line := range []string{
				"pilot: " + stage + " by 0, 1 job",
				stage + " by user 0 in stage " + stage + ", capabilities 0000000000000000",
			} {
				if !run.Has(line) {
					t.Errorf("the log does not say %q", line)
				}
			}
		}
	})
	t.Run("as root, but a script", func(t *testing.T) {
		configure(t, "POD_STARTER_CONTAINER_SCRIPTS_AS = root", "POD_STARTER_CONTAINER_SETUP = "+pilot)
		refused := submit(t, job("facts"))[0]
		events, err := refused.WaitEvents(soon(t, patience), "an attempt that fails", failed)
		if err != nil {
			t.Fatal(err)
		}
		givenBack(t, events, "interpreter would be the image's")
	})
	t.Run("as the job's user", func(t *testing.T) {
		configure(t, "POD_STARTER_CONTAINER_SETUP = "+siteProgram(t, "sandbox", "#!/bin/sh\necho \"$1 by $(id -u)\" >prepared\n"))
		prepared := submit(t, job("cat=prepared"))[0]
		mustExit(t, prepared, 0)
		if got, want := output(t, prepared, "out"), fmt.Sprintf("setup by %d\n", userOf(t, prepared)); got != want {
			t.Errorf("the job finds %q, want %q", got, want)
		}
	})
}
