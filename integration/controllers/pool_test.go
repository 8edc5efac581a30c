//go:build pool

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// centralServices is the namespace of a pool of the folder deploy/pool.
const centralServices = "podstarter-pool-test"

// services is a pool of the folder deploy/pool, in the node's network, with volumes of the node.
type services struct {
	t   *testing.T
	ctx context.Context
	// cm and ap are the ports of both pods.
	cm, ap int
}

// TestPool: the central services of deploy/pool keep name, queue and running jobs when their pods are made anew, killed or not; slots come back
// after the collector has forgotten them; and an execution point without a token is none. Tokens and accounts are made as docs/admin/pool.md says.
func TestPool(t *testing.T) {
	s := newServices(t)
	s.apply()
	token := s.token("ADVERTISE_STARTD", "ADVERTISE_MASTER")
	s.secret("pool-ap-credentials", "ap.token", s.token("ADVERTISE_SCHEDD", "ADVERTISE_MASTER", "READ"))
	s.secret("ep", "ep.token", token)
	s.secret("stranger", "none", "none")
	s.executionPoint("ep")
	s.executionPoint("stranger")
	s.until("a slot and a schedd", func() bool {
		out := s.in("pool-cm-0", "condor_status", "-any", "-af", "MyType", "Name")
		return strings.Contains(out, "Machine slot1@ep@") && strings.Contains(out, "Scheduler pool-ap-0@")
	})
	out := s.as("sh", "-c", `cd && cat >job.sub <<'J'
executable = /bin/sh
arguments = "-c 'while [ ! -e /srv/go ]; do sleep 0.2; done; echo done'"
transfer_executable = false
should_transfer_files = yes
output = out.$(Process)
log = log
request_memory = 100
request_disk = 1000
queue 2
J
condor_submit -terse job.sub`)
	if !strings.HasPrefix(out, "1.0 - 1.1") {
		t.Fatalf("condor_submit says %q", out)
	}
	s.until("a job that runs and one that waits", func() bool { return s.states() == "1 2" })
	before := s.identity()
	s.replace("pool-ap-0", "--grace-period=1")
	s.until("the job's first reconnection", func() bool { return s.events("023") == 1 })
	s.replace("pool-ap-0")
	s.until("the job's second reconnection", func() bool { return s.events("023") == 2 })
	if after := s.identity(); after != before || s.states() != "1 2" {
		t.Errorf("access point and queue were\n%s\nand are\n%s\nin the states %s", before, after, s.states())
	}
	s.replace("pool-cm-0")
	s.until("the slot's return", func() bool {
		return strings.Contains(s.in("pool-cm-0", "condor_status", "-af", "Name"), "slot1@ep@")
	})
	s.until("words of the one without a token", func() bool {
		return strings.Contains(s.in("stranger", "cat", "/var/log/condor/MasterLog"), "required authentication with collector")
	})
	if out := s.in("pool-cm-0", "condor_status", "-any", "-af", "Name"); strings.Contains(out, "stranger") || !strings.Contains(out, "@ep@") {
		t.Errorf("the collector knows\n%s", out)
	}
	s.in("ep", "touch", "/srv/go")
	s.until("the end of both jobs", func() bool { return s.states() == "" })
	if out := s.as("sh", "-c", "cd && cat out.0 out.1"); out != "done\ndone\n" {
		t.Errorf("the jobs wrote %q", out)
	}
	if s.events("004") != 0 || s.events("005") != 2 {
		t.Errorf("%d jobs were evicted, and %d ended", s.events("004"), s.events("005"))
	}
	if key := s.in("pool-ap-0", "sh", "-c", "find / -path /proc -prune -o -path /sys -prune -o -name pool_password -print -o -name POOL -print; echo end"); key != "end\n" {
		t.Errorf("the access point has a signing key:\n%s", key)
	}
}

func newServices(t *testing.T) *services {
	t.Helper()
	s := &services{t: t, ctx: soon(t)}
	for _, port := range []*int{&s.cm, &s.ap} {
		var err error
		if *port, err = harness.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.remove)
	s.remove() // of a run that was killed
	s.kubectl("create", "namespace", centralServices)
	return s
}

// remove removes all of it.
func (s *services) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.t.Failed() {
		for _, argv := range [][]string{{"get", "pods,pvc,pv", "-o", "wide"}, {"get", "events"}, {"describe", "pods"}} {
			out, err := pool.Kubectl(ctx, nil, append([]string{"-n", centralServices}, argv...)...)
			s.t.Logf("kubectl %s: %v\n%s", strings.Join(argv, " "), err, out)
		}
		for _, name := range []string{"pool-cm-0", "pool-ap-0", "ep"} {
			out, err := pool.Kubectl(ctx, nil, "-n", centralServices, "exec", name, "--", "sh", "-c", "tail -n 30 /var/log/condor/*Log*")
			s.t.Logf("logs of %s: %v\n%s", name, err, out)
		}
	}
	if err := pool.RemoveNamespace(ctx, centralServices); err != nil {
		s.t.Error(err)
	}
	if _, err := pool.Kubectl(ctx, nil, "delete", "pv,priorityclass", "--selector="+ours, "--ignore-not-found"); err != nil {
		s.t.Error(err)
	}
}

// apply makes the volumes and the signing key, and applies the folder.
func (s *services) apply() {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "deploy")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(pool.Root, "deploy"))); err != nil {
		s.t.Fatal(err)
	}
	var volumes []object
	for _, claim := range []string{"spool-pool-cm-0", "log-pool-cm-0", "home-pool-ap-0", "spool-pool-ap-0", "log-pool-ap-0"} {
		path := filepath.Join(s.t.TempDir(), claim)
		err := os.Mkdir(path, 0o755)
		if err == nil && strings.Contains(claim, "-cm-") { // the kubelet gives no directory of the node to the pod's group
			err = os.Chown(path, 1000, 1000)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		volumes = append(volumes, object{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": object{"name": centralServices + "-" + claim, "labels": object{ours: ""}},
			"spec": object{
				"accessModes": []string{"ReadWriteOnce"}, "capacity": object{"storage": "100Gi"}, "hostPath": object{"path": path},
				"claimRef": object{"namespace": centralServices, "name": claim},
			},
		})
	}
	s.make(object{"apiVersion": "v1", "kind": "List", "items": volumes})
	s.kubectl("apply", "-f", filepath.Join(dir, "components", "pool-priority", "class.yaml"))
	s.kubectl("label", "priorityclass", "podstarter-pool", ours+"=")
	s.secret("pool-signing-key", "pool_password", "of-a-test-"+strconv.Itoa(s.cm))

	own := filepath.Join(dir, "site")
	if err := os.Mkdir(own, 0o755); err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(s.kustomization())
	if err != nil {
		s.t.Fatal(err)
	}
	for name, content := range map[string]string{"kustomization.yaml": string(text), "90-cm.conf": s.config(s.cm), "90-ap.conf": s.config(s.ap), "users": "carol 30001\n"} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(content), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	s.kubectl("apply", "-k", own)
	s.until("the central manager", func() bool { return s.in("pool-cm-0", "condor_status", "-negotiator", "-af", "Name") != "" })
}

// aliases are the names of the pods: there is no DNS.
func aliases() []object {
	return []object{{"ip": "127.0.0.1", "hostnames": []string{"pool-cm-0.pool-cm." + centralServices + ".svc", "pool-ap-0.pool-ap." + centralServices + ".svc"}}}
}

func (s *services) kustomization() object {
	patches := []object{}
	for _, claims := range []struct {
		name string
		n    int
	}{{"pool-cm", 2}, {"pool-ap", 3}} {
		patch := []object{
			{"op": "add", "path": "/spec/template/spec/hostNetwork", "value": true},
			{"op": "add", "path": "/spec/template/spec/dnsPolicy", "value": "Default"},
			{"op": "add", "path": "/spec/template/spec/hostAliases", "value": aliases()},
			// The node's ports are those of the configuration.
			{"op": "remove", "path": "/spec/template/spec/containers/0/ports"},
			{"op": "replace", "path": "/spec/template/spec/containers/0/resources", "value": object{"requests": object{"cpu": "10m"}}},
			{"op": "replace", "path": "/spec/template/spec/containers/0/readinessProbe/periodSeconds", "value": 1},
		}
		for i := range claims.n {
			patch = append(patch, object{"op": "add", "path": fmt.Sprintf("/spec/volumeClaimTemplates/%d/spec/storageClassName", i), "value": ""})
		}
		text, err := json.Marshal(patch)
		if err != nil {
			s.t.Fatal(err)
		}
		patches = append(patches, object{"target": object{"kind": "StatefulSet", "name": claims.name}, "patch": string(text)})
	}
	merged := func(name, file string) object {
		return object{"name": name, "namespace": "podstarter", "behavior": "merge", "files": []string{file}}
	}
	return object{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": centralServices,
		"resources": []string{"../pool"}, "components": []string{"../components/pool-network-policy", "../components/pool-priority"},
		"images":             []object{image("registry.example.org/podstarter/pilot", pool.Image("submit"))},
		"patches":            patches,
		"configMapGenerator": []object{merged("pool-cm-config", "90-cm.conf"), merged("pool-ap-config", "90-ap.conf"), merged("pool-ap-accounts", "users")},
	}
}

// config is what the pods need because they have the node's network together.
func (s *services) config(port int) string {
	return fmt.Sprintf("COLLECTOR_HOST = $(CONDOR_HOST):%d\nSHARED_PORT_PORT = %d\nNETWORK_INTERFACE = 127.0.0.1\nENABLE_IPV6 = False\n", s.cm, port) +
		"NEGOTIATOR_INTERVAL = 2\nNEGOTIATOR_CYCLE_DELAY = 1\nNEGOTIATOR_MIN_INTERVAL = 1\nSCHEDD_INTERVAL = 3\n"
}

// executionPoint makes a startd with the stock starter and the secret of its name.
func (s *services) executionPoint(name string) {
	s.t.Helper()
	config := fmt.Sprintf("CONDOR_HOST = pool-cm-0.pool-cm.%s.svc\nUID_DOMAIN = example.org\nuse role:Execute\nuse security:recommended_v9_0\n", centralServices) + s.config(0) +
		"STARTD_NAME = " + name + "\nMASTER_NAME = " + name + "\nSTARTER = /usr/sbin/condor_starter\nSTARTER_ALLOW_RUNAS_OWNER = False\nUPDATE_INTERVAL = 5\nSTART = True\n" +
		"NUM_CPUS = 1\nMEMORY = 1000\nNUM_SLOTS = 1\nSEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS\n"
	mount := func(name, path string) object { return object{"name": name, "mountPath": path} }
	s.make(object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"70-ep.conf": config}})
	s.make(object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name},
		"spec": object{
			"hostNetwork": true, "hostAliases": aliases(), "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
			"containers": []object{{
				"name": "pool", "image": pool.Image("submit"), "command": []string{"/opt/podstarter/entrypoint", "pilot"},
				"volumeMounts": []object{mount("config", "/etc/podstarter/config"), mount("credentials", "/etc/podstarter/credentials")},
			}},
			"volumes": []object{{"name": "config", "configMap": object{"name": name}}, {"name": "credentials", "secret": object{"secretName": name}}},
		},
	})
}

// token makes a token as the page says.
func (s *services) token(rights ...string) string {
	argv := []string{"condor_token_create", "-identity", "condor@example.org"}
	for _, r := range rights {
		argv = append(argv, "-authz", r)
	}
	return s.in("pool-cm-0", argv...)
}

func (s *services) secret(name, key, value string) {
	s.t.Helper()
	s.make(object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name}, "stringData": object{key: value}})
}

// make makes an object in the namespace.
func (s *services) make(o object) {
	s.t.Helper()
	text, err := json.Marshal(o)
	if err == nil {
		_, err = pool.Kubectl(s.ctx, bytes.NewReader(text), "-n", centralServices, "apply", "-f", "-")
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *services) kubectl(argv ...string) string {
	s.t.Helper()
	out, err := pool.Kubectl(s.ctx, nil, append([]string{"-n", centralServices}, argv...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// in runs a command in a pod, and gives nothing if that fails: daemons come and go here.
func (s *services) in(name string, argv ...string) string {
	out, err := pool.Kubectl(s.ctx, nil, append([]string{"-n", centralServices, "exec", name, "--"}, argv...)...)
	if err != nil {
		return ""
	}
	return out
}

// as runs a command as a user of the access point.
func (s *services) as(argv ...string) string {
	return s.in("pool-ap-0", append([]string{"setpriv", "--reuid=carol", "--regid=carol", "--init-groups", "--reset-env"}, argv...)...)
}

func (s *services) until(what string, true func() bool) {
	s.t.Helper()
	if err := harness.Poll(s.ctx, what, func() (bool, error) { return true(), nil }); err != nil {
		s.t.Fatal(err)
	}
}

// replace deletes a pod, and waits for its successor.
func (s *services) replace(name string, more ...string) {
	s.t.Helper()
	uid := func() string {
		out, err := pool.Kubectl(s.ctx, nil, "-n", centralServices, "get", "pod", name, "-o", "jsonpath={.metadata.uid}")
		if err != nil {
			return ""
		}
		return out
	}
	old := uid()
	s.kubectl(append([]string{"delete", "pod", name}, more...)...)
	s.until("the successor of "+name, func() bool { now := uid(); return now != "" && now != old })
	s.kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout=3m")
}

// states are the states of all jobs, sorted.
func (s *services) states() string {
	out := s.in("pool-ap-0", "sh", "-c", "condor_q -allusers -af JobStatus || echo unknown")
	words := strings.Fields(out)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// identity is the name of the schedd and those of its jobs.
func (s *services) identity() string {
	return s.in("pool-cm-0", "condor_status", "-schedd", "-af", "Name", "Machine") + s.in("pool-ap-0", "condor_q", "-allusers", "-af", "GlobalJobId", "Owner")
}

// events counts events of a kind in the jobs' log.
func (s *services) events(number string) int {
	return strings.Count("\n"+s.as("sh", "-c", "cd && cat log"), "\n"+number+" (")
}
