//go:build pool

package pulls

import (
	"net/http"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestTokenOnPuller: with the pilot's token one can change the image of its puller, and
// nothing else of it. All attempts are dry runs.
func TestTokenOnPuller(t *testing.T) {
	token, err := pool.PilotToken(t.Context(), harness.Ours)
	if err != nil {
		t.Fatal(err)
	}
	client, err := pool.WithToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	const puller = "/api/v1/namespaces/" + harness.Namespace + "/pods/glidein-puller"
	const byPolicy, byRBAC = "ValidatingAdmissionPolicy 'podstarter-pilot'", "cannot "
	address, _, _ := strings.Cut(pool.Image("busybox"), "/")
	for _, tt := range []struct {
		name, method, path, body string
		want                     string // who refuses it; empty if nobody does
	}{
		{"image", http.MethodPatch, "", `{"spec":{"containers":[{"name":"puller","image":"registry.example.org/any:1"}]}}`, ""},
		{"its end", http.MethodPatch, "", `{"spec":{"activeDeadlineSeconds":1}}`, ""},
		{"image that the site refuses", http.MethodPatch, "", `{"spec":{"containers":[{"name":"puller","image":"` + address + `/not-on-this-cluster/x:1"}]}}`,
			"ValidatingAdmissionPolicy 'podstarter-images'"},
		{"init container's image", http.MethodPatch, "", `{"spec":{"initContainers":[{"name":"prepare","image":"registry.example.org/evil:1"}]}}`, byPolicy},
		{"label, to make it another pilot's", http.MethodPatch, "", `{"metadata":{"labels":{"podstarter/pilot":"other"}}}`, byPolicy},
		{"command", http.MethodPatch, "", `{"spec":{"containers":[{"name":"puller","command":["sh"]}]}}`, "Forbidden: pod updates may not"},
		{"user", http.MethodPatch, "", `{"spec":{"containers":[{"name":"puller","securityContext":{"runAsUser":0}}]}}`, "Forbidden: pod updates may not"},
		{"exec", http.MethodPost, "/exec?command=true&container=puller&stdout=true", "", byRBAC},
		{"deletion", http.MethodDelete, "", "", byRBAC},
		{"ephemeral container", http.MethodPatch, "/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"e","image":"x"}]}}`, byRBAC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, contentType := puller+tt.path, ""
			if !strings.Contains(path, "?") {
				path += "?dryRun=All"
			}
			if tt.body != "" {
				contentType = "application/strategic-merge-patch+json"
			}
			code, text, err := client.Ask(t.Context(), tt.method, path, contentType, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" && code != http.StatusOK || tt.want != "" && (code < 400 || !strings.Contains(text, tt.want)) {
				t.Errorf("%d: %s, want %q", code, text, tt.want)
			}
		})
	}
}

// TestCheck: -check finds nothing wrong with the puller.
func TestCheck(t *testing.T) {
	out, err := pool.TryEP(t.Context(), harness.Ours, "/opt/podstarter/bin/condor_pod_starter", "-check")
	if err != nil {
		t.Fatal(err)
	}
	if text := out.Stdout; !strings.Contains(text, "puller glidein-puller") || !strings.Contains(text, "with nothing in it that an image could reach") {
		t.Errorf("-check prints\n%s", text)
	}
}
