package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/statedir"
)

// Pilots applies deploy/glidein with one Role for all pilots (deploy/components/one-role), and deploy/policy. It returns
// the pod of the manifest, which is not created.
func (c *ControlPlane) Pilots(ctx context.Context) (Object, error) {
	dir := c.Path("glidein")
	glidein, err := filepath.Rel(dir, c.Source("deploy", "glidein"))
	if err != nil {
		return nil, fmt.Errorf("naming deploy/glidein from %s: %w", dir, err)
	}
	oneRole, err := filepath.Rel(dir, c.Source("deploy", "components", "one-role"))
	if err != nil {
		return nil, fmt.Errorf("naming deploy/components from %s: %w", dir, err)
	}
	text := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\ncomponents: [%s]\n", glidein, oneRole)
	if err := statedir.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return nil, err
	}
	var pod Object
	for _, kustomization := range []string{dir, c.Source("deploy", "policy")} {
		objects, err := cluster.Render(ctx, c.kubectl, c.kubeconfig(), kustomization)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if o.String("kind") == "Pod" {
				pod = o
				continue
			}
			if err := c.api.Apply(ctx, o); err != nil {
				return nil, err
			}
		}
	}
	if pod == nil {
		return nil, errors.New("deploy/glidein holds no pod")
	}
	return pod, nil
}

// AwaitPolicy waits until the policy denies the pilot of this pod what it should: the API server compiles policies in the
// background.
func (c *ControlPlane) AwaitPolicy(ctx context.Context, account, pod, uid string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the policy of deploy/policy is not in force after a minute"))
	defer cancel()
	const policy = "podstarter-pilot"
	as := cluster.BoundAccount{Namespace: Namespace, Name: account, Pod: pod, PodUID: uid}
	patch := Object{"metadata": map[string]any{"labels": map[string]any{"a-pilot-may": "not-do-this"}}}
	return cluster.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := c.api.TryPatch(ctx, as, patch)
		if err == nil {
			return false, fmt.Errorf("%s allows what it should deny", policy)
		}
		return strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'"), err
	})
}

// Token returns a token of the service account that is bound to the pod, as the kubelet gives one to a pilot; to none if
// there is no name.
func (c *ControlPlane) Token(ctx context.Context, account, pod, uid string) (string, error) {
	var answer struct{ Status struct{ Token string } }
	spec := map[string]any{"expirationSeconds": 7200}
	if pod != "" {
		spec["boundObjectRef"] = map[string]any{"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": uid}
	}
	request := Object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
	path := "/api/v1/namespaces/" + Namespace + "/serviceaccounts/" + account + "/token"
	if err := c.api.Do(ctx, http.MethodPost, path, "application/json", request, &answer); err != nil {
		return "", fmt.Errorf("asking for a token of %s for the pod %q: %w", account, pod, err)
	}
	return answer.Status.Token, nil
}
