//go:build pool

package e2e

import (
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// ownEntrypoint is that of a glidein image which knows nothing of podstarter's: a user and directories of its own, and a
// configuration at another place. The last lines but one are what docs/operator/logs.md asks for.
const ownEntrypoint = `set -eu
home=/srv/glidein
mkdir -p "$home/config.d" "$home/passwords.d" "$home/run" "$home/lock" "$home/spool"
chmod 0700 "$home/passwords.d"
id glidein >/dev/null 2>&1 || useradd --uid "$CONDOR_USER" --home-dir "$home" --no-create-home glidein
cp /etc/condor/config.d/* /etc/podstarter/config/*.conf "$home/config.d/"
cat >"$CONDOR_CONFIG" <<END
include : /etc/condor/condor_config
LOCAL_CONFIG_DIR = /usr/share/condor/config.d,$home/config.d
RUN = $home/run
LOCK = $home/lock
SPOOL = $home/spool
SEC_PASSWORD_DIRECTORY = $home/passwords.d
END
condor_store_cred -f "$home/passwords.d/POOL" -i /etc/podstarter/credentials/pool_password >/dev/null
chown -R "$CONDOR_USER:$CONDOR_USER" "$home/run" "$home/lock" "$home/spool" /var/log/condor /pilot/execute/jobs
[ -p /run/podstarter/private/stdout ] || mkfifo -m 0600 /run/podstarter/private/stdout
cat <>/run/podstarter/private/stdout &
exec condor_master -f`

// TestOwnImage: podstarter in a pilot that has an entrypoint, a user and an EXECUTE of its own, as docs/admin/install.md
// describes it.
func TestOwnImage(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("this entrypoint is root")
	}
	const user = "4242"
	pod := sizedPod(t, "own-image", 1, nil, func(pod map[string]any) {
		for _, name := range []string{"pilot", "payload"} {
			for _, m := range container(pod, name)["volumeMounts"].([]any) {
				if m := m.(map[string]any); m["name"] == "execute" {
					m["mountPath"] = "/pilot/execute"
				}
			}
		}
		pilot := container(pod, "pilot")
		pilot["command"] = []any{"sh", "-c", ownEntrypoint}
		pilot["env"] = append(pilot["env"].([]any),
			map[string]any{"name": "CONDOR_CONFIG", "value": "/srv/glidein/condor_config"},
			map[string]any{"name": "CONDOR_USER", "value": user})
	}, "EXECUTE = /pilot/execute/jobs", "CONDOR_IDS = "+user+"."+user)
	if out, err := pool.Kubectl(soon(t, patience), nil, "-n", harness.Namespace, "exec", string(pod), "-c", "pilot", "--",
		"/opt/podstarter/bin/condor_pod_starter", "-check"); err != nil {
		t.Errorf("-check finds something bad: %v\n%s", err, out)
	}
	s := job("facts exit=5", `+Sized = "own-image"`, "universe = docker", "docker_image = "+pool.Image("busybox"))
	s.Side = pod
	one := submit(t, s)[0]
	mustExit(t, one, 5)
	if seen, err := one.Facts("out"); err != nil || seen.Image != "busybox" {
		t.Errorf("the job ran in %q, %v", seen.Image, err)
	}
	log, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "logs", string(pod), "-c", "pilot")
	if err != nil || !strings.Contains(log, `msg="job ends" job=`+one.ID()) {
		t.Errorf("the operator does not read of the job: %v\n%s", err, log)
	}
}
