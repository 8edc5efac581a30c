//go:build pool

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

var update = flag.Bool("update", false, "write what -check says of a healthy pod into testdata")

// TestCheckOfHealthyPod: what `condor_pod_starter -check` prints in the pool's own
// pod, word for word. The one warning is about the node's network, which a pod with users
// of its own does not have.
func TestCheckOfHealthyPod(t *testing.T) {
	oursOnly(t)
	program, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	out, err := pool.EP(t.Context(), side, program, "-check")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := steady(out)
	file := "testdata/check.txt"
	if pool.OwnUsers {
		file = "testdata/check-own-users.txt"
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-check (-want +got, rewrite with -update):\n%s\n%s", diff, out)
	}
}

// passing is text that differs between runs or machines.
var passing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`, payload-\d+`), ""}, // further slots
	{regexp.MustCompile(`(?m)^WARN +configuration +SLOT(?:[02-9]|1\d|1_\d)\S* .*\n.*\n`), ""},
	{regexp.MustCompile(`\(set at \S+, line \d+\)`), "(set at PLACE)"},
	{regexp.MustCompile(`\d+ to be warned of`), "N to be warned of"},
	{regexp.MustCompile(`(?m)^.*payload-\d+ .*\n`), ""},
	{regexp.MustCompile(`shares no processes with the pilot`), "has fewer capabilities than the pilot"},
	{regexp.MustCompile(`payload containers \(\d+\)`), "payload containers (N)"},
	{regexp.MustCompile(`^podstarter .*\n`), "podstarter VERSION\n"},
	{regexp.MustCompile(`https://[\d.]+:\d+`), "https://SERVER"},
	{regexp.MustCompile(`\S+ says what images`), "REGISTRY says what images"},
	{regexp.MustCompile(`in \d[\d.]*m?s\b`), "in TIME"},
	{regexp.MustCompile(`owner \d+`), "owner UID"},
	{regexp.MustCompile(`(?m)^(ok    cgroups +)version.*$`), "${1}VERSION"},
	{regexp.MustCompile(`\d+ ok,`), "N ok,"},
	{regexp.MustCompile(`  +`), "  "}, // the width of a column
}

func steady(out string) string {
	for _, p := range passing {
		out = p.pattern.ReplaceAllString(out, p.by)
	}
	return out
}

// TestCheckOfBrokenPods: the check finds each mistake in the manifest of a real pod
// that has it, and names the line to change.
func TestCheckOfBrokenPods(t *testing.T) {
	oursOnly(t)
	// These pods have other names than the Role allows. A finding also says that
	// their Role allows too much.
	token, err := pool.PilotToken(t.Context(), side)
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := pool.WithToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	loosen(t, pilot)
	pods := []struct {
		name string
		edit func(pod map[string]any)
		want []string // a grade, and the line to change, or what is well
	}{
		{"check-open", func(pod map[string]any) {
			payload := container(pod, "payload")
			security := payload["securityContext"].(map[string]any)
			security["capabilities"] = container(pod, "pilot")["securityContext"].(map[string]any)["capabilities"]
			delete(security, "allowPrivilegeEscalation")
			delete(security, "seccompProfile")
			payload["env"] = payload["env"].([]any)[:1]
			payload["volumeMounts"] = append(payload["volumeMounts"].([]any),
				map[string]any{"name": "kubernetes", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"})
			spec := pod["spec"].(map[string]any)
			delete(spec, "enableServiceLinks")
			spec["shareProcessNamespace"] = true // whatever the pool's pod does
			delete(spec, "serviceAccount")
			spec["serviceAccountName"] = "e2e-unknown"
		}, []string{
			"BAD spec.automountServiceAccountToken: false",
			"BAD spec.containers[name=PILOT].securityContext.capabilities.add",
			"WARN spec.containers[name=payload].securityContext.allowPrivilegeEscalation: false",
			"WARN spec.containers[name=payload].securityContext.seccompProfile.type: RuntimeDefault",
			"WARN spec.containers[name=payload].env[name=NVIDIA_VISIBLE_DEVICES].value: void",
			"WARN spec.enableServiceLinks: false",
			"WARN the Roles bound to service account e2e-unknown",
			"WARN kubectl apply -k deploy/policy, with system:serviceaccount:podstarter:e2e-unknown",
			"BAD resourceNames in the Role, or kubectl apply -k deploy/policy",
		}},
		{"check-stuck", func(pod map[string]any) {
			payload := container(pod, "payload")
			payload["command"] = []string{"/proc/slabinfo", "-control", "/run/podstarter/control/elsewhere"}
			delete(payload, "args")
			delete(payload, "workingDir")
			payload["imagePullPolicy"] = "Always"
			delete(payload, "env")
			spec := pod["spec"].(map[string]any)
			spec["restartPolicy"] = "Never"
			for _, v := range spec["volumes"].([]any) {
				if v := v.(map[string]any); v["name"] == "podstarter-control" {
					v["emptyDir"] = map[string]any{}
				}
			}
		}, []string{
			"BAD spec.restartPolicy: Always",
			"BAD spec.containers[name=payload].args: [-control, /run/podstarter/control/payload]",
			"BAD spec.containers[name=payload].workingDir: /",
			"BAD spec.containers[name=payload].imagePullPolicy: IfNotPresent",
			"BAD spec.containers[name=payload].env[name=POD_STARTER_NONCE]",
			"WARN spec.volumes[name=podstarter-control].emptyDir.sizeLimit: 64Mi",
			"BAD kubectl describe pod check-stuck",
			"WARN the Roles bound to service account glidein",
			"OK denies what a pilot need not change",
			"OK the Role names none, but a policy keeps this token from pod ",
		}},
		{"check-ends", func(pod map[string]any) {
			spec := pod["spec"].(map[string]any)
			spec["restartPolicy"] = "OnFailure"
			payload := container(pod, "payload")
			delete(payload, "restartPolicy") // if it is a sidecar
			spec["initContainers"] = slices.DeleteFunc(spec["initContainers"].([]any), isPayload)
			spec["containers"] = append(slices.DeleteFunc(spec["containers"].([]any), isPayload), payload)
		}, []string{"BAD spec.initContainers[name=payload].restartPolicy: Always"}},
	}
	for _, p := range pods {
		startIdle(t, p.name, p.edit)
	}
	for _, p := range pods {
		t.Run(p.name, func(t *testing.T) {
			if _, err := pool.Kubectl(soon(t, patience), nil, "-n", harness.Namespace, "wait", "--for=condition=ContainersReady", "--timeout=2m", "pod/"+p.name); err != nil {
				t.Fatal(err)
			}
			// It exits with 1 when something is bad; kubectl passes that on.
			out, err := pool.Kubectl(soon(t, patience), nil, "-n", harness.Namespace, "exec", p.name, "-c", "pilot", "--",
				"/opt/podstarter/bin/condor_pod_starter", "-check", "-json")
			if err == nil || !strings.Contains(err.Error(), "exit code 1") {
				t.Errorf("-check ends with %v, want exit code 1", err)
			}
			var said struct {
				Findings []struct{ Grade, What, Detail, Fix string }
			}
			if err := json.Unmarshal([]byte(out), &said); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range p.want {
				if p.name != "check-ends" {
					want = strings.Replace(want, "spec.containers[name=payload]", "spec."+pool.PayloadList()+"[name=payload]", 1)
				}
				grade, fix, _ := strings.Cut(want, " ")
				found := false
				for _, f := range said.Findings {
					line := f.Fix
					if f.Grade == "ok" {
						line = f.Detail
					}
					found = found || strings.EqualFold(f.Grade, grade) && strings.HasPrefix(line, fix)
				}
				if !found {
					t.Errorf("the check does not mention %q:\n%s", want, out)
				}
			}
		})
	}
}

func isPayload(container any) bool {
	name, _ := container.(map[string]any)["name"].(string)
	return strings.HasPrefix(name, "payload")
}

// startIdle starts a copy of the glidein pod whose pilot has the configuration
// but does not run HTCondor, so that the pool does not hear of it.
func startIdle(t *testing.T, name string, edit func(pod map[string]any)) {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod", side.PodName(), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var live map[string]any
	if err := json.Unmarshal([]byte(text), &live); err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": live["spec"],
		"metadata": map[string]any{"name": name, "namespace": harness.Namespace}}
	container(pod, "pilot")["command"] = []string{"sh", "-c", "cp /etc/podstarter/config/*.conf /etc/condor/config.d/ && exec sleep infinity"}
	container(pod, "payload")["image"] = pool.Image(pool.DefaultImage)
	// Its log directory is the live one's.
	spec := pod["spec"].(map[string]any)
	for _, v := range spec["volumes"].([]any) {
		if v := v.(map[string]any); v["name"] == "log" {
			delete(v, "hostPath")
			v["emptyDir"] = map[string]any{}
		}
	}
	edit(pod)
	data, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	remove := func() error {
		_, err := pool.Kubectl(background(t), nil, "-n", harness.Namespace, "delete", "pod", name, "--ignore-not-found", "--grace-period=1", "--wait")
		return err
	}
	// A run that was killed may have left one.
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	if _, err := pool.Kubectl(t.Context(), bytes.NewReader(data), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// The manual shows what the tests have seen.
func TestCheckInManual(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(pool.Root, "docs", "admin", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/check.txt")
	if err != nil {
		t.Fatal(err)
	}
	shown := steady(strings.ReplaceAll(string(page), "\n    ", "\n"))
	if !strings.Contains(shown, strings.TrimPrefix(string(want), "podstarter VERSION\n")) {
		t.Errorf("docs/admin/permissions.md does not show what the pool's pod says, which is\n%s", want)
	}
}
