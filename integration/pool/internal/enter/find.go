// Package enter runs commands inside of the pool's containers, by joining their namespaces. That takes a few milliseconds,
// where asking the API server to exec takes a few hundred, and tests do it all the time.
package enter

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Container is a running container.
type Container struct {
	Pod, Name, ID string
	// PID is that of the container's first process, in the machine's namespace.
	PID int
	// Env is the environment of that process.
	Env     []string
	created time.Time
}

// Annotations that containerd's CRI plugin leaves on the runtime specification of a container.
const (
	kindAnnotation      = "io.kubernetes.cri.container-type"
	nameAnnotation      = "io.kubernetes.cri.container-name"
	podAnnotation       = "io.kubernetes.cri.sandbox-name"
	namespaceAnnotation = "io.kubernetes.cri.sandbox-namespace"
)

// Find looks through the bundles that containerd keeps below its state directory for the running container called name of
// the pod. Of several, one of which can only be on its way out, it returns the newest.
func Find(containerdState, namespace, pod, name string) (Container, error) {
	all, err := List(containerdState, namespace)
	if err != nil {
		return Container{}, err
	}
	var found Container
	for _, c := range all {
		if c.Pod == pod && c.Name == name && c.created.After(found.created) {
			found = c
		}
	}
	if found.ID == "" {
		return Container{}, fmt.Errorf("no container %s of the pod %s is running; is the pool up?", name, pod)
	}
	return found, nil
}

// List returns all running containers of the pods of a namespace, without those that only hold a pod's namespaces.
func List(containerdState, namespace string) ([]Container, error) {
	bundles, err := filepath.Glob(filepath.Join(containerdState, "io.containerd.runtime.v2.task", "k8s.io", "*"))
	if err != nil {
		return nil, fmt.Errorf("listing containers: %w", err)
	}
	var all []Container
	for _, dir := range bundles {
		c, ok := readBundle(dir, namespace)
		if ok {
			all = append(all, c)
		}
	}
	return all, nil
}

// readBundle reads one bundle. One that is being made or removed is not there yet or no more.
func readBundle(dir, namespace string) (Container, bool) {
	var spec struct {
		Annotations map[string]string
		Process     struct{ Env []string }
	}
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &spec) != nil {
		return Container{}, false
	}
	a := spec.Annotations
	if a[kindAnnotation] != "container" || a[namespaceAnnotation] != namespace {
		return Container{}, false
	}
	text, err = os.ReadFile(filepath.Join(dir, "init.pid"))
	if err != nil {
		return Container{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return Container{}, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return Container{}, false
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err != nil {
		return Container{}, false
	}
	return Container{
		Pod: a[podAnnotation], Name: a[nameAnnotation], ID: filepath.Base(dir), PID: pid, Env: spec.Process.Env, created: info.ModTime(),
	}, true
}
