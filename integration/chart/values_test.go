package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
)

// everything sets each value to something else than its default.
const everything = `
kind: deployment
replicas: 2
mode: unshared
pool: {collector: "[2001:db8::1]:9618", domain: physics.example, credentials: my-token}
pilot:
  image: registry.physics.example:5000/pilot@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  requests: {cpu: 0.2, memory: 300Mi, disk: 1Gi}
  limits: {cpu: 500m, memory: 600Mi, disk: 3Gi}
  env: [{name: http_proxy, value: "http://proxy.physics.example:3128"}]
  volumeMounts: [{name: data, mountPath: /data, readOnly: true}]
payload:
  image: docker.io/library/alpine:3
  slots: 2
  spares: 1
  partitionable: true
  sidecars: false
  cpu: 4
  memory: 8Gi
  disk: 20G
  shm: 2Gi
  requests: {cpu: 2500m, memory: 6Gi, disk: 14G}
  volumeMounts: [{name: data, mountPath: /data, readOnly: true}]
gpus: {count: 0, resource: amd.com/gpu}
resize: {enabled: true, cpu: 8, memory: 16Gi}
lifetime: {idle: 1200, accept: 2000000, retire: 43200}
metrics: true
events: true
config: {80-mine.conf: "  # Begins with blanks.\nMINE = \"<a> & 'b'\"\n"}
labels: {team: physics}
podLabels: {cost: "7"}
podAnnotations: {physics.example/note: "yes"}
terminationGracePeriodSeconds: 120
imagePullSecrets: [{name: registry-credentials}]
nodeSelector: {disk: ssd}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: low
volumes: [{name: data, hostPath: {path: /data}}]
userNamespace: true
openshift: true
networkPolicy: true
deployment: {minReadySeconds: 30, disruptionBudget: true}
job: {activeDeadlineSeconds: 100, ttlSecondsAfterFinished: 5000000}
`

// TestLint: Helm's own rules, with the least that a site can set and with all of it.
func TestLint(t *testing.T) {
	for _, values := range []string{required, everything} {
		lint := action.NewLint()
		lint.Strict, lint.Namespace = true, namespace
		result := lint.Run([]string{filepath.Join(manifests, "chart")}, parsed(t, values))
		for _, err := range result.Errors {
			t.Error(err)
		}
		if result.TotalChartsLinted != 1 || action.HasWarningsOrErrors(result) {
			t.Errorf("%+v", result)
		}
	}
}

// TestValuesAreKnown: the schema has each value of values.yaml, and no other.
func TestValuesAreKnown(t *testing.T) {
	c := loaded(t)
	var schema object
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema["properties"].(object), "global") // Helm's own
	var text string
	for _, f := range c.Raw {
		if f.Name == "values.yaml" {
			text = string(f.Data)
		}
	}
	if diff := cmp.Diff(inSchema(t, schema), inValues(parsed(t, text))); diff != "" {
		t.Errorf("(-values.schema.json +values.yaml):\n%s", diff)
	}
	if diff := cmp.Diff(inValues(parsed(t, text)), inValues(parsed(t, everything))); diff != "" {
		t.Errorf("everything lacks a value (-values.yaml +everything):\n%s", diff)
	}
}

// free are values with keys of the site's own.
var free = []string{"config", "labels", "podLabels", "podAnnotations", "nodeSelector", "affinity"}

func inValues(values map[string]any) []string {
	return keys("", values, func(v any) object { o, _ := v.(object); return o })
}

func inSchema(t *testing.T, schema object) []string {
	return keys("", schema["properties"].(object), func(v any) object {
		o := v.(object)
		if ref, ok := o["$ref"].(string); ok {
			o = schema["definitions"].(object)[strings.TrimPrefix(ref, "#/definitions/")].(object)
		}
		properties, _ := o["properties"].(object)
		if properties != nil && o["additionalProperties"] != false {
			t.Errorf("the schema accepts more properties beside %v", slices.Sorted(maps.Keys(properties)))
		}
		return properties
	})
}

// keys are the paths of all values that are no objects, sorted.
func keys(path string, values object, inside func(any) object) []string {
	var all []string
	for k, v := range values {
		below := inside(v)
		if len(below) == 0 || slices.Contains(free, k) {
			all = append(all, path+k)
			continue
		}
		all = append(all, keys(path+k+".", below, inside)...)
	}
	slices.Sort(all)
	return all
}

// TestRefused: what is wrong is named, and nothing is made of it.
func TestRefused(t *testing.T) {
	for values, want := range map[string]string{
		"paylod: {slots: 2}":                             "'paylod' not allowed",
		"payload: {slot: 2}":                             "'slot' not allowed",
		"gpus: {number: 1}":                              "'number' not allowed",
		"kind: Pod":                                      "value must be one of 'pod', 'job', 'deployment'",
		"mode: rootless":                                 "value must be one of 'shared', 'unshared'",
		"payload: {slots: 0}":                            "/payload/slots': minimum: got 0, want 1",
		"payload: {slots: many}":                         "/payload/slots': got string, want integer",
		"payload: {memory: 2 GB}":                        "/payload/memory': '2 GB' does not match",
		"payload: {memory: 2147483648}":                  "/payload/memory': got number, want string",
		`payload: {disk: ""}`:                            "/payload/disk'",
		`payload: {cpu: "0x1"}`:                          "/payload/cpu'",
		"payload: {requests: {storage: 1Gi}}":            "'storage' not allowed",
		"pilot: {image: \"a b\"}":                        "/pilot/image'",
		"pool: {collector: \"a\\nSTART = False\"}":       "/pool/collector'",
		"pool: {credentials: My_Token}":                  "/pool/credentials'",
		"imagePullSecrets: [registry-credentials]":       "got string, want object",
		"lifetime: {idle: 20m}":                          "/lifetime/idle'",
		"config: {mine: x}":                              "'mine'",
		"config: {80-mine.conf: {A: b}}":                 "/config/80-mine.conf'",
		"config: {60-glidein.conf: x}":                   "config: the chart has a file 60-glidein.conf itself",
		"podLabels: {a: 1}":                              "/podLabels/a'",
		"pool: {collector: \"\"}":                        "pool.collector: name the pool's central manager",
		"pool: {domain: \"\"}":                           "pool.domain: name the UID_DOMAIN",
		"pilot: {image: \"\"}":                           "pilot.image: name the pilot image",
		"replicas: 2":                                    "replicas: a bare pod is one",
		"{kind: job, payload: {sidecars: false}}":        "payload.sidecars: a Job needs sidecars",
		"{kind: deployment, payload: {sidecars: true}}":  "payload.sidecars: a Deployment restarts",
		"deployment: {disruptionBudget: true}":           "deployment.disruptionBudget: only a Deployment",
		"{gpus: {count: 1}, payload: {spares: 1}}":       "payload.spares: a container with a GPU is no spare",
		"{gpus: {count: 1}, resize: {enabled: true}}":    "",
		"{payload: {cpu: 0.5, requests: {cpu: 100m}}}":   "",
		"{global: {imageRegistry: registry.example}}":    "",
		"podLabels: {app.kubernetes.io/name: elsewhere}": "podLabels: app.kubernetes.io/name is the chart's own",
	} {
		_, _, err := template(t, merged(parsed(t, required), parsed(t, values)))
		switch {
		case err == nil && want != "":
			t.Errorf("%s is accepted", values)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: the error is\n%v\nwant %q", values, err, want)
		}
	}
}

// containers are those of a bare pod which run jobs.
func containers(objects map[string]object) []object {
	var all []object
	for _, c := range objects["Pod/"+name]["spec"].(object)["containers"].([]any) {
		if c := c.(object); c["name"] != "pilot" {
			all = append(all, c)
		}
	}
	return all
}

func made(t *testing.T, values string) map[string]object {
	t.Helper()
	objects, _, err := template(t, merged(parsed(t, required), parsed(t, values)))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestSlots: payload containers differ in nothing but what is their own, as docs/admin/size.md says; the pilot has room for them.
func TestSlots(t *testing.T) {
	one := containers(made(t, ""))[0]
	objects := made(t, "payload: {slots: 3, spares: 1}")
	got := containers(objects)
	if len(got) != 4 {
		t.Fatalf("%d payload containers, want 4", len(got))
	}
	volumes := inJSON(t, objects["Pod/"+name]["spec"].(object)["volumes"])
	for i, c := range got {
		own := "payload"
		if i > 0 {
			own = fmt.Sprintf("payload-%d", i+1)
		}
		want := inJSON(t, one)
		for _, has := range []string{`"name":"%s"`, `/control/%s"`, `nonce-%s'`, `"shm-%s"`} {
			if !strings.Contains(want, fmt.Sprintf(has, "payload")) {
				t.Fatalf("the first container has no %s: %s", has, want)
			}
			want = strings.ReplaceAll(want, fmt.Sprintf(has, "payload"), fmt.Sprintf(has, own))
		}
		if diff := cmp.Diff(want, inJSON(t, c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", own, diff)
		}
		if shm := `{"emptyDir":{"medium":"Memory","sizeLimit":"1Gi"},"name":"shm-` + own + `"}`; strings.Count(volumes, shm) != 1 {
			t.Errorf("not one volume %s in %s", shm, volumes)
		}
	}
	data := objects["ConfigMap/glidein-config"]["data"].(object)
	const list = "POD_STARTER_CONTAINERS = payload, payload-2, payload-3, payload-4\n"
	if diff := cmp.Diff(list+"NUM_SLOTS = 3\nNUM_SLOTS_TYPE_1 = 3\n", data["65-slots.conf"]); diff != "" {
		t.Errorf("65-slots.conf (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(list+"POD_STARTER_SPARES = 1\n", data["70-spares.conf"]); diff != "" {
		t.Errorf("70-spares.conf (-want +got):\n%s", diff)
	}
	pilot := objects["Pod/"+name]["spec"].(object)["containers"].([]any)[0].(object)["resources"]
	want := object{
		"requests": object{"cpu": "100m", "memory": "160Mi", "ephemeral-storage": "512Mi"},
		"limits":   object{"cpu": "1", "memory": "640Mi", "ephemeral-storage": "2Gi"},
	}
	if diff := cmp.Diff(want, pilot); diff != "" {
		t.Errorf("the pilot (-want +got):\n%s", diff)
	}
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestConfigurationNames: the pod asks for the configuration by a name that is of its contents.
func TestConfigurationNames(t *testing.T) {
	names := map[any]string{}
	for _, values := range []string{"", "metrics: true", "config: {80-mine.conf: \"A = 1\\n\"}", "config: {80-mine.conf: \"A = 2\\n\"}", "lifetime: {accept: 86400}"} {
		objects := made(t, values)
		own := objects["ConfigMap/glidein-config"]["metadata"].(object)["name"]
		if other, ok := names[own]; ok {
			t.Errorf("%q and %q have the same name, %v", values, other, own)
		}
		names[own] = values
		if pod := inJSON(t, objects["Pod/"+name]); !strings.Contains(pod, fmt.Sprintf(`"configMap":{"name":%q}`, own)) {
			t.Errorf("%q: the pod does not have %v", values, own)
		}
	}
}

// TestEverything: values reach the objects.
func TestEverything(t *testing.T) {
	objects, notes, err := template(t, parsed(t, everything))
	if err != nil {
		t.Fatal(err)
	}
	data := objects["ConfigMap/glidein-config"]["data"].(object)
	for file, want := range map[string]string{
		"65-slots.conf":    "POD_STARTER_CONTAINERS = payload, payload-2, payload-3\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\n",
		"70-site.conf":     "CONDOR_HOST = [2001:db8::1]:9618\nUID_DOMAIN = physics.example\n",
		"70-lifetime.conf": "POD_STARTER_IDLE_TIME = 1200\nPOD_STARTER_ACCEPT_TIME = 2000000\nPOD_STARTER_RETIRE_TIME = 43200\n",
		"80-mine.conf":     "  # Begins with blanks.\nMINE = \"<a> & 'b'\"\n",
	} {
		if diff := cmp.Diff(want, data[file]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	text := inJSON(t, objects["Deployment/"+name])
	for _, want := range []string{
		`"replicas":2`, `"minReadySeconds":30`, `"shareProcessNamespace":false`, `"secretName":"my-token"`, `"team":"physics"`, `"cost":"7"`, `"physics.example/note":"yes"`,
		`"terminationGracePeriodSeconds":120`, `"nodeSelector":{"disk":"ssd"}`, `"hostPath":{"path":"/data"}`, `"http_proxy"`,
		`"limits":{"cpu":"4","ephemeral-storage":"20G","memory":"8Gi"},"requests":{"cpu":"2500m","ephemeral-storage":"14G","memory":"6Gi"}`,
		`"limits":{"cpu":"500m","ephemeral-storage":"3Gi","memory":"600Mi"},"requests":{"cpu":"0.2","ephemeral-storage":"1Gi","memory":"300Mi"}`,
		`"resize.podstarter/cpu":"8"`, `"resize.podstarter/memory":"16Gi"`, `"sizeLimit":"2Gi"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the Deployment has no %s:\n%s", want, text)
		}
	}
	for _, o := range objects {
		if labels := o["metadata"].(object)["labels"].(object); labels["team"] != "physics" {
			t.Errorf("%v has the labels %v", o["kind"], labels)
		}
	}
	for _, want := range []string{"deployment/glidein", "system:serviceaccount:physics:glidein", "condor_status"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}
