package podapi

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"

	"podstarter/k8sexec/options"
)

// serve starts an HTTPS server and makes a client of it with the files that a
// pod has.
func serve(t *testing.T, handler http.HandlerFunc, change ...func(*options.Options)) *Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, data := range map[string][]byte{"ca.crt": ca, "token": []byte("secret\n"), "namespace": []byte("jobs\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options.Options{Server: server.URL, KubernetesDir: dir, PodName: "pilot-0", PodNamespace: "jobs"}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func reply(t *testing.T, w http.ResponseWriter, code int, object runtime.Object) {
	t.Helper()
	codecs := serializer.NewCodecFactory(podScheme())
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

func TestClient(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pilot-0", Namespace: "jobs", UID: "uid-1", Generation: 3},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pilot"}, {Name: "payload"}, {Name: "payload-2"}}}}
	pod.ResourceVersion = "7"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("authorization %q", got)
		}
		if got := r.Header.Get("Accept"); !strings.HasPrefix(got, runtime.ContentTypeProtobuf) {
			t.Errorf("accept %q", got)
		}
		q := r.URL.Query()
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/jobs/pods/pilot-0":
			reply(t, w, http.StatusOK, pod)
		case r.Method == http.MethodPatch && r.URL.Path == "/api/v1/namespaces/jobs/pods/pilot-0":
			if got := r.Header.Get("Content-Type"); got != "application/strategic-merge-patch+json" {
				t.Errorf("content type %q", got)
			}
			if body, _ := io.ReadAll(r.Body); string(body) != "{}" {
				t.Errorf("body %q", body)
			}
			if got := q.Get("dryRun"); got != "All" {
				t.Errorf("dryRun %q", got)
			}
			reply(t, w, http.StatusOK, pod)
		case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/jobs/pods":
			if q.Get("watch") != "true" || q.Get("fieldSelector") != "metadata.name=pilot-0" || q.Get("resourceVersion") != "7" {
				t.Errorf("watch with %v", q)
			}
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = io.WriteString(w, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pilot-0","resourceVersion":"8"}}}`+"\n")
		default:
			t.Errorf("request %s %s", r.Method, r.URL)
		}
	})
	ctx := context.Background()
	if got, err := c.Get(ctx); err != nil || got.Name != "pilot-0" || len(got.Spec.Containers) != 3 {
		t.Errorf("get: %v", err)
	}
	if got, err := c.Patch(ctx, []byte("{}"), true); err != nil || got.ResourceVersion != "7" {
		t.Errorf("patch: %v", err)
	}
	events, err := c.Watch(ctx, "7")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	e := <-events.ResultChan()
	if p, ok := e.Object.(*corev1.Pod); e.Type != watch.Modified || !ok || p.ResourceVersion != "8" {
		t.Errorf("event %+v", e)
	}
}

// TestCalled: each request is counted by what it asked and what came back, and none twice.
func TestCalled(t *testing.T) {
	var mu sync.Mutex
	got := make(map[string]int)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pilot-0"}}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			panic(http.ErrAbortHandler)
		case r.URL.Query().Has("watch"):
			http.Error(w, "too many", http.StatusTooManyRequests)
		default:
			reply(t, w, http.StatusOK, pod)
		}
	}, func(o *options.Options) {
		o.Called = func(verb string, code int) {
			mu.Lock()
			defer mu.Unlock()
			got[fmt.Sprint(verb, " ", code)]++
		}
	})
	ctx := context.Background()
	for range 2 {
		if _, err := c.Get(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Patch(ctx, []byte("{}"), false); err != nil {
		t.Error(err)
	}
	if _, err := c.Watch(ctx, "7"); err == nil {
		t.Error("a watch that was refused goes on")
	}
	if _, err := c.May(ctx, Right{}); err == nil {
		t.Error("a call without an answer succeeded")
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(map[string]int{"get 200": 2, "patch 200": 1, "watch 429": 1, "create 0": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClientErrors(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason, message string) *metav1.Status {
		return &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
	}
	tests := []struct {
		name    string
		answer  http.HandlerFunc
		passing bool
		is      func(error) bool
	}{
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) {
			reply(t, w, 403, status(403, metav1.StatusReasonForbidden, "no"))
		}, false, apierrors.IsForbidden},
		{"conflict", func(w http.ResponseWriter, _ *http.Request) {
			reply(t, w, 409, status(409, metav1.StatusReasonConflict, "modified"))
		}, true, apierrors.IsConflict},
		{"a proxy's page", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
		}, true, nil},
		{"garbage", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			_, _ = w.Write([]byte("neither"))
		}, false, nil},
		{"connection cut", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, tt.answer)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := c.Patch(ctx, []byte("{}"), false)
			if err == nil {
				t.Fatal("no error")
			}
			if got := IsPassing(err); got != tt.passing {
				t.Errorf("passing %v: %T %v", got, err, err)
			}
			if tt.is != nil && !tt.is(err) {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		c := serve(t, nil)
		dead := httptest.NewTLSServer(nil)
		dead.Close()
		gone, err := New(options.Options{Server: dead.URL, KubernetesDir: t.TempDir()})
		if err == nil {
			t.Errorf("a client without token: %v", gone)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.Get(ctx); err == nil {
			t.Error("a call with an ended context succeeded")
		}
	})
}
