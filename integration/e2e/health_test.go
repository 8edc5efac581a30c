//go:build pool

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/integration/harness"
	"podstarter/integration/podfailures"
)

// slotAd reads attributes of the slot under test as the pool knows them.
func slotAd(t *testing.T, attributes ...string) []string {
	t.Helper()
	argv := append([]string{"condor_status", "-constraint", "HasPodStarter =?= true", "-limit", "1", "-af:r,"}, attributes...)
	out, err := pool.AP(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out), ", ")
}

// waitSlot waits until the slot's ad in the collector satisfies an expression.
func waitSlot(t *testing.T, expression string) {
	t.Helper()
	var last string
	err := harness.Poll(soon(t, patience), "a slot for which "+expression, func() (bool, error) {
		out, err := pool.AP(t.Context(), "condor_status", "-constraint", "HasPodStarter =?= true && ("+expression+")", "-af", "Name")
		last = out
		return strings.TrimSpace(out) != "", err
	})
	if err != nil {
		ad, _ := pool.AP(t.Context(), "condor_status", "-constraint", "HasPodStarter =?= true", "-af", "PodStarterHealthy",
			"PodStarterOfflineUntil", "PodStarterOfflineReason", "PodStarterRestUntil", "PodStarterRestReason", "State", "Activity", "Start")
		t.Fatalf("%v; the slot: %s %s", err, last, ad)
	}
}

// restful lets slots rest, which the pool's configuration turns off. It removes
// what is known about the pod's health before, and when the test ends.
func restful(t *testing.T, longest int, more ...string) {
	t.Helper()
	wipe := func() {
		// Put in place by a rename, as starters do: a watch waits for that.
		_, err := pool.EP(context.Background(), side, "sh", "-c", `d=$(condor_config_val POD_STARTER_PRIVATE_DIR) && echo '{}' > "$d/health.json.e2e" && mv "$d/health.json.e2e" "$d/health.json"`)
		if err != nil {
			t.Error(err)
		}
		waitFor(t, "MY.Start =!= false")
	}
	wipe()
	t.Cleanup(wipe)
	configure(t, append(more, fmt.Sprintf("POD_STARTER_MAX_REST = %d", longest))...)
}

// waitFor is waitSlot until the end of the test.
func waitFor(t *testing.T, expression string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := harness.Poll(ctx, "a slot for which "+expression, func() (bool, error) {
		out, err := pool.AP(ctx, "condor_status", "-constraint", "HasPodStarter =?= true && ("+expression+")", "-af", "Name")
		return strings.TrimSpace(out) != "", err
	})
	if err != nil {
		t.Error(err)
	}
}

// negotiated returns after n more cycles of the negotiator.
func negotiated(t *testing.T, n int) {
	t.Helper()
	const line = "Finished Negotiation Cycle"
	first := -1
	err := harness.WaitFile(soon(t, patience), filepath.Join(pool.State, "log", "pool", "NegotiatorLog"), func(content []byte) (bool, error) {
		count := strings.Count(string(content), line)
		if first < 0 || count < first { // a new file
			first = count
		}
		return count >= first+n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// starts is how often a job was given to a starter.
func starts(t *testing.T, job harness.Job) int {
	t.Helper()
	out, err := pool.AP(t.Context(), "condor_q", job.ID(), "-af", "NumShadowStarts")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatalf("the number of starts of job %s is %q", job.ID(), out)
	}
	return n
}

// TestSickPod: a pod in which no job can run takes one job and no more, says in its
// ad what to repair, and takes jobs again after the repair.
func TestSickPod(t *testing.T) {
	oursOnly(t)
	restful(t, 300)
	binding, err := pool.Kubectl(t.Context(), nil, "get", "rolebinding", "glidein", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if binding, err = withoutState(binding); err != nil {
		t.Fatal(err)
	}
	mend := func() {
		if _, err := pool.Kubectl(context.Background(), strings.NewReader(binding), "apply", "-f", "-"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(mend)
	if _, err := pool.Kubectl(t.Context(), nil, "delete", "rolebinding", "glidein"); err != nil {
		t.Fatal(err)
	}
	s := job("exit=0", "universe = docker", "docker_image = "+pool.Image("busybox"))
	s.Count = 3
	jobs := submit(t, s)
	if _, err := jobs[0].WaitEvents(soon(t, patience), "an attempt that fails", failed); err != nil {
		t.Fatal(err)
	}
	waitSlot(t, `PodStarterHealthy == false && MY.Start == false && PodStarterOfflineUntil > time() && regexp("Role", PodStarterOfflineReason)`)
	t.Log(slotAd(t, "PodStarterOfflineReason"))
	negotiated(t, 3)
	if n := starts(t, jobs[0]); n != 1 {
		t.Errorf("the job was started %d times in a pod that was known to be sick", n)
	}
	mend()
	for _, job := range jobs {
		mustExit(t, job, 0)
	}
	waitSlot(t, `PodStarterHealthy == true && PodStarterOfflineUntil == 0 && PodStarterOfflineReason == ""`)
}

// TestHostileImage: an image that keeps the wrapper from working costs its owner
// the job, and nobody else a slot.
func TestHostileImage(t *testing.T) {
	oursOnly(t)
	restful(t, 300)
	images, err := podfailures.NewRegistry("127.0.0.1", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = images.Close() })
	run := strconv.FormatInt(time.Now().UnixMilli(), 36)
	for _, kind := range []string{"run-link", "run-closed", "run-link"} {
		hostile := submit(t, job("exit=0", "universe = docker", "docker_image = "+images.Image(kind, "health-"+run)))[0]
		end, err := hostile.WaitEnding(soon(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		if !end.Held || end.Code != 35 || end.Subcode != 6 || !strings.Contains(end.Reason, "With the pod's default image it works") {
			t.Fatalf("a job in an image with %s: %s", podfailures.Hostile[kind].What, end)
		}
		if n := starts(t, hostile); n != 1 {
			t.Errorf("it was started %d times", n)
		}
		// The starter writes its note before the job is held.
		said, err := pool.EP(t.Context(), side, "sh", "-c", `cat "$(condor_config_val POD_STARTER_PRIVATE_DIR)/health.json"`)
		if err != nil || strings.TrimSpace(said) != "{}" {
			t.Errorf("after it the pod's health is %s (%v), want no rest", said, err)
		}
	}
	waitSlot(t, `PodStarterHealthy == true && PodStarterOfflineUntil == 0 && (PodStarterRestUntil ?: 0) == 0`)
	good := submit(t, job("exit=0", "universe = docker", "docker_image = "+pool.Image("busybox")))[0]
	mustExit(t, good, 0)
}

// withoutState removes from an object what the API server added.
func withoutState(text string) (string, error) {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return "", err
	}
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			delete(meta, name)
		}
	}
	out, err := json.Marshal(object)
	return string(out), err
}

// TestSlotRests: between two jobs that failed without fault of their own there is a
// pause; after it the slot is as before.
func TestSlotRests(t *testing.T) {
	oursOnly(t)
	const rest = 5
	restful(t, rest, "POD_STARTER_BIND_TIMEOUT = 3")
	unlucky := submit(t, job("exit=0", "universe = docker", "docker_image = "+registry()+"/down/rest:1"))[0]
	if _, err := unlucky.WaitEvents(soon(t, patience), "an attempt that fails", failed); err != nil {
		t.Fatal(err)
	}
	waitSlot(t, `PodStarterRestUntil > 0 && regexp("down/rest", PodStarterRestReason) && PodStarterHealthy`)
	var at []time.Time
	_, err := unlucky.WaitEvents(soon(t, patience), "another one", func(events []harness.Event) bool {
		at = nil
		for _, e := range events {
			if e.Number == harness.EventRemoteError {
				stamp, err := time.Parse(time.DateTime, e.Stamp)
				if err != nil {
					t.Fatalf("the stamp of an event: %v", err)
				}
				at = append(at, stamp)
			}
		}
		return len(at) >= 2
	})
	if err != nil {
		t.Fatal(err)
	}
	if pause := at[1].Sub(at[0]); pause < (rest-1)*time.Second { // event times are whole seconds
		t.Errorf("the next attempt failed only %s later, the slot should have rested for %d s", pause, rest)
	}
	if err := unlucky.Tool(t.Context(), "condor_rm"); err != nil {
		t.Fatal(err)
	}
	mustExit(t, submit(t, job("exit=3"))[0], 3)
	waitSlot(t, `PodStarterRestUntil == 0 && PodStarterRestReason == ""`)
}

// TestWarmImages: the slot's ad lists the images that have run there, in the words
// of the jobs, so that jobs can look for them.
func TestWarmImages(t *testing.T) {
	oursOnly(t)
	mustExit(t, submit(t, job("exit=0", "universe = docker", "docker_image = "+pool.Image("busybox")))[0], 0)
	waitSlot(t, fmt.Sprintf("stringListMember(%s, PodStarterImages)", classads.Quote(pool.Image("busybox"))))
	for _, commands := range []string{
		"universe = docker\ndocker_image = " + pool.Image("busybox") + "\nrank = stringListMember(MY.DockerImage, TARGET.PodStarterImages)",
		"universe = container\ncontainer_image = docker://" + pool.Image("busybox"),
	} {
		s := job("facts", commands)
		s.Requirements = fmt.Sprintf("stringListMember(%s, TARGET.PodStarterImages)", classads.Quote(pool.Image("busybox")))
		job := submit(t, s)[0]
		mustExit(t, job, 0)
		seen, err := job.Facts("out")
		if err != nil {
			t.Fatal(err)
		}
		if seen.Image != "busybox" {
			t.Errorf("ran in %q", seen.Image)
		}
	}
	waitSlot(t, fmt.Sprintf("stringListMember(%s, PodStarterImages)", classads.Quote("docker://"+pool.Image("busybox"))))
	// By digest as well, which the kubelet reports a moment after the start.
	repository, _, _ := strings.Cut(pool.Image("busybox")[len(registry()):], ":")
	waitSlot(t, fmt.Sprintf("regexp(%s, PodStarterImages)", classads.Quote(registry()+repository+"@sha256:[0-9a-f]{64}")))
}

// TestPilotContainerDies: when the pilot container dies with a job, nothing of the
// job is left, and the payload container is as it was at the pod's beginning before
// the next pilot takes a job.
func TestPilotContainerDies(t *testing.T) {
	oursOnly(t)
	job := submit(t, job("ready sleep=600s", "universe = docker", "docker_image = "+pool.Image("busybox")))[0]
	ready(t)
	master, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool {
		return p.Comm == "condor_master" && p.Namespace == pool.PIDNamespace(side)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Kill(master[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Up(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := harness.WaitNone(soon(t, patience), payload()); err != nil {
		t.Error(err)
	}
	err = harness.Poll(soon(t, patience), "the default image", func() (bool, error) {
		out, err := pool.Kubectl(t.Context(), nil, "get", "pod", side.PodName(), "-o", "jsonpath={.spec."+pool.PayloadList()+"[?(@.name=='payload')].image}")
		return strings.HasPrefix(out, repository(pool.Image("debian"))+"/debian"), err
	})
	if err != nil {
		t.Error(err)
	}
	if err := job.Tool(t.Context(), "condor_rm"); err != nil {
		t.Fatal(err)
	}
	if err := pool.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustExit(t, submit(t, jobExit(5))[0], 5)
}

func jobExit(code int) harness.Submission { return job(fmt.Sprintf("exit=%d", code)) }

// TestKeeperIsReconfigured: the keeper reads its configuration again with the other daemons.
func TestKeeperIsReconfigured(t *testing.T) {
	oursOnly(t)
	starts := func() int {
		text, err := pool.EP(t.Context(), side, "sh", "-c", "cat /var/log/condor/StarterLog.keep")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(text, "Looking after the pod between jobs")
	}
	isKeeper := func(p harness.Process) bool {
		return p.Namespace == pool.PIDNamespace(side) && slices.Contains(p.Args, "-keep")
	}
	before := starts()
	keeper, err := harness.WaitSome(soon(t, patience), 1, isKeeper)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.EP(t.Context(), side, "condor_reconfig"); err != nil {
		t.Fatal(err)
	}
	if err := harness.Poll(soon(t, 30*time.Second), "the keeper's new configuration", func() (bool, error) { return starts() > before, nil }); err != nil {
		t.Error(err)
	}
	after, err := harness.WaitSome(soon(t, patience), 1, isKeeper)
	if err != nil {
		t.Fatal(err)
	}
	if after[0].PID != keeper[0].PID {
		t.Errorf("the master had to start another keeper: process %d instead of %d", after[0].PID, keeper[0].PID)
	}
}

// TestEndOfThePod: if its configuration says so, a pod ends when condor_master has
// ended by itself, although its restartPolicy is Always; but not when condor_master
// failed.
func TestEndOfThePod(t *testing.T) {
	oursOnly(t)
	name := "e2e-end"
	pod, err := endingPod(t, name)
	if err != nil {
		t.Fatal(err)
	}
	role := fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
 {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":%[1]q},"rules":[{"apiGroups":[""],"resources":["pods"],"resourceNames":[%[1]q],"verbs":["get","watch","patch"]}]},
 {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":%[1]q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":%[1]q},"subjects":[{"kind":"ServiceAccount","name":"glidein"}]},
 %[2]s]}`, name, pod)
	t.Cleanup(func() {
		_, err := pool.Kubectl(context.Background(), nil, "delete", "--ignore-not-found", "--grace-period=1", "role/"+name, "rolebinding/"+name, "pod/"+name)
		if err != nil {
			t.Error(err)
		}
	})
	if _, err := pool.Kubectl(t.Context(), strings.NewReader(role), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	// The kubelet may collect the first container as soon as the second has ended, so its last words are read before.
	words := ""
	if err := harness.Poll(soon(t, patience), "the end of the pod", func() (bool, error) {
		out, err := pool.Kubectl(t.Context(), nil, "get", "pod", name, "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].lastState.terminated.message}")
		phase, message, _ := strings.Cut(out, " ")
		words = cmp.Or(message, words)
		return phase == "Failed", err
	}); err != nil {
		state, _ := pool.Kubectl(t.Context(), nil, "get", "pod", name, "-o", "jsonpath={.status}")
		logs, _ := pool.Kubectl(t.Context(), nil, "logs", name)
		t.Fatalf("%v\n%s\n%s", err, state, logs)
	}
	out, err := pool.Kubectl(t.Context(), nil, "get", "pod", name, "-o", "jsonpath={.status.reason} {.spec.restartPolicy} {.status.containerStatuses[0].restartCount}")
	if err != nil {
		t.Fatal(err)
	}
	// It failed once and was started again; then it ended.
	if out != "DeadlineExceeded Always 1" || !strings.HasPrefix(words, "condor_master failed with exit code 4") {
		t.Errorf("the pod's end: %q, want DeadlineExceeded after one restart; why the first pilot ended: %q", out, words)
	}
}

// endingPod is a copy of the pod under test with another name and no payload
// container. Its condor_master fails once and then ends without an error.
func endingPod(t *testing.T, name string) (string, error) {
	t.Helper()
	const master = `#!/bin/sh
[ -e /run/podstarter/private/failed ] && exit 0
touch /run/podstarter/private/failed
exit 4
`
	return pilotAlone(t, name, "Always", `echo "POD_STARTER_END_POD = True" > /etc/condor/config.d/99-e2e.conf
mkdir /tmp/bin && printf %s "$1" > /tmp/bin/condor_master && chmod 755 /tmp/bin/condor_master && export PATH=/tmp/bin:$PATH
exec /opt/podstarter/entrypoint pilot`, "sh", master)
}

// TestUnreadableConfiguration: a pilot whose configuration has a mistake says which.
func TestUnreadableConfiguration(t *testing.T) {
	oursOnly(t)
	const name = "e2e-unreadable"
	pod, err := pilotAlone(t, name, "Never", `printf '%s\n' 'if no such condition' 'X = 1' 'endif' > /etc/condor/config.d/99-e2e.conf
exec /opt/podstarter/entrypoint pilot`)
	if err != nil {
		t.Fatal(err)
	}
	remove := func() error {
		_, err := pool.Kubectl(background(t), nil, "delete", "--ignore-not-found", "--grace-period=1", "pod/"+name)
		return err
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Kubectl(t.Context(), strings.NewReader(pod), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Kubectl(soon(t, patience), nil, "wait", "pod/"+name, "--for=jsonpath={.status.phase}=Failed", "--timeout=120s"); err != nil {
		t.Fatal(err)
	}
	log, err := pool.Kubectl(t.Context(), nil, "logs", name)
	if err != nil || !strings.Contains(log, "99-e2e.conf") || !strings.Contains(log, "is not a valid if condition") {
		t.Errorf("the pilot says %q, %v; want which file is wrong, and why", log, err)
	}
}

// pilotAlone is a copy of the pod under test with another name, no payload container, no credentials, and
// another command of its pilot: a script and its arguments.
func pilotAlone(t *testing.T, name, restart string, script ...string) (string, error) {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "get", "pod", side.PodName(), "-o", "json")
	if err != nil {
		return "", err
	}
	var live struct {
		Spec struct {
			NodeName   string
			Containers []map[string]any
			Volumes    []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &live); err != nil {
		return "", err
	}
	var pilot map[string]any
	for _, c := range live.Spec.Containers {
		if c["name"] == "pilot" {
			pilot = c
		}
	}
	if pilot == nil {
		return "", fmt.Errorf("the pod has no container pilot")
	}
	pilot["command"] = append([]string{"sh", "-c"}, script...)
	for _, v := range live.Spec.Volumes {
		if v["name"] == "log" { // that of the pod under test is the machine's
			delete(v, "hostPath")
			v["emptyDir"] = map[string]any{}
		}
		if v["name"] == "credentials" { // with a password, a tool meets the mistake before
			delete(v, "secret")
			v["emptyDir"] = map[string]any{}
		}
	}
	out, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"nodeName": live.Spec.NodeName, "hostNetwork": true, "restartPolicy": restart, "terminationGracePeriodSeconds": 1,
			"serviceAccountName": "glidein", "automountServiceAccountToken": false, "enableServiceLinks": false,
			"tolerations": []any{map[string]any{"operator": "Exists"}},
			"containers":  []any{pilot}, "volumes": live.Spec.Volumes,
		},
	})
	return string(out), err
}
