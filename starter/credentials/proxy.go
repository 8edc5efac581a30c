package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
)

// Answers to a shadow that brings a newer X.509 proxy
// (daemon_client/dc_starter.h:X509UpdateStatus).
const (
	proxyFailed   = 0
	proxyTaken    = 1
	proxyDeclined = 2 // and do not come again
)

const (
	// maxProxyFile bounds a proxy that comes as a file. Some kilobytes are
	// usual, some ten with the attributes of many groups.
	maxProxyFile = 1 << 20
	// proxyPatience bounds each wait for the shadow while it brings one
	// (jic_shadow.cpp:updateX509Proxy).
	proxyPatience = 10 * time.Second
)

// Renewals takes the newer X.509 proxies that the shadow brings. The zero value has no
// place for them yet.
type Renewals struct {
	Log *slog.Logger

	mu    sync.Mutex
	place *place // nil while there is no sandbox
}

// place is where they go.
type place struct {
	sandbox Sandbox // nil if files are not transferred
	name    string  // "" if the job has no proxy
}

// Open says where the job's proxy is. Without a sandbox, newer ones are declined: files
// are not transferred. An empty name stands for a job without a proxy.
func (r *Renewals) Open(s Sandbox, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place = &place{s, name}
}

func (r *Renewals) where() (place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.place == nil:
		return place{}, errors.New("the job has no sandbox yet")
	case r.place.sandbox != nil && r.place.name == "":
		return place{}, errors.New("the job has no X.509 proxy")
	}
	return *r.place, nil
}

// Command is UPDATE_GSI_CRED and DELEGATE_GSI_CRED_STARTER: the shadow has
// a newer X.509 proxy, as a file or by delegation. The job finds the old one or
// the new one under the same name, never none (jic_shadow.cpp:updateX509Proxy).
func (r *Renewals) Command(_ context.Context, c *cedar.Call) error {
	to, err := r.where()
	if err != nil {
		return fmt.Errorf("take a newer X.509 proxy: %w", err)
	}
	answer := func(n int64) error {
		c.Stream.PutInt(n)
		return c.Stream.EndMessage()
	}
	c.Stream.SetTimeout(proxyPatience)
	if to.sandbox == nil {
		if c.Command == cedar.UpdateGSICred {
			// Take the file first: closing the connection in the middle of it
			// would lose the answer. A shadow that wants to delegate takes the
			// answer for a failure, and sends the file.
			if _, err := receiveProxy(c); err != nil {
				return fmt.Errorf("decline a newer X.509 proxy: %w", err)
			}
		}
		return answer(proxyDeclined)
	}
	text, err := receiveProxy(c)
	if err != nil {
		return errors.Join(fmt.Errorf("take a newer X.509 proxy: %w", err), answer(proxyFailed))
	}
	if err := to.sandbox.WriteFile(to.name, text, 0o600); err != nil {
		return errors.Join(fmt.Errorf("take a newer X.509 proxy: %w", err), answer(proxyFailed))
	}
	r.Log.Info("The shadow renewed the job's X.509 proxy")
	return answer(proxyTaken)
}

// receiveProxy takes a proxy in either form.
func receiveProxy(c *cedar.Call) ([]byte, error) {
	if c.Command == cedar.DelegateGSICredStarter {
		return c.Stream.ReceiveProxy()
	}
	var text bytes.Buffer
	if _, err := c.Stream.GetFile(&text, maxProxyFile); err != nil {
		return nil, err
	}
	return text.Bytes(), c.Stream.EndOfMessage()
}

// DelegateProxy has the shadow delegate the proxy of a job whose files are not
// transferred. Without it the job starts all the same, and looks for its proxy where it
// was submitted (jic_shadow.cpp:beginInputTransfer). err is set only if the shadow is
// lost.
func (k *Keeper) DelegateProxy(ctx context.Context) error {
	name := job.ProxyName(k.Job)
	if k.Info.FileTransfer || name == "" {
		return nil
	}
	text, err := k.Shadow.GetDelegatedProxy(context.WithoutCancel(ctx), k.Job.StringOr("x509userproxy", ""), k.ProxyExpiry())
	if err == nil {
		err = k.Sandbox.WriteFile(name, text, 0o600)
	}
	if errors.Is(err, shadow.ErrLost) {
		return err
	}
	if err != nil {
		k.Log.Error("The job's X.509 proxy is not delegated", "error", err)
	}
	// The job is told the place in either case.
	k.proxy = filepath.Join(k.Sandbox.Scratch(), name)
	return nil
}
