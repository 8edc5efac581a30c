//go:build pool

package kubeletrules

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/integration/harness"
)

// What every test uses; set once, before the first.
var (
	pool *harness.Pool
	api  *client
)

// patience is how long a test may take. A test that passes never uses it up.
const patience = 3 * time.Minute

// namespace stays: without a controller manager nobody could delete it.
const namespace = "kubelet-rules"

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for most of their time.
	err := flag.Set("test.parallel", "8")
	if err == nil {
		err = prepare(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare(ctx context.Context) error {
	var err error
	if pool, err = harness.Open(ctx); err != nil {
		return err
	}
	if api, err = newClient(ctx); err != nil {
		return err
	}
	_, err = pool.Kubectl(ctx, strings.NewReader(`
apiVersion: v1
kind: Namespace
metadata: {name: `+namespace+`}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: `+namespace+`}
`), "apply", "--server-side", "--force-conflicts", "-f", "-")
	if err != nil {
		return err
	}
	// A run that was killed has left its pods.
	_, err = pool.Kubectl(ctx, nil, "-n", namespace, "delete", "pods", "--all", "--grace-period=1", "--wait=false")
	return err
}

// client is the cluster's administrator.
type client struct {
	server string
	node   string // where pool's pods run, and this machine
	http   *http.Client
}

func newClient(ctx context.Context) (*client, error) {
	server, err := pool.Kubectl(ctx, nil, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	if err != nil {
		return nil, err
	}
	node, err := pool.Kubectl(ctx, nil, "-n", harness.Namespace, "get", "pod", harness.Ours.PodName(), "-o", "jsonpath={.spec.nodeName}")
	if err != nil {
		return nil, err
	}
	pki := func(name string) string { return filepath.Join(pool.State, "pki", name) }
	certificate, err := tls.LoadX509KeyPair(pki("admin.crt"), pki("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	ca, err := os.ReadFile(pki("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &client{server: server, node: node, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}, ForceAttemptHTTP2: true,
	}}}, nil
}

// open sends a request about a pod, or all pods if it has no name, and returns the
// answer's body.
func (c *client) open(ctx context.Context, method, pod, query, contentType string, in any) (io.ReadCloser, error) {
	var text []byte // without one, the options count that are in the query
	if in != nil {
		var err error
		if text, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	url := c.server + "/api/v1/namespaces/" + namespace + "/pods/" + pod + "?" + query
	request, err := http.NewRequestWithContext(ctx, method, strings.Replace(url, "/?", "?", 1), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", cmp.Or(contentType, "application/json"))
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		defer answer.Body.Close()
		said, _ := io.ReadAll(answer.Body)
		return nil, fmt.Errorf("%s %s: the API server answers %s: %s", method, url, answer.Status, said)
	}
	return answer.Body, nil
}

// ask is open for an answer that is a pod.
func (c *client) ask(ctx context.Context, method, pod, query, contentType string, in any) (*corev1.Pod, error) {
	body, err := c.open(ctx, method, pod, query, contentType, in)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	out := new(corev1.Pod)
	return out, json.NewDecoder(body).Decode(out)
}

// pod is a pod of a test. Its directory is mounted at /rule in each container.
type pod struct {
	t    *testing.T
	ctx  context.Context
	name string
	dir  string
	// states are all that the API server has shown so far, the first that which the
	// creation returned.
	states []*corev1.Pod
	news   chan *corev1.Pod
	lost   chan error // why the watch ended
}

// newPod creates a pod of these containers, which the test's end deletes. Those with a
// restartPolicy are sidecars.
func newPod(t *testing.T, edit func(*corev1.Pod), containers ...corev1.Container) *pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	p := &pod{t: t, ctx: ctx, dir: t.TempDir(), news: make(chan *corev1.Pod), lost: make(chan error, 1)}
	grace := int64(60)
	off := false
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + "-", Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName: api.node, HostNetwork: true, TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &off, EnableServiceLinks: &off,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes:     []corev1.Volume{{Name: "rule", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: p.dir}}}},
		},
	}
	for _, c := range containers {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "rule", MountPath: "/rule"})
		c.ImagePullPolicy = corev1.PullIfNotPresent
		list := &object.Spec.Containers
		if c.RestartPolicy != nil {
			list = &object.Spec.InitContainers
		}
		*list = append(*list, c)
	}
	if edit != nil {
		edit(object)
	}
	made, err := api.ask(ctx, http.MethodPost, "", "", "", object)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	p.name, p.states = made.Name, []*corev1.Pod{made}
	t.Cleanup(func() {
		cancel()
		p.delete()
	})
	go p.watch(made.ResourceVersion)
	return p
}

// watch delivers the states of the pod in order.
func (p *pod) watch(version string) {
	body, err := api.open(p.ctx, http.MethodGet, "", "watch=true&fieldSelector=metadata.name="+p.name+"&resourceVersion="+version, "", nil)
	if err != nil {
		p.lost <- err
		return
	}
	defer body.Close()
	for events := json.NewDecoder(body); ; {
		var event struct {
			Type   string
			Object corev1.Pod
		}
		if err := events.Decode(&event); err != nil {
			p.lost <- fmt.Errorf("the watch ended: %w", err)
			return
		}
		select {
		case p.news <- &event.Object:
		case <-p.ctx.Done():
			return
		}
	}
}

// until waits for a state, and returns it; a state that came before does not count.
func (p *pod) until(what string, is func(*corev1.Pod) bool) *corev1.Pod {
	p.t.Helper()
	for {
		select {
		case state := <-p.news:
			p.states = append(p.states, state)
			if is(state) {
				return state
			}
		case err := <-p.lost:
			p.t.Fatalf("waiting for %s: %v\n%s", what, err, p.history(0))
		case <-p.ctx.Done():
			p.t.Fatalf("waiting for %s\n%s", what, p.history(0))
		}
	}
}

// now is the latest state that was seen.
func (p *pod) now() *corev1.Pod { return p.states[len(p.states)-1] }

// patch changes the pod and returns its generation.
func (p *pod) patch(patch map[string]any) int64 {
	p.t.Helper()
	changed, err := api.ask(p.ctx, http.MethodPatch, p.name, "", "application/strategic-merge-patch+json", patch)
	if err != nil {
		p.t.Fatal(err)
	}
	return changed.Generation
}

// bind is the patch that the starter makes: a container's image and an annotation.
func (p *pod) bind(container, image, annotation string) int64 {
	p.t.Helper()
	list := "containers"
	if slices.ContainsFunc(p.now().Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container }) {
		list = "initContainers"
	}
	return p.patch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{"rule": annotation}},
		"spec":     map[string]any{list: []any{map[string]string{"name": container, "image": image}}},
	})
}

// delete deletes the pod and waits until it is gone.
func (p *pod) delete() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	body, err := api.open(ctx, http.MethodDelete, p.name, "gracePeriodSeconds=1", "", nil)
	if err == nil {
		body.Close()
		err = harness.Poll(ctx, "the pod to be gone", func() (bool, error) {
			body, err := api.open(ctx, http.MethodGet, p.name, "", "", nil)
			if err == nil {
				body.Close()
			}
			return err != nil && strings.Contains(err.Error(), "answers 404"), nil
		})
	}
	if err != nil && !strings.Contains(err.Error(), "answers 404") {
		p.t.Errorf("deleting the pod %s: %v", p.name, err)
	}
}

// history lists the states from that number on, one a line, for messages.
func (p *pod) history(from int) string {
	var b strings.Builder
	for _, s := range p.states[from:] {
		fmt.Fprintf(&b, "generation %d seen %d, %s %s:", s.Generation, s.Status.ObservedGeneration, s.Status.Phase, s.Status.Reason)
		for _, c := range statusesOf(s) {
			fmt.Fprintf(&b, " %s=%.22s #%d %s", c.Name, strings.TrimPrefix(c.ContainerID, "containerd://"), c.RestartCount, describe(c.State))
			if c.LastTerminationState.Terminated != nil {
				fmt.Fprintf(&b, " (last %s)", describe(c.LastTerminationState))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func describe(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return fmt.Sprintf("waiting %s %q", s.Waiting.Reason, s.Waiting.Message)
	case s.Terminated != nil:
		return fmt.Sprintf("ended %.22s %d %s %q", strings.TrimPrefix(s.Terminated.ContainerID, "containerd://"), s.Terminated.ExitCode, s.Terminated.Reason, s.Terminated.Message)
	case s.Running != nil:
		return "running"
	}
	return "nothing"
}

func statusesOf(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// statusOf is the status of a container; the zero value if there is none yet.
func statusOf(p *corev1.Pod, container string) corev1.ContainerStatus {
	for _, c := range statusesOf(p) {
		if c.Name == container {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// end is the end of a container, as the latest state that has it shows it. It is nil, and logged, if none does: the kubelet may
// collect the container while it starts the next one.
func (p *pod) end(container, id string) *corev1.ContainerStateTerminated {
	p.t.Helper()
	for _, s := range slices.Backward(p.states) {
		c := statusOf(s, container)
		for _, state := range []corev1.ContainerState{c.LastTerminationState, c.State} {
			if state.Terminated != nil && state.Terminated.ContainerID == id {
				return state.Terminated
			}
		}
	}
	p.t.Logf("the kubelet has collected container %s before it showed its end\n%s", id, p.history(0))
	return nil
}

// running waits until a container runs, if it does not yet.
func (p *pod) running(container string) corev1.ContainerStatus {
	p.t.Helper()
	return p.runs(container, "")
}

// runs waits until a container runs that is not the one with this ID, if it does not yet: the kubelet may
// have told of two new containers at once.
func (p *pod) runs(container, not string) corev1.ContainerStatus {
	p.t.Helper()
	anew := func(s *corev1.Pod) bool {
		c := statusOf(s, container)
		return c.State.Running != nil && c.ContainerID != not
	}
	state := p.now()
	if !anew(state) {
		state = p.until("container "+container+" to run anew", anew)
	}
	return statusOf(state, container)
}

// waits waits until a container waits for that reason, with this word in the message.
func (p *pod) waits(container, reason, word string) corev1.ContainerStatus {
	p.t.Helper()
	state := p.until(fmt.Sprintf("container %s to wait: %s %q", container, reason, word), func(s *corev1.Pod) bool {
		w := statusOf(s, container).State.Waiting
		return w != nil && w.Reason == reason && strings.Contains(w.Message, word)
	})
	return statusOf(state, container)
}

// log is what the containers have written to /rule/log.
func (p *pod) log() []string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// logs waits for the last line of the log.
func (p *pod) logs(last string) {
	p.t.Helper()
	err := harness.WaitFile(p.ctx, filepath.Join(p.dir, "log"), func(text []byte) (bool, error) {
		return strings.HasSuffix("\n"+string(text), "\n"+last+"\n"), nil
	})
	if err != nil {
		p.t.Fatalf("no line %q: %v: %q", last, err, p.log())
	}
}

// release ends what waits for a container's pipe.
func (p *pod) release(container string) {
	p.t.Helper()
	pipe, err := os.OpenFile(filepath.Join(p.dir, container+".pipe"), os.O_WRONLY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	pipe.Close()
}

// waiter is a script that waits for its pipe, or SIGTERM, and ends with 3 or 7. It
// writes down both, and its beginning with the annotation of that time.
const waiter = `
[ -p /rule/$0.pipe ] || mkfifo /rule/$0.pipe
echo "$0 begins $RULE" >>/rule/log
trap 'echo "$0 gets TERM" >>/rule/log; exit 7' TERM
: </rule/$0.pipe & wait $!
exit 3`

// container runs a script in busybox. $RULE is the pod's annotation of the name rule, $0
// the container's name.
func container(name, script string) corev1.Container {
	return corev1.Container{
		Name: name, Image: pool.Image("busybox"), Command: []string{"/bin/sh", "-c", script, name},
		Env: []corev1.EnvVar{{Name: "RULE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['rule']"}}}},
	}
}

// once is an image of the pool with a tag that the registry has never had, beside the
// digest, as in status.imageID.
func once(imageID, tag string) string {
	repository, digest, _ := strings.Cut(imageID, "@")
	return repository + ":" + tag + "@" + digest
}
