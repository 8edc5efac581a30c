//go:build pool

package kubeletrules

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podstarter/integration/deviceplugin"
)

// plugDevices has the kubelet offer two devices of a resource until the test ends, and waits until the node has them.
// Each test has a resource of its own: a pod that is on its way out still has its devices.
func plugDevices(t *testing.T, name string) {
	t.Helper()
	// The kubelet looks for plugins there.
	plugin := deviceplugin.Plugin{Resource: deviceDomain + name, Dir: t.TempDir(), Registry: filepath.Join(pool.State, "kubelet", "plugins_registry"), Devices: 2}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- plugin.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if _, err := pool.Kubectl(t.Context(), nil, "wait", "node/"+api.node, "--for=jsonpath={.status.allocatable."+`podstarter\.test/`+name+"}=2", "--timeout=1m"); err != nil {
		t.Fatal(err)
	}
}

// deviceDomain begins the names of these resources.
const deviceDomain = "podstarter.test/"

// wanting is a container that asks for a device.
func wanting(resourceName, name string, env ...corev1.EnvVar) corev1.Container {
	c := container(name, waiter)
	c.Env = append(c.Env, env...)
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceName(deviceDomain + resourceName): resource.MustParse("1")}
	return c
}

// A variable of the pod's manifest replaces that of a device plugin, which would say which devices
// the container has. A device node is there all the same.
//
// Source: kubelet_pods.go:GenerateRunContainerOptions (the plugins' come first); containerd pkg/oci/spec_opts.go:WithEnv (the later one wins).
//
// Relies: `deploy/components/gpu` takes `NVIDIA_VISIBLE_DEVICES=void` away, `k8sexec/audit`.
func TestManifestsVariableReplacesThePlugins(t *testing.T) {
	plugDevices(t, "one")
	p := newPod(t, nil, wanting("one", "a", corev1.EnvVar{Name: deviceplugin.Variable, Value: "void"}), wanting("one", "b"))
	for name, want := range map[string][]string{"a": {"void"}, "b": {deviceplugin.UUID(0), deviceplugin.UUID(1)}} {
		env := environ(t, processOf(t, p.running(name)))
		if !slices.ContainsFunc(want, func(value string) bool { return slices.Contains(env, deviceplugin.Variable+"="+value) }) {
			t.Errorf("container %s has the variables %q, want %s with one of %q", name, env, deviceplugin.Variable, want)
		}
	}
}

// A device stays with its container as long as the pod lives, also when the container is made anew
// with another image: neither do two containers swap theirs, nor is the plugin asked again.
//
// Source: cm/devicemanager/manager.go:devicesToAllocate, podDevices.
//
// Relies: `starter/podgpus` looks for devices once in a pod's life.
func TestDeviceStaysWithItsContainer(t *testing.T) {
	plugDevices(t, "two")
	p := newPod(t, nil, wanting("two", "a"), wanting("two", "b"))
	const variable = deviceplugin.Variable + "="
	device := func(c corev1.ContainerStatus) string {
		for _, v := range environ(t, processOf(t, c)) {
			if strings.HasPrefix(v, variable) {
				return v
			}
		}
		t.Fatalf("container %s has no device\n%s", c.Name, p.history(0))
		return ""
	}
	a, b := p.running("a"), p.running("b")
	hadA, hadB := device(a), device(b)
	if hadA == hadB {
		t.Fatalf("both containers have %s", hadA)
	}
	p.bind("a", once(a.ImageID, "one"), "x")
	p.bind("b", once(b.ImageID, "two"), "x")
	for _, c := range []struct {
		before corev1.ContainerStatus
		had    string
	}{{a, hadA}, {b, hadB}} {
		if got := device(p.runs(c.before.Name, c.before.ContainerID)); got != c.had {
			t.Errorf("the new container %s has %s, and the old one had %s", c.before.Name, got, c.had)
		}
	}
}
