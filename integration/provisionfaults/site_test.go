//go:build pool

package provisionfaults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"podstarter/integration/pool/controlplane"
)

type object = map[string]any

// site is one provisioner with a namespace, templates and jobs of its own. Its name is also that of its jobs.
type site struct {
	t    *testing.T
	name string
	// server is the API server, or a proxy.
	server string
	// settings are further lines of the configuration.
	settings []string
	account  string
	schedds  []string      // those that are asked
	every    bool          // all that the collector knows are asked
	pace     time.Duration // how often await looks
	logged   int           // processes whose output a failure has shown
}

// podManifest is a pod with a payload container. KWOK runs it if the label says so.
const podManifest = `apiVersion: v1
kind: Pod
metadata: {labels: {kwok: %q}}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  containers:
  - {name: pilot, image: pilot}
  - {name: payload, image: debian}
`

const jobManifest = `apiVersion: batch/v1
kind: Job
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {kwok: %q}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      containers:
      - {name: pilot, image: pilot}
      - {name: payload, image: debian}
`

// oneShape is a template with slots of one CPU.
const oneShape = "shapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n"

// Values of the label by which KWOK runs pods.
const (
	held = "held"
	runs = "runs"
)

// newSite makes a site with one template of bare pods that stay pending.
func newSite(t *testing.T, name string, settings ...string) *site {
	t.Helper()
	s := &site{t: t, name: name, server: plane.Server(), settings: settings, schedds: []string{one}, pace: 100 * time.Millisecond}
	s.account = s.makeNamespace()
	s.template("plain", fmt.Sprintf(podManifest, held), oneShape)
	t.Cleanup(func() {
		for _, schedd := range s.schedds {
			condor.remove(t, schedd, name, "true")
		}
		if err := plane.Do(context.Background(), http.MethodDelete, "/api/v1/namespaces/"+s.namespace(), "", nil, nil); err != nil {
			t.Log(err)
		}
	})
	return s
}

func (s *site) namespace() string { return "site-" + s.name }

// makeNamespace makes the namespace, and the provisioner's account in another one, with the rights that it needs here. It returns a token.
func (s *site) makeNamespace() string {
	s.t.Helper()
	ns := s.namespace()
	const group = "rbac.authorization.k8s.io"
	const rbac = "/apis/" + group + "/v1/namespaces/"
	accounts := "/api/v1/namespaces/" + controlplane.Namespace + "/serviceaccounts"
	for _, o := range []struct {
		path string
		object
	}{
		{"/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": ns}}},
		{accounts, object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": ns}}},
		{rbac + ns + "/roles", object{"apiVersion": group + "/v1", "kind": "Role", "metadata": object{"name": "provisioner"}, "rules": rights}},
		{rbac + ns + "/rolebindings", object{"apiVersion": group + "/v1", "kind": "RoleBinding", "metadata": object{"name": "provisioner"},
			"roleRef":  object{"apiGroup": group, "kind": "Role", "name": "provisioner"},
			"subjects": []object{{"kind": "ServiceAccount", "name": ns, "namespace": controlplane.Namespace}}}},
	} {
		s.api(http.MethodPost, o.path, o.object, nil)
	}
	// The controller manager makes the account that pods have.
	s.await("the namespace's account", time.Minute, func() error {
		return plane.Do(s.t.Context(), http.MethodGet, "/api/v1/namespaces/"+ns+"/serviceaccounts/default", "", nil, nil)
	})
	var answer struct{ Status struct{ Token string } }
	s.api(http.MethodPost, accounts+"/"+ns+"/token",
		object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{"expirationSeconds": 7200}}, &answer)
	return answer.Status.Token
}

// everywhere gives the account its rights in all namespaces, so that they outlive its own.
func (s *site) everywhere() {
	s.t.Helper()
	const group = "rbac.authorization.k8s.io"
	const path = "/apis/" + group + "/v1/"
	s.api(http.MethodPost, path+"clusterroles", object{"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": object{"name": s.namespace()}, "rules": rights}, nil)
	s.api(http.MethodPost, path+"clusterrolebindings", object{"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": s.namespace()},
		"roleRef":  object{"apiGroup": group, "kind": "ClusterRole", "name": s.namespace()},
		"subjects": []object{{"kind": "ServiceAccount", "name": s.namespace(), "namespace": controlplane.Namespace}}}, nil)
}

// rights are those that the provisioner needs, and no others.
var rights = []object{
	{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"get", "list", "watch", "create", "delete"}},
	{"apiGroups": []string{"batch"}, "resources": []string{"jobs"}, "verbs": []string{"get", "list", "watch", "create", "delete"}},
	{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": []string{"get", "create", "update"}},
}

// api sends a request as the administrator, which must succeed.
func (s *site) api(method, path string, in, out any) {
	s.t.Helper()
	kind := "application/json"
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	if err := plane.Do(context.WithoutCancel(s.t.Context()), method, path, kind, in, out); err != nil {
		s.t.Fatal(err)
	}
}

// dir is the site's directory, as the machine has it, or below it.
func (s *site) dir(names ...string) string {
	return filepath.Join(append([]string{condor.site, s.name}, names...)...)
}

// template writes a template. Its slots have further attributes.
func (s *site) template(name, manifest, lines string, slot ...string) {
	s.t.Helper()
	// What condor_submit adds to Requirements reads it.
	slot = append([]string{`CondorVersion = "$CondorVersion: 25.14.1 2026-10-16 $"`}, slot...)
	s.write(filepath.Join("templates", name+".yaml"), manifest)
	s.write(filepath.Join("templates", name+".template.yaml"), fmt.Sprintf("name: %s\nmanifest: %s.yaml\nslot: |\n  %s\n%s", name, name, strings.Join(slot, "\n  "), lines))
}

func (s *site) write(name, text string) {
	s.t.Helper()
	path := s.dir(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// command is the provisioner of the site.
func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	s.t.Helper()
	lines := append([]string{"name: " + s.name, "namespace: " + s.namespace(), fmt.Sprintf("filter: ProvisionTest == %q", s.name), "interval: 10s"}, s.settings...)
	has := func(key string) bool {
		return slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, key+":") })
	}
	if !has("lease") {
		lines = append(lines, "lease: {disabled: true}")
	}
	if !has("schedds") && !s.every {
		var names []string
		for _, schedd := range s.schedds {
			names = append(names, fmt.Sprintf("%q", condor.schedds[schedd]))
		}
		lines = append(lines, "schedds: ["+strings.Join(names, ", ")+"]")
	}
	s.write("provisioner.yaml", strings.Join(lines, "\n")+"\n")
	ca, err := os.ReadFile(plane.CA())
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("ca.crt", string(ca))
	in := "/site/" + s.name
	s.write("kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, certificate-authority: %s/ca.crt}}]\n"+
		"users: [{name: u, user: {token: %q}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", s.server, in, s.account))
	all := append([]string{"KUBECONFIG=" + in + "/kubeconfig", "/site/bin/condor_pod_provisioner", "-config", in + "/provisioner.yaml", "-templates", in + "/templates", "-listen", "127.0.0.1:0"}, args...)
	return condor.command(ctx, "", all...)
}

// roundOf is how long a round may take at most, whatever is away: the tools of HTCondor and calls to the API server have their times.
const roundOf = 3 * time.Minute

// once runs one round to its end.
func (s *site) once() (record, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), roundOf)
	defer cancel()
	r := s.start(ctx, "-once")
	err := r.wait()
	if ctx.Err() != nil {
		s.t.Fatalf("a round has not ended after %s", roundOf)
	}
	return r.last(), err
}

// dryRun returns what -dry-run prints.
func (s *site) dryRun() string {
	s.t.Helper()
	return s.say("-dry-run")
}

// say returns what the provisioner prints, however it ends.
func (s *site) say(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), roundOf)
	defer cancel()
	out, err := s.command(ctx, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return string(out)
}

// record is a line of the provisioner's log.
type record struct {
	Time                                   time.Time
	Level, Msg, Error, Pod, Address        string
	Groups, Without, Pods, Made, Withdrawn int
	Idle                                   int `json:"jobs"`
}

// process is a provisioner that runs.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error

	mu    sync.Mutex
	lines []record
	other []string // what is no line of the log

	// What the last round was like that was looked at.
	at              float64
	made, withdrawn int
}

// start starts the provisioner; it is killed at the end of the test.
func (s *site) start(ctx context.Context, args ...string) *process {
	s.t.Helper()
	p := &process{t: s.t, cmd: s.command(ctx, args...), done: make(chan error, 1)}
	words, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if text := p.text(); s.t.Failed() && s.logged < 3 && text != "" {
			s.logged++
			s.t.Log(text)
		}
	})
	go func() {
		p.read(words)
		p.done <- p.cmd.Wait()
		close(p.done)
	}()
	return p
}

func (p *process) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r record
		p.mu.Lock()
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			p.lines = append(p.lines, r)
		} else {
			p.other = append(p.other, lines.Text())
		}
		p.mu.Unlock()
	}
}

func (p *process) wait() error { return <-p.done }

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.wait()
}

// text is the end of what the process wrote.
func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, r := range p.lines[max(len(p.lines)-40, 0):] {
		fmt.Fprintf(&b, "%s %s %s %s idle %d without %d pods %d made %d withdrawn %d\n", r.Time.Format(time.TimeOnly), r.Msg, r.Pod, r.Error, r.Idle, r.Without, r.Pods, r.Made, r.Withdrawn)
	}
	return b.String() + strings.Join(p.other[max(len(p.other)-20, 0):], "\n")
}

// roundDone is the last line of a round.
const roundDone = "A round is done"

// last is the last line of the last round.
func (p *process) last() record {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range slices.Backward(p.lines) {
		if r.Msg == roundDone {
			return r
		}
	}
	return record{}
}

// errors are those of all rounds.
func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, r := range p.lines {
		if r.Error != "" {
			all = append(all, r.Error)
		}
	}
	return strings.Join(append(all, p.other...), "\n")
}

// await waits for a round, after those that have ended, that is as it should be.
func (p *process) await(what string, within time.Duration, is func(record) bool) record {
	p.t.Helper()
	var last record
	ctx, cancel := context.WithTimeoutCause(p.t.Context(), within, fmt.Errorf("waiting for %s: not within %s", what, within))
	defer cancel()
	err := poll(ctx, 100*time.Millisecond, func() error {
		select {
		case err := <-p.done:
			cancel()
			return fmt.Errorf("the provisioner has ended: %w", err)
		default:
		}
		r, ended := p.round()
		if ended {
			last = r
		}
		if !ended || !is(r) {
			return fmt.Errorf("the last round: %+v", last)
		}
		return nil
	})
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	return last
}

// round returns what the last round was like, if it has ended since the last call. The numbers are those of the metrics, since the log says
// only what changes.
func (p *process) round() (r record, ended bool) {
	p.t.Helper()
	p.mu.Lock()
	address := ""
	for _, l := range p.lines {
		if l.Msg == "The status page is served" {
			address = l.Address
		}
	}
	p.mu.Unlock()
	if address == "" {
		return r, false
	}
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return r, false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return r, false
	}
	is := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "podstarter_provisioner_")), " ")
		if v, err := strconv.ParseFloat(number, 64); err == nil {
			is[name] = v
			if strings.HasPrefix(name, "pods{") && !strings.Contains(name, `"ended"`) {
				r.Pods += int(v)
			}
		}
	}
	at, made, withdrawn := is["last_round_timestamp_seconds"], int(is["pods_made_total"]), int(is["pods_withdrawn_total"])
	if at <= p.at {
		return r, false
	}
	r.Idle, r.Without = int(is["idle_jobs"]), int(is[`jobs{place="waiting"}`])
	r.Made, r.Withdrawn = made-p.made, withdrawn-p.withdrawn
	p.at, p.made, p.withdrawn = at, made, withdrawn
	return r, true
}

// leads reports whether this provisioner makes pods, by what it says.
func (p *process) leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range slices.Backward(p.lines) {
		switch l.Msg {
		case "The provisioner begins to make pods":
			return true
		case "The provisioner makes no more pods":
			return false
		}
	}
	return false
}

// pod is a pod as the API server has it.
type pod struct {
	Metadata struct {
		Name              string
		Labels            map[string]string
		DeletionTimestamp string
	}
	Status struct{ Phase string }
}

// pods are those of the site, except those that are going.
func (s *site) pods() []pod {
	s.t.Helper()
	all, err := s.list()
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *site) list() ([]pod, error) {
	var list struct{ Items []pod }
	err := plane.Do(context.WithoutCancel(s.t.Context()), http.MethodGet, "/api/v1/namespaces/"+s.namespace()+"/pods", "", nil, &list)
	return slices.DeleteFunc(list.Items, func(p pod) bool { return p.Metadata.DeletionTimestamp != "" }), err
}

// phase counts the pods of a phase.
func (s *site) phase(phase string) []string {
	s.t.Helper()
	var names []string
	for _, p := range s.pods() {
		if p.Status.Phase == phase {
			names = append(names, p.Metadata.Name)
		}
	}
	return names
}

// of counts the pods of a template.
func (s *site) of(template string) int {
	s.t.Helper()
	n := 0
	for _, p := range s.pods() {
		if p.Metadata.Labels["provisioner.podstarter/template"] == template {
			n++
		}
	}
	return n
}

// run lets KWOK run a pod, and waits until it does.
func (s *site) run(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.api(http.MethodPatch, "/api/v1/namespaces/"+s.namespace()+"/pods/"+name, object{"metadata": object{"labels": object{"kwok": runs}}}, nil)
	}
	s.await("pods to run", 2*time.Minute, func() error {
		running := s.phase("Running")
		for _, name := range names {
			if !slices.Contains(running, name) {
				return fmt.Errorf("%s does not run", name)
			}
		}
		return nil
	})
}

// prove makes the site's template one that works: a pod of it has reported, and runs a job.
func (s *site) prove() string {
	s.t.Helper()
	condor.submit(s.t, one, alice, s.name, "queue")
	s.await("the first pod", 2*time.Minute, func() error {
		if _, err := s.once(); err != nil {
			return err
		}
		if len(s.pods()) == 0 {
			return errors.New("there is none:\n" + s.dryRun())
		}
		return nil
	})
	first := s.pods()[0].Metadata.Name
	s.run(first)
	condor.remove(s.t, one, s.name, "true")
	condor.advertise(s.t, slotAd(first, "Claimed"))
	return first
}

// await waits until there is no error.
func (s *site) await(what string, within time.Duration, ready func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeoutCause(s.t.Context(), within, fmt.Errorf("waiting for %s: not within %s", what, within))
	defer cancel()
	if err := poll(ctx, s.pace, ready); err != nil {
		s.t.Fatal(err)
	}
}

// poll calls ready until it returns nil, or ctx ends.
func poll(ctx context.Context, pace time.Duration, ready func() error) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
