package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podstarter/integration/deviceplugin"
	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/daemon"
)

// gpuDaemon is the name of the daemon that gives containers devices.
const gpuDaemon = "gpus"

// checkGPUs says whether there can be so many payload containers with a device.
func (p *pool) checkGPUs() error {
	s := p.settings
	switch {
	case s.GPUs < 0 || s.GPUs > min(s.Slots, deviceplugin.Max):
		return fmt.Errorf("%d GPUs: the number must be from 0 to that of slots, and at most %d", s.GPUs, deviceplugin.Max)
	case s.GPUs > 0 && s.Spares > 0:
		return errors.New("GPUs and spares: a device stays with its container; leave one out")
	case s.GPUs > 0 && max(s.Guests, s.Nodes) > 1:
		return errors.New("GPUs and several guests: there is one device plugin, on the first node")
	}
	return nil
}

// startGPUs starts the device plugin, or stops that of an earlier choice, and waits until the node has its devices.
func (p *pool) startGPUs(ctx context.Context) error {
	if p.settings.GPUs == 0 {
		return p.daemons.Stop(ctx, gpuDaemon, 5*time.Second)
	}
	registry := p.dir.Path("kubelet", "plugins_registry")
	if err := os.MkdirAll(registry, 0o755); err != nil {
		return err
	}
	args, err := deviceplugin.Plugin{Resource: deviceplugin.GPU, Dir: p.dir.Path("gpus"), Registry: registry, Devices: deviceplugin.Max}.Arguments()
	if err != nil {
		return err
	}
	if _, err := p.daemons.Start(ctx, daemon.Spec{Name: gpuDaemon, Args: append([]string{p.dir.Path("bin", "pool")}, args...)}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("the kubelet takes no devices from the plugin within a minute; see %s", p.daemons.Log(gpuDaemon)))
	defer cancel()
	return cluster.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		node, err := p.api.Get(ctx, "Node", nodeName(0))
		if err != nil {
			return false, err
		}
		n := node.String("status", "allocatable", deviceplugin.GPU)
		return n != "" && n != "0", nil
	})
}

// withGPUs are the payload containers that get a device each: the first ones.
func (p *pool) withGPUs() []string { return p.payloads()[:p.settings.GPUs] }

// giveGPUs has these containers ask for a device, as deploy/components/gpu does with one.
func (p *pool) giveGPUs(spec map[string]any) {
	for _, c := range containers(spec) {
		name, _ := c["name"].(string)
		if !slices.Contains(p.withGPUs(), name) {
			continue
		}
		setPath(c, "1", "resources", "limits", deviceplugin.GPU)
		env, _ := c["env"].([]any)
		c["env"] = slices.DeleteFunc(slices.Clone(env), func(v any) bool {
			m, _ := v.(map[string]any)
			return m["name"] == "NVIDIA_VISIBLE_DEVICES"
		})
	}
}

// gpus is the configuration of an execution point with such containers. Fixed slots need to be told which have a device.
func (p *pool) gpus() string {
	n := p.settings.GPUs
	if n == 0 {
		return ""
	}
	config := "POD_STARTER_GPU_CONTAINERS = " + strings.Join(p.withGPUs(), ", ") + "\n"
	if !p.settings.Partitionable {
		config += fmt.Sprintf("NUM_SLOTS_TYPE_1 = %d\nSLOT_TYPE_1 = cpus=1, GPUs=1, memory=auto, disk=auto, swap=auto\n", n)
		if rest := p.settings.Slots - n; rest > 0 {
			config += fmt.Sprintf("NUM_SLOTS_TYPE_2 = %d\nSLOT_TYPE_2 = cpus=1, GPUs=0, memory=auto, disk=auto, swap=auto\n", rest)
		}
	}
	return config
}

// forgetGPUs removes what the kubelet has noted of devices, in a directory that all kubelets of a machine share.
func (p *pool) forgetGPUs(context.Context) error {
	if p.settings.GPUs == 0 {
		return nil
	}
	err := os.Remove(filepath.Join("/var/lib/kubelet/device-plugins", "kubelet_internal_checkpoint"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
