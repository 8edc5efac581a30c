package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/statedir"
)

// Names of the processes that StartControllers starts.
const (
	ControllerManager = cluster.ControllerManager
	Scheduler         = cluster.Scheduler
)

// StartControllers starts the controller manager and the scheduler.
func (c *ControlPlane) StartControllers(ctx context.Context) error {
	dir, err := cluster.ControllersOf(c.components(), cluster.DefaultKubernetes).Build(ctx, c.store, c.log)
	if err != nil {
		return err
	}
	c.node.ControllersDir = dir
	for _, name := range []string{ControllerManager, Scheduler} {
		if _, err := statedir.ChoosePort(c.node.Settings.Ports, name, c.dir.ID(), false, statedir.Free); err != nil {
			return err
		}
	}
	return c.node.StartControllers(ctx, c.api)
}

// StopAPIServer ends the API server. It takes what clients ask until then to its end.
func (c *ControlPlane) StopAPIServer(ctx context.Context) error {
	return c.daemons().Stop(ctx, APIServer, 20*time.Second)
}

// StartAPIServer starts it again, and waits until it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	return c.node.StartAPIServer(ctx, c.api)
}

// Compact makes etcd forget the versions of objects before the last one, as the API server does every five minutes
// (--etcd-compaction-interval). A watch that ended before cannot go on from where it was.
func (c *ControlPlane) Compact(ctx context.Context) error {
	var last struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	// Any key tells the revision; this one is "\x00", in base64.
	if err := c.etcd(ctx, "/v3/kv/range", map[string]any{"key": "AA=="}, &last); err != nil {
		return err
	}
	return c.etcd(ctx, "/v3/kv/compaction", map[string]any{"revision": last.Header.Revision, "physical": true}, nil)
}

// etcd asks etcd by its gateway for JSON.
func (c *ControlPlane) etcd(ctx context.Context, path string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d%s", c.node.Settings.Ports[Etcd], path)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd: it answers %s to %s", resp.Status, path)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("reading etcd's answer to %s: %w", path, err)
	}
	return nil
}
