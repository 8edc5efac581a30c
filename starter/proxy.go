package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
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

// proxyPlace is where newer X.509 proxies go. The zero value takes none.
type proxyPlace struct {
	mu      sync.Mutex
	open    bool             // there is a sandbox
	sandbox *sandbox.Sandbox // nil if files are not transferred
	name    string           // "" if the job has no proxy
}

// know says where the proxy of the job is.
func (p *proxyPlace) know(s *sandbox.Sandbox, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open, p.sandbox, p.name = true, s, name
}

func (p *proxyPlace) where() (s *sandbox.Sandbox, name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.open:
		return nil, "", errors.New("the job has no sandbox yet")
	case p.sandbox != nil && p.name == "":
		return nil, "", errors.New("the job has no X.509 proxy")
	}
	return p.sandbox, p.name, nil
}

// placeProxy gets ready for the proxies that the shadow will bring.
func (a *activation) placeProxy() {
	if a.info.FileTransfer {
		a.proxies.know(a.sandbox, job.ProxyName(a.ad))
		return
	}
	a.proxies.know(nil, "")
}

// commandProxy is UPDATE_GSI_CRED and DELEGATE_GSI_CRED_STARTER: the shadow has
// a newer X.509 proxy, as a file or by delegation. The job finds the old one or
// the new one under the same name, never none (jic_shadow.cpp:updateX509Proxy).
func (a *activation) commandProxy(_ context.Context, c *cedar.Call) error {
	box, name, err := a.proxies.where()
	if err != nil {
		return fmt.Errorf("take a newer X.509 proxy: %w", err)
	}
	answer := func(n int64) error {
		c.Stream.PutInt(n)
		return c.Stream.EndMessage()
	}
	c.Stream.SetTimeout(proxyPatience)
	if box == nil {
		if c.Command == cedar.UpdateGSICred {
			// An answer before the file has come would be lost with a
			// connection that is closed in the middle of it. A shadow that
			// wants to delegate takes the answer for a failure, and comes
			// with the file.
			if _, err := receiveProxy(c); err != nil {
				return fmt.Errorf("pass over a newer X.509 proxy: %w", err)
			}
		}
		return answer(proxyDeclined)
	}
	text, err := receiveProxy(c)
	if err != nil {
		return errors.Join(fmt.Errorf("take a newer X.509 proxy: %w", err), answer(proxyFailed))
	}
	if err := box.WriteFile(name, text, 0o600); err != nil {
		return errors.Join(fmt.Errorf("take a newer X.509 proxy: %w", err), answer(proxyFailed))
	}
	a.log.Info("The shadow renewed the job's X.509 proxy")
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

// delegatedProxy has the shadow delegate the proxy of a job whose files are not
// transferred. Without it the job starts all the same, and looks for its proxy
// where it was submitted (jic_shadow.cpp:beginInputTransfer).
func (a *activation) delegatedProxy(ctx context.Context) error {
	name := job.ProxyName(a.ad)
	if a.info.FileTransfer || name == "" {
		return nil
	}
	expires, err := job.ProxyExpiry(a.ad, a.cfg, now())
	if err != nil {
		a.log.Warn("A knob about X.509 proxies is not understood, its default holds", "error", err)
	}
	text, err := a.shadow.GetDelegatedProxy(context.WithoutCancel(ctx), a.ad.StringOr("x509userproxy", ""), expires)
	if err == nil {
		err = a.sandbox.WriteFile(name, text, 0o600)
	}
	if errors.Is(err, shadow.ErrLost) {
		return err
	}
	if err != nil {
		a.log.Error("The job's X.509 proxy is not delegated", "error", err)
	}
	// The job is told the place in either case.
	a.creds.proxy = filepath.Join(a.sandbox.Scratch(), name)
	return nil
}
