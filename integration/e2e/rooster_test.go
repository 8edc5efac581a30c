//go:build pool

package e2e

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

//go:embed testdata/rooster.sh
var roosterPool string

// roosterObjects are what a provisioner needs in its namespace. It stays: without a controller manager nobody could delete it.
const roosterObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: e2e-rooster}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: e2e-rooster}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: provisioner, namespace: e2e-rooster}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: provisioner, namespace: e2e-rooster}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list, watch, create, delete]}
- {apiGroups: [batch], resources: [jobs], verbs: [list, watch, create, delete]}
- {apiGroups: [""], resources: [secrets], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [podstarter-provisioner-site], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: provisioner, namespace: e2e-rooster}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: provisioner}
subjects: [{kind: ServiceAccount, name: provisioner}]
`

// roosterPod shows its token in its log. It is for the pool's node, since the pool may have no scheduler.
const roosterPod = `apiVersion: v1
kind: Pod
metadata: {name: glidein}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  hostNetwork: true
  nodeName: NODE
  containers:
  - {name: pilot, image: IMAGE, command: [sh, -c, "cat /token/pool; echo; exec sleep 1000"], volumeMounts: [{name: token, mountPath: /token}]}
  - {name: payload, image: IMAGE, command: [sleep, "1000"]}
  volumes:
  - {name: token, secret: {secretName: pool-token}}
`

// rooster is a personal pool with a provisioner.
type rooster struct {
	t         *testing.T
	dir, port string
}

// do runs a part of the script.
func (r *rooster) do(verb string, args ...string) string {
	r.t.Helper()
	out, err := pool.EPInput(r.t.Context(), side, strings.NewReader(personalConfiguration+roosterPool), append([]string{"sh", "-s", r.dir, r.port, verb}, args...)...)
	if err != nil {
		r.t.Fatalf("%s %v: %v\n%s", verb, args, err, out)
	}
	return out
}

// file writes a file of the pool's directory.
func (r *rooster) file(name, mode string, content io.Reader) {
	r.t.Helper()
	path := "/home/personal/" + r.dir + "/" + name
	if out, err := pool.EPInput(r.t.Context(), side, content, "sh", "-c", "cat >"+path+" && chmod "+mode+" "+path+" && chown 20007:20007 "+path); err != nil {
		r.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// until waits for a value of something that is looked at again and again.
func (r *rooster) until(what string, look func() (string, bool)) {
	r.t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		now, good := look()
		if good {
			return
		}
		last = now
	}
	r.t.Fatalf("%s: %s\nthe provisioner:\n%s\ncondor_rooster:\n%s", what, last, r.do("log", "provisioner"), r.do("log", "RoosterLog"))
}

// pods are those of a provisioner.
func (r *rooster) pods(of string) []string {
	r.t.Helper()
	out, err := pool.Kubectl(r.t.Context(), nil, "-n", "e2e-rooster", "get", "pods", "-o", "name", "-l", "provisioner.podstarter/name="+of)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(out, "pod/", ""))
}

// ads are the names of slots that the collector has.
func (r *rooster) ads(more ...string) []string {
	r.t.Helper()
	out := strings.Fields(r.do("do", append([]string{"condor_status", "-af", "Name"}, more...)...))
	slices.Sort(out)
	return out
}

// rounds waits until the negotiator has begun a cycle after so many rounds of the provisioner, which takes one every ten seconds.
func (r *rooster) rounds(n int) {
	r.t.Helper()
	cycle := func() int {
		at, err := strconv.Atoi(strings.TrimSpace(r.do("do", "condor_status -negotiator -af LastNegotiationCycleTime0")))
		if err != nil {
			r.t.Fatal(err)
		}
		return at
	}
	want := cycle() + 11*n
	r.until("a cycle of the negotiator", func() (string, bool) { got := cycle(); return strconv.Itoa(want - got), got > want })
}

// claims are those of the token that a pod has.
func (r *rooster) claims(pod string) map[string]any {
	r.t.Helper()
	log := ""
	r.until("the token of "+pod, func() (string, bool) {
		var err error
		log, err = pool.Kubectl(r.t.Context(), nil, "-n", "e2e-rooster", "logs", pod, "-c", "pilot")
		return fmt.Sprint(log, err), err == nil && log != ""
	})
	parts := strings.Split(strings.TrimSpace(log), ".")
	if len(parts) != 3 {
		r.t.Fatalf("the token of %s is %q", pod, log)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		r.t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil {
		r.t.Fatal(err)
	}
	return claims
}

// checkToken checks that a pod has a token of its own with a lifetime and rights, in a Secret that goes with it.
func (r *rooster) checkToken(pod, subject string, lifetime float64, scope string) {
	r.t.Helper()
	claims := r.claims(pod)
	got := []any{claims["sub"], claims["scope"], claims["exp"].(float64) - claims["iat"].(float64)}
	if diff := cmp.Diff([]any{subject, scope, lifetime}, got); diff != "" {
		r.t.Errorf("the token of %s: -want +got\n%s", pod, diff)
	}
	out, err := pool.Kubectl(r.t.Context(), nil, "-n", "e2e-rooster", "get", "secret", pod, "-o",
		"jsonpath={.immutable} {.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].name} {.metadata.ownerReferences[0].uid}")
	if err != nil {
		r.t.Fatal(err)
	}
	uid, err := pool.Kubectl(r.t.Context(), nil, "-n", "e2e-rooster", "get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		r.t.Fatal(err)
	}
	if want := "true Pod " + pod + " " + uid; out != want {
		r.t.Errorf("the Secret is %q, want %q", out, want)
	}
}

// startRooster starts a pool with both ways to make pods for matches of offline ads.
func startRooster(t *testing.T) *rooster {
	t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.GiveDisk(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Kubectl(t.Context(), strings.NewReader(roosterObjects), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	token, err := pool.Kubectl(t.Context(), nil, "-n", "e2e-rooster", "create", "token", "provisioner")
	if err != nil {
		t.Fatal(err)
	}
	node, err := pool.Kubectl(t.Context(), nil, "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	if err != nil {
		t.Fatal(err)
	}
	server, err := pool.EP(t.Context(), side, "printenv", "KUBERNETES_SERVICE_PORT")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(pool.State, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "condor_pod_provisioner")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./provisioner")
	build.Dir, build.Env = pool.Root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := &rooster{t: t, dir: "rooster." + strconv.Itoa(port), port: strconv.Itoa(port)}
	r.do("start")
	binary, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	r.file("condor_pod_provisioner", "755", binary)
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:%s", certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: c, context: {cluster: c, user: u, namespace: e2e-rooster}}]
current-context: c
`, strings.TrimSpace(server), base64.StdEncoding.EncodeToString(ca), strings.TrimSpace(token))
	manifest := strings.NewReplacer("IMAGE", pool.Image("busybox"), "NODE", node).Replace(roosterPod)
	const template = "name: plain\nmanifest: pod.yaml\npartitionable: true\nshapes:\n- {name: two, cpus: 2, memory: 256Mi, disk: 64Mi}\n"
	for name, text := range map[string]string{
		"kubeconfig":               kubeconfig,
		"site/provisioner.yaml":    "name: site\ninterval: 10s\nmode: offline-ads\nlimits: {pods: 2}\npolicy: {settle: 1m}\noffline: {spare: 2}\n",
		"wake/provisioner.yaml":    "name: wake\nlimits: {pods: 1}\n",
		"site/pod.yaml":            manifest,
		"wake/pod.yaml":            manifest,
		"site/plain.template.yaml": template + "token: {secret: pool-token, file: pool, lifetime: 1h}\n",
		"wake/plain.template.yaml": template + "token: {secret: pool-token, file: pool, lifetime: 2h, key: POOL, identity: execute@personal.invalid, authorizations: [READ]}\n",
	} {
		r.file(name, "600", strings.NewReader(text))
	}
	r.do("up")
	return r
}

// TestOfflineAds: the negotiator matches a job with an offline ad, and the provisioner makes one pod for it, whatever happens. The
// ads are taken back when the pod reports, and at the end.
func TestOfflineAds(t *testing.T) {
	oursOnly(t)
	r := startRooster(t)
	defer r.do("down")
	defer deletePods(t)
	r.do("run")
	r.until("spare ads", func() (string, bool) { ads := r.ads(); return fmt.Sprint(ads), len(ads) == 2 })
	if got := r.pods("site"); len(got) != 0 {
		t.Fatalf("without a job there are %v", got)
	}

	r.do("submit")
	r.until("a pod", func() (string, bool) { pods := r.pods("site"); return fmt.Sprint(pods), len(pods) == 1 })
	pod := r.pods("site")[0]
	r.checkToken(pod, "personal@personal.invalid", 3600, "condor:/ADVERTISE_STARTD condor:/ADVERTISE_MASTER")
	// The job matches in each cycle.
	r.rounds(3)
	matched := r.ads("-constraint", "'MachineLastMatchTime > 0'")
	if diff := cmp.Diff([]string{"offline@" + pod + ".two"}, matched); diff != "" {
		t.Errorf("the job matches other ads than that of its pod: -want +got\n%s", diff)
	}
	// Killed, and started anew.
	r.do("do", "kill -9 $(cat provisioner.pid)")
	r.do("run")
	r.rounds(2)
	if diff := cmp.Diff([]string{pod}, r.pods("site")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// Its startd reports, and the job begins.
	r.do("do", "condor_rm -all")
	r.do("do", fmt.Sprintf(`printf 'MyType = "Machine"\nName = "slot1@%s"\nMachine = "%s"\nMyAddress = "<127.0.0.1:1>"\nState = "Claimed"\nSTART = true\nRequirements = START\nCpus = 2\nMemory = 256\nDisk = 65536\n' | condor_advertise UPDATE_STARTD_AD`, pod, pod))
	r.until("the ad is taken back", func() (string, bool) {
		ads := r.ads("-constraint", "'Offline =?= true'")
		return fmt.Sprint(ads), len(ads) > 0 && !slices.Contains(ads, "offline@"+pod+".two")
	})
	r.rounds(2)
	if diff := cmp.Diff([]string{pod}, r.pods("site")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if log := r.do("log", "RoosterLog"); strings.Contains(log, "Sending wakeup call") {
		t.Errorf("condor_rooster wakes what the provisioner makes:\n%s", log)
	}

	r.do("end")
	if diff := cmp.Diff([]string{"slot1@" + pod}, r.ads()); diff != "" {
		t.Errorf("at the end: -want +got\n%s", diff)
	}
	if log := r.do("log", "provisioner"); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("the provisioner met errors:\n%s", log)
	}
}

// TestOfflineAdsWithdrawn: a pod that does not begin is withdrawn once the negotiator matches no job with its ad.
func TestOfflineAdsWithdrawn(t *testing.T) {
	oursOnly(t)
	r := startRooster(t)
	defer r.do("down")
	defer deletePods(t)
	r.file("site/pod.yaml", "600", strings.NewReader(strings.NewReplacer("IMAGE", pool.Image("busybox"), "nodeName: NODE", "nodeSelector: {nowhere: at-all}").Replace(roosterPod)))
	r.do("run")
	r.do("submit")
	r.until("a pod", func() (string, bool) { pods := r.pods("site"); return fmt.Sprint(pods), len(pods) == 1 })
	r.do("do", "condor_rm -all")
	r.until("no pod", func() (string, bool) { pods := r.pods("site"); return fmt.Sprint(pods), len(pods) == 0 })
	if log := r.do("log", "provisioner"); !strings.Contains(log, "A pod is withdrawn") {
		t.Errorf("the provisioner's log:\n%s", log)
	}
}

// TestRoosterWakes: condor_rooster asks for a pod each time that it looks, and gets one.
func TestRoosterWakes(t *testing.T) {
	oursOnly(t)
	r := startRooster(t)
	defer r.do("down")
	defer deletePods(t)
	r.do("do", "./condor_pod_provisioner -config wake/provisioner.yaml -templates wake -ads 1 >ads; condor_advertise -multiple UPDATE_STARTD_AD ads")
	r.do("submit")
	wakes := func(words string) int { return strings.Count(r.do("log", "RoosterLog"), words) }
	r.until("a pod", func() (string, bool) { pods := r.pods("wake"); return fmt.Sprint(pods), len(pods) == 1 })
	pod := r.pods("wake")[0]
	r.checkToken(pod, "execute@personal.invalid", 7200, "condor:/READ")
	r.until("further wakes", func() (string, bool) {
		n := wakes("the pod " + pod + " is on its way")
		return strconv.Itoa(n), n >= 2
	})
	if n := wakes("the pod " + pod + " is made"); n != 1 {
		t.Errorf("condor_rooster was told %d times that the pod is made:\n%s", n, r.do("log", "RoosterLog"))
	}
	// With the pod there, the job that waits is another one. The limit is one pod.
	r.do("do", fmt.Sprintf(`printf 'MyType = "Machine"\nName = "slot1@%s"\nMachine = "%s"\nMyAddress = "<127.0.0.1:1>"\nState = "Claimed"\nSTART = true\nRequirements = START\nCpus = 2\nMemory = 256\nDisk = 65536\n' | condor_advertise UPDATE_STARTD_AD`, pod, pod))
	r.until("the limit", func() (string, bool) {
		n := wakes("the limit of 1 pods is reached")
		return strconv.Itoa(n), n >= 1
	})
	if diff := cmp.Diff([]string{pod}, r.pods("wake")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// deletePods takes away what provisioners have made.
func deletePods(t *testing.T) {
	t.Helper()
	if _, err := pool.Kubectl(t.Context(), nil, "-n", "e2e-rooster", "delete", "pods,secrets", "-l", "provisioner.podstarter/name", "--grace-period=1"); err != nil {
		t.Error(err)
	}
}
