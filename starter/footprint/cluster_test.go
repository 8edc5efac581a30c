package footprint_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// cluster is an API server with one pod, and the kubelet that runs its containers as
// processes of this machine.
type cluster struct {
	t       testing.TB
	server  *httptest.Server
	dir     string // what the kubelet mounts into the pilot container
	control string

	mu       sync.Mutex
	pod      *corev1.Pod
	wrappers []*exec.Cmd
}

func containerName(i int) string {
	if i == 0 {
		return "payload"
	}
	return fmt.Sprintf("payload-%d", i+1)
}

// newCluster makes a pod with so many payload containers.
func newCluster(t testing.TB, containers int, dir string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: filepath.Join(dir, "kubernetes"), control: filepath.Join(dir, "control")}
	must(t, os.MkdirAll(c.dir, 0o755))     //nolint:forbidigo // a directory of the test
	must(t, os.MkdirAll(c.control, 0o711)) //nolint:forbidigo // a directory of the test
	c.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pilot-0", Namespace: "jobs", UID: "uid-1", ResourceVersion: "1", Annotations: map[string]string{}}}
	program := filepath.Join(programs, "condor_pod_wrapper")
	for i := range containers {
		c.pod.Spec.Containers = append(c.pod.Spec.Containers, corev1.Container{
			Name: containerName(i), Image: "registry.example.com/site/default:1", Command: []string{program},
			VolumeMounts: []corev1.VolumeMount{{Name: "control", MountPath: "/run/control"}, {Name: "execute", MountPath: "/var/lib/condor/execute"}},
		})
		c.pod.Status.ContainerStatuses = append(c.pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: containerName(i), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	c.server = httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	for name, data := range map[string][]byte{"ca.crt": ca, "token": []byte("secret\n"), "namespace": []byte("jobs\n")} {
		must(t, os.WriteFile(filepath.Join(c.dir, name), data, 0o600))
	}
	return c
}

func (c *cluster) close() {
	c.server.CloseClientConnections()
	c.server.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.wrappers {
		_ = w.Process.Kill()
		_ = w.Wait()
	}
}

// address is where the API server is.
func (c *cluster) address() (host, port string) {
	u, err := url.Parse(c.server.URL)
	must(c.t, err)
	host, port, err = net.SplitHostPort(u.Host)
	must(c.t, err)
	return host, port
}

// serve answers a patch, with which a container is started, and a watch, which has no news.
func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodPatch {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.patch(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	pod := c.pod.DeepCopy()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	if err := info.Serializer.Encode(pod, w); err != nil {
		c.t.Error(err)
	}
}

// patch changes the pod and starts the wrapper of the container that the patch names.
func (c *cluster) patch(body []byte) error {
	var p corev1.Pod
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	for key, value := range p.Annotations {
		c.pod.Annotations[key] = value
	}
	for _, changed := range p.Spec.Containers {
		podapi.SpecOf(c.pod, changed.Name).Image = changed.Image
		wrapper := exec.Command(filepath.Join(programs, "condor_pod_wrapper"), "-control", filepath.Join(c.control, changed.Name))
		wrapper.Env = []string{payload.NonceEnv + "=" + p.Annotations[podapi.NonceAnnotation+changed.Name], "PATH=/usr/bin:/bin"}
		wrapper.Dir = "/"
		if err := wrapper.Start(); err != nil {
			return err
		}
		c.wrappers = append(c.wrappers, wrapper)
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
