package podapi

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/options"
)

// TestToken: the kubelet replaces the token while a starter runs.
func TestToken(t *testing.T) {
	var got []string
	var token string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		reply(t, w, http.StatusOK, &apiv1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}})
	}, func(o *options.Options) { token = filepath.Join(o.KubernetesDir, "token") })
	for _, text := range []string{"first\n", "second"} {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"Bearer first", "Bearer second"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context()); err == nil || IsPassing(err) || !strings.Contains(err.Error(), "read the pilot's token") {
		t.Errorf("without a token: %v", err)
	}
}

// TestPath: a name is one part of a path.
func TestPath(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if want := "/api/v1/namespaces/jobs/pods/..%2Fnodes%3Fx"; r.URL.EscapedPath() != want {
			t.Errorf("path %s, want %s", r.URL.EscapedPath(), want)
		}
		reply(t, w, http.StatusOK, &apiv1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}})
	})
	if _, err := c.Of("../nodes?x").Get(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWrongCertificates: a file without certificates is noticed before the first call.
func TestWrongCertificates(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(options.Options{Server: "https://127.0.0.1:1", KubernetesDir: dir}); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Error(err)
	}
}
