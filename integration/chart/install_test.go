//go:build pool

package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"podstarter/integration/harness"
)

// patience is how long each step may take: much longer than it does.
const patience = 3 * time.Minute

// A siteAdmin has rights in one namespace, and Helm.
type siteAdmin struct {
	t    *testing.T
	pool *harness.Pool
	helm *action.Configuration
}

// TestInstall: an administrator of a namespace installs the packaged chart as a Deployment. A job runs and ends there; an upgrade
// replaces the pod; of the release, nothing stays.
func TestInstall(t *testing.T) {
	ctx := t.Context()
	pool, err := harness.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !pool.Controllers || pool.Network != harness.HostNetwork {
		t.Fatal("the pool cannot run Deployments; start it with: pool up --controllers --network host --slots 1")
	}
	if err := pool.GiveDisk(ctx); err != nil {
		t.Fatal(err)
	}
	a := newSiteAdmin(ctx, t, pool)
	values := a.values(ctx)
	before := a.objects(ctx)

	began := time.Now()
	install := action.NewInstall(a.helm)
	install.ReleaseName, install.Namespace = name, namespace
	install.WaitStrategy, install.Timeout, install.PostRenderer = kube.StatusWatcherStrategy, patience, nodeNetwork{}
	if _, err := install.RunWithContext(ctx, packaged(t), values); err != nil {
		t.Fatalf("installing: %v\n%s", err, a.describe(ctx))
	}
	t.Logf("installed after %v", time.Since(began).Round(100*time.Millisecond))
	if said := a.job(ctx); !strings.Contains(said, "Debian") {
		t.Errorf("the job does not say which system it ran in: %q", said)
	}
	t.Logf("a job has ended after %v", time.Since(began).Round(100*time.Millisecond))

	first := a.pods(ctx)
	values = merged(values, parsed(t, "config: {95-test.conf: \"ChartUpgraded = True\\nSTARTD_ATTRS = $(STARTD_ATTRS) ChartUpgraded\\n\"}"))
	upgrade := action.NewUpgrade(a.helm)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout, upgrade.PostRenderer = namespace, kube.StatusWatcherStrategy, patience, nodeNetwork{}
	if _, err := upgrade.RunWithContext(ctx, name, packaged(t), values); err != nil {
		t.Fatalf("upgrading: %v\n%s", err, a.describe(ctx))
	}
	a.await(ctx, "a pod in the place of the first", func() bool {
		pods := a.pods(ctx)
		return len(pods) == 1 && !slices.Contains(first, pods[0])
	})
	a.await(ctx, "a slot that has the new configuration", func() bool {
		said, err := pool.AP(ctx, "condor_status", "-af", "Name", "-constraint", "ChartUpgraded =?= True")
		return err == nil && strings.Count(said, "\n") == 1
	})
	if maps := a.kubectl(ctx, "get", "configmaps", "-o", "name", "-l", "app.kubernetes.io/instance="+name); strings.Count(maps, "\n") != 0 {
		t.Errorf("not one configuration is left:\n%s", maps)
	}
	t.Logf("upgraded after %v", time.Since(began).Round(100*time.Millisecond))

	uninstall := action.NewUninstall(a.helm)
	uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, patience
	if _, err := uninstall.Run(name); err != nil {
		t.Fatalf("uninstalling: %v\n%s", err, a.describe(ctx))
	}
	var left string
	a.await(ctx, "an empty namespace", func() bool { left = a.objects(ctx); return left == before })
	t.Logf("uninstalled after %v", time.Since(began).Round(100*time.Millisecond))
}

// packaged is the chart as `helm install FILE.tgz` has it.
func packaged(t *testing.T) *chartv2.Chart {
	t.Helper()
	file, err := chartutil.Save(loaded(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newSiteAdmin is one in a new namespace, with a token for the pool in it.
func newSiteAdmin(ctx context.Context, t *testing.T, pool *harness.Pool) *siteAdmin {
	t.Helper()
	a := &siteAdmin{t: t, pool: pool, helm: action.NewConfiguration()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// A job that has not ended would wait in the queue for ever.
		if _, err := pool.AP(ctx, "condor_rm", "-constraint", "ChartTest =?= True"); err != nil && t.Failed() {
			t.Log(err)
		}
		if err := pool.RemoveNamespace(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	text, err := pool.Administrator(ctx, namespace)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig, *flags.Namespace = kubeconfig, namespace
	if err := a.helm.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	token, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "exec", "pool", "--",
		"condor_token_create", "-identity", "condor@pool.invalid", "-authz", "ADVERTISE_STARTD", "-authz", "ADVERTISE_MASTER")
	if err != nil {
		t.Fatal(err)
	}
	a.kubectl(ctx, "create", "secret", "generic", "glidein-credentials", "--from-literal=glidein.token="+strings.TrimSpace(token))
	return a
}

// values are those of the pool, whose own configuration is read last.
func (a *siteAdmin) values(ctx context.Context) map[string]any {
	a.t.Helper()
	port, err := a.pool.EP(ctx, harness.Ours, "printenv", "KUBERNETES_SERVICE_PORT")
	if err != nil {
		a.t.Fatal(err)
	}
	var pod struct {
		Spec struct {
			Volumes []struct{ ConfigMap struct{ Name string } }
		}
	}
	a.read(ctx, &pod, "pod/"+harness.Ours.PodName())
	var config struct{ Data map[string]string }
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap.Name != "" {
			a.read(ctx, &config, "configmap/"+v.ConfigMap.Name)
		}
	}
	return map[string]any{
		"kind": "deployment",
		"pool": object{"collector": "from.the.file.below", "domain": "pool.invalid"},
		"pilot": object{
			"image": a.pool.Image("pilot"),
			"env":   []any{object{"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"}, object{"name": "KUBERNETES_SERVICE_PORT", "value": strings.TrimSpace(port)}},
		},
		// The pool's own execution point stays, and the machine has no room for two as large as deployed.
		"payload": object{"image": a.pool.Image("debian"), "requests": object{"cpu": "10m"}},
		"config": object{"90-test.conf": config.Data["90-test.conf"] + `
# Pods that follow each other have the node's network together.
SHARED_PORT_PORT = 0
ChartTest = True
STARTD_ATTRS = $(STARTD_ATTRS) ChartTest
START = TARGET.ChartTest =?= True
`},
	}
}

// read reads an object of the pool's own.
func (a *siteAdmin) read(ctx context.Context, into any, what string) {
	a.t.Helper()
	text, err := a.pool.Kubectl(ctx, nil, "-n", harness.Namespace, "get", what, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(text), into)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// nodeNetwork gives the release's pods the network that all pods of the pool have, as a site changes what the chart has no value for.
type nodeNetwork struct{}

func (nodeNetwork) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := byName(rendered.Bytes())
	if err != nil {
		return nil, err
	}
	var spec object
	if pod, ok := objects["Pod/"+name]; ok {
		spec = pod["spec"].(object)
	}
	for _, kind := range []string{"Deployment/", "Job/"} {
		if owner, ok := objects[kind+name]; ok {
			spec = owner["spec"].(object)["template"].(object)["spec"].(object)
		}
	}
	spec["hostNetwork"], spec["dnsPolicy"] = true, "Default"
	var changed bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		text, err := json.Marshal(objects[key])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&changed, "---\n%s\n", text)
	}
	return &changed, nil
}

// kubectl runs kubectl in the namespace, as the cluster's administrator.
func (a *siteAdmin) kubectl(ctx context.Context, argv ...string) string {
	a.t.Helper()
	out, err := a.pool.Kubectl(ctx, nil, append([]string{"-n", namespace}, argv...)...)
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// pods are the uids of the glidein's pods.
func (a *siteAdmin) pods(ctx context.Context) []string {
	a.t.Helper()
	return strings.Fields(a.kubectl(ctx, "get", "pods", "-l", "app.kubernetes.io/instance="+name, "-o", "jsonpath={.items[*].metadata.uid}"))
}

// objects are the names of all objects in the namespace, except what Kubernetes notes by itself.
func (a *siteAdmin) objects(ctx context.Context) string {
	a.t.Helper()
	kinds := strings.Fields(a.kubectl(ctx, "api-resources", "--namespaced", "--verbs=list", "-o", "name"))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return strings.HasPrefix(kind, "events") })
	return a.kubectl(ctx, "get", strings.Join(kinds, ","), "-o", "name", "--ignore-not-found")
}

// job runs a job at the pool's access point, and returns its output.
func (a *siteAdmin) job(ctx context.Context) string {
	a.t.Helper()
	said, err := a.pool.AP(ctx, "sh", "-ec", `cd $(mktemp -d)
cat > job.sub <<END
universe = docker
docker_image = `+a.pool.Image("debian")+`
executable = /bin/cat
arguments = /etc/os-release
transfer_executable = false
should_transfer_files = yes
output = out
log = log
request_cpus = 1
request_memory = 128M
request_disk = 100M
requirements = TARGET.ChartTest =?= True
+ChartTest = True
queue
END
condor_submit -terse job.sub >&2
condor_wait -wait 180 log >&2
cat out`)
	if err != nil {
		a.t.Fatalf("on the access point: %v\n%s\n%s", err, said, a.describe(ctx))
	}
	return said
}

func (a *siteAdmin) await(ctx context.Context, what string, done func() bool) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := harness.Poll(ctx, what, func() (bool, error) { return done(), nil }); err != nil {
		a.t.Fatalf("%v\n%s", err, a.describe(context.WithoutCancel(ctx)))
	}
}

// describe is what is known of the release's objects.
func (a *siteAdmin) describe(ctx context.Context) string {
	out, err := a.pool.Kubectl(ctx, nil, "-n", namespace, "describe", "deployments,jobs,pods")
	if err != nil {
		return err.Error()
	}
	return out + "\n" + a.objects(ctx)
}

// TestJobEnds: a release that is a Job runs a job of the pool, and is complete when it has had none for a while.
func TestJobEnds(t *testing.T) {
	ctx := t.Context()
	pool, err := harness.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a := newSiteAdmin(ctx, t, pool)
	values := merged(a.values(ctx), parsed(t, "{kind: job, lifetime: {idle: 30}, config: {95-test.conf: \"UPDATE_INTERVAL = 5\\n\"}}"))
	began := time.Now()
	install := action.NewInstall(a.helm)
	install.ReleaseName, install.Namespace, install.PostRenderer, install.WaitStrategy = name, namespace, nodeNetwork{}, kube.HookOnlyStrategy
	if _, err := install.RunWithContext(ctx, packaged(t), values); err != nil {
		t.Fatalf("installing: %v\n%s", err, a.describe(ctx))
	}
	if said := a.job(ctx); !strings.Contains(said, "Debian") {
		t.Errorf("the job does not say which system it ran in: %q", said)
	}
	t.Logf("a job has ended after %v", time.Since(began).Round(100*time.Millisecond))
	a.await(ctx, "the Job to be complete", func() bool {
		return a.kubectl(ctx, "get", "job", name, "-o", "jsonpath={.status.succeeded} {.status.conditions[?(@.type=='Complete')].status}") == "1 True"
	})
	t.Logf("the Job is complete after %v", time.Since(began).Round(100*time.Millisecond))
	const pilot = "jsonpath={.items[*].status.phase} {.items[*].status.containerStatuses[*].state.terminated.message}"
	if end := a.kubectl(ctx, "get", "pods", "-l", "app.kubernetes.io/instance="+name, "-o", pilot); !strings.HasPrefix(end, "Succeeded ") || !strings.Contains(end, "idle for too long") {
		t.Errorf("its pod ended with %q", end)
	}
}

// TestPodStays: a bare pod cannot be changed. Helm says so, and the pod stays as it is.
func TestPodStays(t *testing.T) {
	ctx := t.Context()
	pool, err := harness.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a := newSiteAdmin(ctx, t, pool)
	values := merged(a.values(ctx), parsed(t, "kind: pod"))
	install := action.NewInstall(a.helm)
	install.ReleaseName, install.Namespace, install.PostRenderer, install.WaitStrategy = name, namespace, nodeNetwork{}, kube.HookOnlyStrategy
	if _, err := install.RunWithContext(ctx, packaged(t), values); err != nil {
		t.Fatalf("installing: %v\n%s", err, a.describe(ctx))
	}
	first := a.pods(ctx)
	upgrade := action.NewUpgrade(a.helm)
	upgrade.Namespace, upgrade.PostRenderer, upgrade.WaitStrategy = namespace, nodeNetwork{}, kube.HookOnlyStrategy
	_, err = upgrade.RunWithContext(ctx, name, packaged(t), merged(values, parsed(t, "metrics: true")))
	if err == nil || !strings.Contains(err.Error(), "pod updates may not change fields") {
		t.Errorf("upgrading: %v, want the API server's words", err)
	}
	t.Log(err)
	if diff := cmp.Diff(first, a.pods(ctx)); diff != "" || len(first) != 1 {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
}

// TestAccepted: the API server accepts all that the chart makes, also of values that no kustomization has.
func TestAccepted(t *testing.T) {
	ctx := t.Context()
	pool, err := harness.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "{kind: job, payload: {sidecars: true}, deployment: {disruptionBudget: false}}", "{kind: pod, replicas: 1, priorityClassName: \"\", deployment: {disruptionBudget: false}}"} {
		objects, _, err := template(t, merged(parsed(t, everything), parsed(t, other)))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			o := objects[key]
			o["metadata"].(object)["namespace"] = harness.Namespace
			o["metadata"].(object)["name"] = "chart-dry-run"
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := pool.Kubectl(ctx, strings.NewReader(string(text)), "create", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
				t.Errorf("the API server does not accept %s: %v\n%s", key, err, out)
			}
		}
	}
}

// TestSameAsKubectl is TestSameAsKustomize with the program that sites have.
func TestSameAsKubectl(t *testing.T) {
	pool, err := harness.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compareAll(t, func(t *testing.T, dir string) ([]byte, error) {
		out, err := pool.Kubectl(t.Context(), nil, "kustomize", dir)
		return []byte(out), err
	})
}
