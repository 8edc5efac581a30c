package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// Administrator makes a namespace, in place of one that an earlier run left, and in it an account with all rights there and none
// elsewhere. It returns the account's kubeconfig. [Pool.RemoveNamespace] removes all of it.
func (p *Pool) Administrator(ctx context.Context, namespace string) ([]byte, error) {
	const name = "administrator"
	for _, argv := range [][]string{
		{"delete", "namespace", namespace, "--ignore-not-found", "--timeout=2m"},
		{"create", "namespace", namespace},
		{"-n", namespace, "create", "serviceaccount", name},
		{"-n", namespace, "create", "role", name, "--verb=*", "--resource=*.*"},
		{"-n", namespace, "create", "rolebinding", name, "--role=" + name, "--serviceaccount=" + namespace + ":" + name},
	} {
		if _, err := p.Kubectl(ctx, nil, argv...); err != nil {
			return nil, fmt.Errorf("making the namespace %s: %w", namespace, err)
		}
	}
	token, err := p.Kubectl(ctx, nil, "-n", namespace, "create", "token", name)
	if err != nil {
		return nil, err
	}
	server, err := p.Kubectl(ctx, nil, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	if err != nil {
		return nil, err
	}
	type named = map[string]any
	return json.Marshal(named{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []named{{"name": "c", "cluster": named{"server": strings.TrimSpace(server), "certificate-authority": filepath.Join(p.State, "pki", "ca.crt")}}},
		"users":    []named{{"name": "u", "user": named{"token": strings.TrimSpace(token)}}},
		"contexts": []named{{"name": "c", "context": named{"cluster": "c", "user": "u", "namespace": namespace}}},
	})
}

// RemoveNamespace removes the namespace of [Pool.Administrator] with all that is in it.
func (p *Pool) RemoveNamespace(ctx context.Context, namespace string) error {
	if _, err := p.Kubectl(ctx, nil, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=2m"); err != nil {
		return fmt.Errorf("removing the namespace %s: %w", namespace, err)
	}
	return nil
}
