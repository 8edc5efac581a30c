// Package jointpatch carries out the bindings of several starters of a pod by one patch.
//
// All of them change the same object. An API server that gets their patches at once does each
// again and again, since each that succeeds spoils the others: with 32 slots most calls ran
// into their time limit. So a starter lays its binding open in the private directory and takes a lock.
// Who has it sends all bindings that lie there; who gets it next finds its own done.
package jointpatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"podstarter/internal/atomicfile"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/rescue"
)

const (
	lockFile = "patch.lock"
	podFile  = "patched.pb" // the pod after the latest joint patch
	prefix   = "patch."     // of a file with a binding
	suffix   = ".json"
	// maxBinding bounds a file with a binding: two images and some names.
	maxBinding = 16 << 10
	// maxPod bounds the file with the pod: etcd takes no object of more than 1.5 MiB.
	maxPod = 4 << 20
)

// ErrBusy is the error of a caller that did not get the lock in time: the API server has not
// answered the call of another starter.
var ErrBusy = errors.New("wait for the patch of another slot's starter")

// Patch carries out bindings of containers whose leases the caller has, and of which it has
// noted that nobody may rely on what they run: a binding whose starter has died or given up
// may be carried out later, by another. Others' bindings that wait go along, unless the API server refuses
// them together. Patch returns the pod after the patch, which may be another starter's. It makes one attempt.
func Patch(ctx context.Context, dir *os.Root, api podapi.API, bindings ...podapi.Binding) (*corev1.Pod, error) {
	for _, b := range bindings {
		if err := privatedir.WriteJSON(dir, fileOf(b.Container), b); err != nil {
			return nil, err
		}
		defer func() { _ = dir.Remove(fileOf(b.Container)) }()
	}
	lock, err := takeLock(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	done := donePod(dir)
	if carriesOut(done, bindings) {
		return done, nil
	}
	all := slices.Concat(bindings, waiting(dir, done, bindings))
	if len(all) == 1 {
		return send(ctx, api, nil, all)
	}
	first := done == nil // joint patch of the pod
	if first {
		if done, err = api.Get(ctx); err != nil {
			return nil, err
		}
	}
	pod, err := send(ctx, api, done, all)
	if err != nil && len(all) > len(bindings) && !podapi.IsPassing(err) {
		return send(ctx, api, done, bindings) // it may be about one of the others
	}
	if err == nil && (first || len(all) > len(bindings)) {
		err = notePod(dir, pod)
	}
	return pod, err
}

// sorted has the bindings in the order of the pod's containers, in each of its two lists: a strategic merge patch takes over
// the order in which it names them, and that of a pod may not change (apimachinery
// pkg/util/strategicpatch/patch.go:normalizeElementOrder).
func sorted(pod *corev1.Pod, bindings []podapi.Binding) []podapi.Binding {
	containers := podapi.Containers(pod)
	at := func(b podapi.Binding) int {
		return slices.IndexFunc(containers, func(c *corev1.Container) bool { return c.Name == b.Container })
	}
	bindings = slices.Clone(bindings)
	slices.SortStableFunc(bindings, func(a, b podapi.Binding) int { return cmp.Compare(at(a), at(b)) })
	return bindings
}

func fileOf(container string) string { return prefix + container + suffix }

// waiting are the bindings of other starters that have not been carried out.
func waiting(dir *os.Root, done *corev1.Pod, own []podapi.Binding) []podapi.Binding {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil // they send their own
	}
	var found []podapi.Binding
	for _, e := range entries {
		container, ok := strings.CutSuffix(strings.TrimPrefix(e.Name(), prefix), suffix)
		if !ok || e.Name() != fileOf(container) {
			continue
		}
		data, err := privatedir.Read(dir, e.Name(), maxBinding)
		var b podapi.Binding
		if err != nil || json.Unmarshal(data, &b) != nil || b.Container != container || b.Spec == "" || b.Nonce == "" {
			continue
		}
		if !isOf(own, container) && !carriesOut(done, []podapi.Binding{b}) {
			found = append(found, b)
		}
	}
	return found
}

func isOf(bindings []podapi.Binding, container string) bool {
	for _, b := range bindings {
		if b.Container == container {
			return true
		}
	}
	return false
}

// carriesOut says whether a state of the pod came after the bindings: nobody else has their
// nonces.
func carriesOut(pod *corev1.Pod, bindings []podapi.Binding) bool {
	if pod == nil {
		return false
	}
	for _, b := range bindings {
		if pod.Annotations[podapi.NonceAnnotation+b.Container] != b.Nonce {
			return false
		}
	}
	return true
}

// send makes the call. The order of containers is that of pod, which may be nil if there is one binding.
func send(ctx context.Context, api podapi.API, pod *corev1.Pod, bindings []podapi.Binding) (*corev1.Pod, error) {
	if len(bindings) > 1 {
		bindings = sorted(pod, bindings)
	}
	patch, err := podapi.BindingPatch(bindings...)
	if err != nil {
		return nil, err
	}
	return api.Patch(ctx, patch, false)
}

// donePod is the pod after the latest joint patch; nil if there was none.
func donePod(dir *os.Root) *corev1.Pod {
	data, err := privatedir.Read(dir, podFile, maxPod)
	if err != nil {
		return nil
	}
	pod := new(corev1.Pod)
	if pod.Unmarshal(data) != nil {
		return nil
	}
	return pod
}

func notePod(dir *os.Root, pod *corev1.Pod) error {
	data, err := pod.Marshal()
	if err != nil {
		return fmt.Errorf("encode the pod: %w", err)
	}
	return atomicfile.Replace(dir, podFile, data, atomicfile.Options{Mode: 0o600, Temporary: podFile + ".new"})
}

// takeLock waits for the lock, which ends with the file.
func takeLock(ctx context.Context, dir *os.Root) (*os.File, error) {
	// Never unlink the file: two starters could then hold locks on two files of that name.
	f, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return f, nil
	}
	got := make(chan error)
	rescue.Go(func() {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		select {
		case got <- err:
		case <-ctx.Done(): // nobody waits for it any more
			f.Close()
		}
	})
	select {
	case err := <-got:
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", lockFile, err)
		}
		return f, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
}
