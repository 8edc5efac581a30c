//go:build pool

package nodes

import (
	"testing"
	"time"

	"podstarter/integration/harness"
)

// startLogind starts what a node's service manager would have started. The kubelet cannot raise the time for which logind
// waits without systemd.
const startLogind = `set -e
mkdir -p /run/dbus /etc/elogind/logind.conf.d
printf '[Login]\nInhibitDelayMaxSec=120\n' >/etc/elogind/logind.conf.d/50-kubelet.conf
dbus-uuidgen --ensure
dbus-daemon --system --fork
setsid /usr/libexec/elogind >/run/elogind.log 2>&1 &
for i in $(seq 100); do
	! busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager InhibitDelayMaxUSec || exit 0
	sleep 0.2
done
cat /run/elogind.log
exit 1`

// TestShutDown: a node is told to power off. Its kubelet ends the pods first, and their jobs run on the other.
func TestShutDown(t *testing.T) {
	s := open(t)
	t.Cleanup(func() {
		// Whether its power is off by now or not.
		must(t, s, "guests", "kill", "guest-2")
		must(t, s, "guests", "boot", "guest-2")
		must(t, s, "up", "--kubelet=")
	})
	must(t, s, "in", "--node", "2", "sh", "-c", startLogind)
	must(t, s, "up", `--kubelet={"shutdownGracePeriod":"60s"}`)
	all := both(t, s, 60*time.Second, 20*time.Minute)
	began := time.Now()
	must(t, s, "in", "--node", "2", "loginctl", "poweroff")
	times := await(t, all, harness.EventEvicted, 1, patience)
	t.Logf("all have left: %v", times)
	times = await(t, all, harness.EventTerminated, 1, 2*patience)
	t.Logf("all have ended, %v after the node was told to power off: %v", time.Since(began).Round(100*time.Millisecond), times)
	judge(t, all, 2, 2)
}
