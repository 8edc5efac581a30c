package podapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestMay(t *testing.T) {
	const want = `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",` +
		`"spec":{"resourceAttributes":{"namespace":"jobs","verb":"create","resource":"pods","subresource":"exec"}}}`
	for answer, granted := range map[string]bool{
		`{"kind":"SelfSubjectAccessReview","status":{"allowed":true}}`:                true,
		`{"kind":"SelfSubjectAccessReview","status":{"allowed":false,"denied":true}}`: false,
		`{}`: false,
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Method != http.MethodPost || r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" ||
				r.Header.Get("Content-Type") != runtime.ContentTypeJSON || r.Header.Get("Accept") != runtime.ContentTypeJSON {
				t.Errorf("request %s %s %v", r.Method, r.URL, r.Header)
			}
			var got, wanted any
			_ = json.Unmarshal(body, &got)
			_ = json.Unmarshal([]byte(want), &wanted)
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, answer)
		})
		got, err := c.May(context.Background(), Right{Namespace: "jobs", Verb: "create", Resource: "pods", Subresource: "exec"})
		if err != nil || got != granted {
			t.Errorf("%s: %v, %v", answer, got, err)
		}
	}
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	if _, err := c.May(context.Background(), Right{}); err == nil {
		t.Error("a page was taken for an answer")
	}
}

func TestNeighbour(t *testing.T) {
	const own = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pilot-0"}}}` + "\n"
	const other = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"other"}}}` + "\n"
	for events, want := range map[string]string{own: "", own + other: "other", "": ""} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); r.URL.Path != "/api/v1/namespaces/jobs/pods" || q.Get("watch") != "true" || q.Get("timeoutSeconds") == "" {
				t.Errorf("request %s", r.URL)
			}
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = io.WriteString(w, events)
		})
		if got, err := c.Neighbour(context.Background()); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
