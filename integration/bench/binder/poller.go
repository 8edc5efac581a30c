package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// pollInterval is how often the status is looked at.
const pollInterval = 50 * time.Millisecond

// poller binds without help from inside the container.
type poller struct {
	client *http.Client
	url    string
	token  string
	once   bool // whether it writes images as name:<once>@<digest>
	serial int
}

type pod struct {
	Spec struct {
		Containers []struct{ Name, Image string }
	}
	Status struct {
		ContainerStatuses []struct {
			Name         string
			RestartCount int
			ImageID      string
			State        struct{ Running *struct{} }
		}
	}
}

func newPoller(once bool) (func(context.Context, string) error, error) {
	token, err := os.ReadFile(serviceAccount + "/token")
	if err != nil {
		return nil, err
	}
	namespace, err := os.ReadFile(serviceAccount + "/namespace")
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(serviceAccount + "/ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("no certificate in ca.crt")
	}
	p := &poller{
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}},
		url: fmt.Sprintf("https://%s/api/v1/namespaces/%s/pods/%s", net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")),
			strings.TrimSpace(string(namespace)), os.Getenv("POD_NAME")),
		token: strings.TrimSpace(string(token)), once: once, serial: os.Getpid() * 1000,
	}
	return p.bind, nil
}

// bind patches the image and waits until the status shows one more start.
func (p *poller) bind(ctx context.Context, image string) error {
	before, err := p.do(ctx, http.MethodGet, nil)
	if err != nil {
		return err
	}
	spec := image
	if p.once {
		if spec, err = p.onceOf(ctx, image, before); err != nil {
			return err
		}
	}
	patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":%q,"image":%q}]}}`, container, spec)
	if _, err := p.do(ctx, http.MethodPatch, patch); err != nil {
		return err
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		now, err := p.do(ctx, http.MethodGet, nil)
		if err != nil {
			return err
		}
		if now.restarts() > before.restarts() && now.running() {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// onceOf gives an image a tag of its own. In the pool's registry the tag of an
// image is the first digits of its digest.
func (p *poller) onceOf(ctx context.Context, image string, _ *pod) (string, error) {
	repository, tag, ok := cutLast(image, ":")
	if !ok {
		return "", fmt.Errorf("%s has no tag", image)
	}
	registry, name, _ := strings.Cut(repository, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+registry+"/v2/"+name+"/manifests/"+tag, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	answer.Body.Close()
	digest := answer.Header.Get("Docker-Content-Digest")
	if digest == "" {
		return "", fmt.Errorf("the registry names no digest of %s: %s", image, answer.Status)
	}
	p.serial++
	return fmt.Sprintf("%s:poll-%d@%s", repository, p.serial, digest), nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func (p *pod) restarts() int {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container {
			return s.RestartCount
		}
	}
	return 0
}

func (p *pod) running() bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container {
			return s.State.Running != nil
		}
	}
	return false
}

func (p *poller) do(ctx context.Context, method string, body []byte) (*pod, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", method, answer.Status, text)
	}
	found := new(pod)
	return found, json.Unmarshal(text, found)
}
