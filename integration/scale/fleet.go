package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"podstarter/integration/pool/controlplane"
	"podstarter/k8sexec/options"
)

// fleet are all pilots.
type fleet struct {
	load    load
	slots   []*slot
	record  *record
	kubelet *reader
}

// newFleet gives each slot the files that a pilot's pod has: a token that is bound to the pod, and the authority.
func newFleet(ctx context.Context, plane *controlplane.ControlPlane, l load, pods []pod) (*fleet, error) {
	f := &fleet{load: l, record: newRecord()}
	f.slots = make([]*slot, l.pilots*l.slots)
	ca, err := os.ReadFile(plane.CA())
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	if f.kubelet, err = newReader(ctx, plane, f.record, ca, pods[0]); err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(creators)
	for i, p := range pods {
		g.Go(func() error {
			token, err := plane.Token(ctx, account, p.name, p.uid)
			if err != nil {
				return err
			}
			for n := range l.slots {
				s := &slot{container: containerName(n), record: f.record, kubelet: f.kubelet}
				s.options = options.Options{Server: plane.Server(), PodName: p.name, PodNamespace: controlplane.Namespace,
					KubernetesDir: plane.Path("pilots", p.name, s.container)}
				if err := writeFiles(s.options.KubernetesDir, token, ca); err != nil {
					return err
				}
				f.slots[i*l.slots+n] = s
			}
			return nil
		})
	}
	return f, g.Wait()
}

// writeFiles writes what a pilot finds in its pod. client-go shares connections between clients with the same certificates;
// starters are processes with connections of their own, so each slot has another text before the certificate.
func writeFiles(dir, token string, ca []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mine := bytes.Join([][]byte{[]byte("authority for " + dir), ca}, []byte("\n"))
	for name, text := range map[string][]byte{"token": []byte(token), "ca.crt": mine, "namespace": []byte(controlplane.Namespace)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return fmt.Errorf("writing a pilot's files: %w", err)
		}
	}
	return nil
}

// run runs jobs in all slots for the length of the measurement, and waits for the bindings that are under way then.
func (f *fleet) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.load.during)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range f.slots {
		all.Go(func() { s.run(ctx, f.load) })
	}
	all.Wait()
	f.kubelet.reading.Wait()
}

// seen is what the pilots saw.
func (f *fleet) seen() seen { return f.record.sum() }

// record collects what the pilots see.
type record struct {
	log *slog.Logger

	mu sync.Mutex
	seen
}

// seen is what the pilots saw.
type seen struct {
	jobs, unbound, watches int
	patches, bindings      []time.Duration
	errors                 map[string]int
}

func newRecord() *record {
	r := &record{seen: seen{errors: map[string]int{}}}
	r.log = errorsIn(r)
	return r
}

func (r *record) sum() seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// patched notes an attempt to patch.
func (r *record) patched(took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.patches = append(r.patches, took)
	}
}

// watched notes that a binding opens a watch.
func (r *record) watched() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches++
}

// bound notes the end of a binding.
func (r *record) bound(took time.Duration, err error) {
	r.mu.Lock()
	r.jobs++
	if err == nil {
		r.bindings = append(r.bindings, took)
	} else {
		r.unbound++
	}
	r.mu.Unlock()
	if err != nil {
		r.failed(err)
	}
}

// maxErrors bounds the different errors that are kept.
const maxErrors = 20

// failed notes an error.
func (r *record) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := err.Error()
	if _, known := r.errors[text]; !known && len(r.errors) >= maxErrors {
		text = "others"
	}
	r.errors[text]++
}
