package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Namespace is where the pool's pods are.
const Namespace = "podstarter"

// PodName is the name of an execution point's pod.
func (s Side) PodName() string {
	switch s {
	case Ours:
		return "glidein"
	case Stock:
		return "glidein-stock"
	case StockDocker:
		return "glidein-docker"
	case StockApptainer:
		return "glidein-apptainer"
	}
	return string(s)
}

// Kubectl runs kubectl as the cluster's administrator and returns its standard
// output.
func (p *Pool) Kubectl(ctx context.Context, stdin io.Reader, argv ...string) (string, error) {
	return p.run(ctx, stdin, append([]string{"kubectl"}, argv...)...)
}

// A TokenClient sends requests to the API server with one bearer token and nothing
// else.
type TokenClient struct {
	server string
	token  string
	client *http.Client
}

// PilotToken is the token that the kubelet has mounted into the pilot of an
// execution point.
func (p *Pool) PilotToken(ctx context.Context, side Side) (string, error) {
	return p.EP(ctx, side, "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
}

// WithToken makes a client with a token of a service account.
func (p *Pool) WithToken(ctx context.Context, token string) (*TokenClient, error) {
	port, err := p.EP(ctx, Ours, "printenv", "KUBERNETES_SERVICE_PORT")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(p.State, "pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &TokenClient{
		server: "https://127.0.0.1:" + strings.TrimSpace(port), token: strings.TrimSpace(token),
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
	}, nil
}

// Ask sends a request and returns the status code and the message of the answer, or
// the answer itself if it is not a Status.
func (c *TokenClient) Ask(ctx context.Context, method, path, contentType, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, "", fmt.Errorf("asking the API server: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", fmt.Errorf("%s %s: %w", method, path, err)
	}
	var status struct{ Kind, Message string }
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		return resp.StatusCode, status.Message, nil
	}
	return resp.StatusCode, string(bytes.TrimSpace(text)), nil
}

// GiveDisk lets the scheduler and the kubelets of this pool count with a disk: pods that request some can then run. The
// kubelets do not measure theirs here, and keep what the node's status says.
func (p *Pool) GiveDisk(ctx context.Context) error {
	names, err := p.Kubectl(ctx, nil, "get", "nodes", "-o", "name")
	for _, node := range strings.Fields(names) {
		if err == nil {
			_, err = p.Kubectl(ctx, nil, "patch", node, "--subresource=status", "--type=merge",
				"-p", `{"status":{"capacity":{"ephemeral-storage":"100Gi"},"allocatable":{"ephemeral-storage":"100Gi"}}}`)
		}
	}
	return err
}
