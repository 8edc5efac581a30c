//go:build pool

package standby

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"podstarter/integration/pool/controlplane"
)

// duration is that of the Lease, and interval is between two rounds.
const (
	duration = 5 * time.Second
	interval = 10 * time.Second
	patience = 90 * time.Second
)

// world is an API server with provisioners beside it.
type world struct {
	t         *testing.T
	plane     *controlplane.ControlPlane
	program   string
	dir       string
	templates int
}

type object = map[string]any

// newWorld starts an API server. The provisioners may make so many pods: three of
// each template, since none ever reports.
func newWorld(t *testing.T, templates int) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), templates: templates}
	w.program = filepath.Join(w.dir, "condor_pod_provisioner")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", w.program, "./provisioner")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the provisioner: %v\n%s", err, out)
	}
	var err error
	if w.plane, err = controlplane.Up(t.Context(), ".state-standby", t.Output()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.plane.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	// A pod needs the account that a controller would make.
	w.create("", "v1", "ServiceAccount", "default", nil)
	w.create("rbac.authorization.k8s.io", "v1", "Role", "provisioner", object{"rules": []object{
		{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"list", "watch", "create", "delete"}},
		{"apiGroups": []string{"batch"}, "resources": []string{"jobs"}, "verbs": []string{"list", "watch", "create", "delete"}},
		{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "verbs": []string{"get", "create", "update"}},
	}})
	w.write("pod.yaml", "apiVersion: v1\nkind: Pod\nspec:\n  automountServiceAccountToken: false\n  containers:\n  - {name: payload, image: none}\n")
	for i := range templates {
		w.write(fmt.Sprintf("t%03d.template.yaml", i), fmt.Sprintf("name: t%03d\nmanifest: pod.yaml\nshapes:\n- {name: one, cpus: 1, memory: 1Gi, disk: 1Gi}\n", i))
	}
	w.write("provisioner.yaml", fmt.Sprintf("name: site\nnamespace: %s\nschedds: [ap]\ninterval: %s\nlease: {duration: %s}\n", controlplane.Namespace, interval, duration))
	w.write("bin/condor_status", "#!/bin/sh\nexit 0\n")
	w.write("bin/condor_q", fmt.Sprintf("#!/bin/sh\nprintf 'Requirements = TARGET.Cpus >= 1\\nUser = \"alice@x\"\\nJobCount = %d\\nJobIds = \"1.0\"\\n\\n'\n", w.wanted()))
	return w
}

// wanted is how many pods there must be.
func (w *world) wanted() int { return 3 * w.templates }

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(group, version, kind, name string, more object) {
	w.t.Helper()
	o := controlplane.Object{"apiVersion": strings.TrimPrefix(group+"/"+version, "/"), "kind": kind, "metadata": object{"name": name}}
	for k, v := range more {
		o[k] = v
	}
	if _, err := w.plane.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// provisioner is one process, with an account of its own, by which the API server's
// log tells them apart.
type provisioner struct {
	w    *world
	name string
	cmd  *exec.Cmd
	url  string
	done chan error

	mu  sync.Mutex
	log strings.Builder
}

func (w *world) account(name string) {
	w.create("", "v1", "ServiceAccount", name, nil)
	w.create("rbac.authorization.k8s.io", "v1", "RoleBinding", name, object{
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "provisioner"},
		"subjects": []object{{"kind": "ServiceAccount", "name": name, "namespace": controlplane.Namespace}},
	})
	token, err := w.plane.Token(w.t.Context(), name, "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name+".kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: it
clusters: [{name: it, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: it, user: {token: %q}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
`, w.plane.Server(), w.plane.CA(), token))
}

// start starts a provisioner, and waits until it tells of itself.
func (w *world) start(name string) *provisioner {
	w.t.Helper()
	p := &provisioner{w: w, name: name, done: make(chan error, 1)}
	p.cmd = exec.Command(w.program, "-config", filepath.Join(w.dir, "provisioner.yaml"), "-templates", w.dir, "-listen", "127.0.0.1:0")
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(w.dir, name+".kubeconfig"), "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	words, err := p.cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(words)
		for in.Scan() {
			var line struct{ Msg, Address string }
			if json.Unmarshal(in.Bytes(), &line) != nil {
				w.t.Errorf("%s: a line of the log is no JSON: %s", name, in.Text())
			}
			if line.Msg == "The status page is served" {
				address <- line.Address
			}
			p.mu.Lock()
			if line.Msg != "A pod is made" {
				p.log.WriteString(in.Text() + "\n")
			}
			p.mu.Unlock()
		}
		p.done <- p.cmd.Wait()
	}()
	w.t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGKILL)
		<-p.done
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", name, p.text())
		}
	})
	select {
	case a := <-address:
		p.url = "http://" + a
	case err := <-p.done:
		w.t.Fatalf("%s has ended: %v\n%s", name, err, p.text())
	}
	return p
}

func (p *provisioner) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *provisioner) signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.w.t.Error(err)
	}
}

// end tells a provisioner to end and returns how long it took.
func (p *provisioner) end() time.Duration {
	p.w.t.Helper()
	begin := time.Now()
	p.signal(syscall.SIGTERM)
	err := <-p.done
	p.done <- err
	if err != nil {
		p.w.t.Errorf("%s ends with %v", p.name, err)
	}
	return time.Since(begin)
}

// role is what /healthz says.
func (p *provisioner) role() string {
	ctx, cancel := context.WithTimeout(p.w.t.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/healthz", nil)
	if err != nil {
		p.w.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return strings.TrimSpace(string(text))
}

func (p *provisioner) leads() bool { return p.role() == "ok: leader" }

// await waits until something is so.
func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	begin := time.Now()
	defer func() { w.t.Logf("%s: after %s", what, time.Since(begin).Round(time.Millisecond)) }()
	deadline := begin.Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s: not yet: %s", patience, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// pods returns how many pods there are.
func (w *world) pods() int {
	w.t.Helper()
	var list struct{ Items []object }
	if err := w.plane.ListPods(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

// removePods removes all pods, so that the leader has to make them again.
func (w *world) removePods() {
	w.t.Helper()
	err := w.plane.Do(w.t.Context(), http.MethodDelete, "/api/v1/namespaces/"+controlplane.Namespace+"/pods?gracePeriodSeconds=0", "", nil, nil)
	if err != nil {
		w.t.Fatal(err)
	}
}

// act is what a provisioner did, by the API server's log.
type act struct {
	who, what string // creates a pod, or takes the Lease
	at, until time.Time
}

// acts returns what the provisioners did that succeeded, in its order.
func (w *world) acts() []act {
	w.t.Helper()
	f, err := os.Open(w.plane.AuditLog())
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	var all []act
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			w.t.Fatal(err)
		}
		var e struct {
			Stage, Verb                              string
			User                                     struct{ Username string }
			ObjectRef                                struct{ Resource string }
			ResponseStatus                           struct{ Code int }
			RequestReceivedTimestamp, StageTimestamp time.Time
		}
		if err := json.Unmarshal(line, &e); err != nil {
			w.t.Fatal(err)
		}
		who, ok := strings.CutPrefix(e.User.Username, "system:serviceaccount:"+controlplane.Namespace+":")
		what := e.Verb + " " + e.ObjectRef.Resource
		if ok && e.Stage == "ResponseComplete" && e.ResponseStatus.Code < 300 && (what == "create pods" || what == "update leases" || what == "create leases") {
			all = append(all, act{who, what, e.RequestReceivedTimestamp, e.StageTimestamp})
		}
	}
}

// check checks by the API server's log that no provisioner made a pod while the
// Lease was another one's: since its own last renewal no other one has taken it.
func (w *world) check() {
	w.t.Helper()
	holder, made, turns := "", 0, 0
	for _, a := range w.acts() {
		switch {
		case a.what != "create pods":
			if a.who != holder {
				turns++
			}
			holder = a.who
		case a.who != holder:
			w.t.Errorf("%s made a pod at %s, when the Lease was held by %s", a.who, a.at, holder)
		default:
			made++
		}
	}
	w.t.Logf("%d pods were made by those who held the Lease, which changed hands %d times", made, turns)
	if made == 0 {
		w.t.Error("the API server's log has no pods")
	}
}
