//go:build pool

package podfailures

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Parts of image names that the cluster's admission control refuses.
const (
	deniedByPolicy = "denied-by-policy"
	deniedByHook   = "denied-by-webhook"
	hookAway       = "webhook-away"
)

// admission takes: URL of a webhook that denies, of one that does not answer, and the authority
// of both.
const admission = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: failures}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}
  validations:
    - expression: "object.spec.containers.all(c, !c.image.contains('/` + deniedByPolicy + `/')) &&
        object.spec.?initContainers.orValue([]).all(c, !c.image.contains('/` + deniedByPolicy + `/'))"
      message: this image may not run here
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: failures}
spec: {policyName: failures, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: failures}
webhooks:
  - name: denies.podstarter.test
    clientConfig: {url: %[1]q, caBundle: %[3]s}
    rules: &rules [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]
    matchConditions: [{name: image, expression: "object.spec.containers.exists(c, c.image.contains('/` + deniedByHook + `/')) ||
          object.spec.?initContainers.orValue([]).exists(c, c.image.contains('/` + deniedByHook + `/'))"}]
    sideEffects: None
    admissionReviewVersions: [v1]
  - name: away.podstarter.test
    clientConfig: {url: %[2]q, caBundle: %[3]s}
    rules: *rules
    matchConditions: [{name: image, expression: "object.spec.containers.exists(c, c.image.contains('/` + hookAway + `/')) ||
          object.spec.?initContainers.orValue([]).exists(c, c.image.contains('/` + hookAway + `/'))"}]
    sideEffects: None
    admissionReviewVersions: [v1]
`

// admissionControl sets up policy and webhooks; the returned function removes them.
func (w *world) admissionControl(ctx context.Context) (func(), error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(w.cluster.Keys, "apiserver.crt"), filepath.Join(w.cluster.Keys, "apiserver.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(w.cluster.Keys, "ca.crt"))
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}})
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(deny), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	away := nobody.Addr()
	_ = nobody.Close()
	text := fmt.Sprintf(admission, "https://"+listener.Addr().String()+"/", "https://"+away.String()+"/", base64.StdEncoding.EncodeToString(ca))
	undo := func() {
		_, _ = w.pool.Kubectl(context.Background(), strings.NewReader(text), "delete", "--ignore-not-found", "-f", "-")
		_ = server.Close()
	}
	if _, err := w.pool.Kubectl(ctx, strings.NewReader(text), "apply", "-f", "-"); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// deny is a webhook that denies everything.
func deny(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": map[string]any{"uid": review.Request.UID, "allowed": false, "status": map[string]any{"message": "not here, said the webhook"}},
	})
}
