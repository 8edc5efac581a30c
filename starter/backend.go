package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"

	"podstarter/condor/config"
	"podstarter/k8sexec"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/registry"
	"podstarter/localexec"
	"podstarter/localexec/apptainer"
	"podstarter/payload"
	"podstarter/starter/hostprog"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
	"podstarter/starter/userimage"
)

// localUsers is how many payload users, from POD_STARTER_PAYLOAD_UID on, are
// set aside for jobs beside the starter; no machine has as many slots.
const localUsers = 1024

// newBackend makes the backend that the settings name. made counts its calls to the API
// server.
func newBackend(ctx context.Context, set settings.Settings, cfg *config.Config, made *calls, log *slog.Logger) (payload.Backend, error) {
	if set.Backend == settings.BackendLocal {
		b, err := newLocalBackend(set, log)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	if set.Images.HasCarrier() {
		if err := unpackerIsThere(); err != nil {
			return nil, fmt.Errorf("%s: %w", settings.KnobCarrierImage.Name, err)
		}
	}
	b, err := newPodBackend(ctx, set, cfg, made, log)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// newLocalBackend makes the backend without a pod.
func newLocalBackend(set settings.Settings, log *slog.Logger) (*localexec.Backend, error) {
	knobs := set.Condor.Apptainer
	return localexec.New(localexec.Options{
		Dir: set.StateDir(), UID: set.PayloadUID, Users: localUsers, Log: log, Mounts: payloadrun.MayMount(set), Processes: set.OwnProcesses(), Groups: payloadrun.GroupsOf(set),
		Runtime: localexec.Runtime{Site: payloadrun.SiteOf(set), Images: apptainer.Images{Sandbox: knobs.TestSandbox, SIF: knobs.TestSIF, Timeout: knobs.TestTimeout, PIDNamespaces: knobs.PIDNamespaces}},
	})
}

// unpackerIsThere says what to do if the program is missing that reads images for jobs.
func unpackerIsThere() error {
	program, err := hostprog.Beside(hostprog.Unpacker)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		return fmt.Errorf("jobs with images that are files need a program beside the starter's: %w; install %s, or leave the knob empty", err, hostprog.Unpacker)
	}
	return nil
}

// newPodBackend makes a pod's backend, which can do more than run payloads.
func newPodBackend(ctx context.Context, set settings.Settings, cfg *config.Config, made *calls, log *slog.Logger) (*k8sexec.Backend, error) {
	b, err := k8sexec.New(ctx, podOptions(set, made, log))
	if err != nil {
		return nil, err
	}
	b.AskRegistry(registries(set, log))
	return b, nil
}

// podOptions are the settings of a pod's backend.
func podOptions(set settings.Settings, made *calls, log *slog.Logger) options.Options {
	var pullers []options.Puller
	for _, name := range set.Pullers {
		pullers = append(pullers, options.ParsePuller(name))
	}
	return options.Options{
		PodName: set.PodName, PodNamespace: set.PodNamespace,
		Containers: set.Containers, Spares: set.Spares, GPUContainers: set.GPUs.Containers, Pullers: pullers, BaseUID: set.PayloadUID,
		ControlDir: set.ControlDir, PrivateDir: set.PrivateDir, Execute: set.Condor.Execute, Scratch: set.ScratchDir,
		BindTimeout:   set.BindTimeout,
		ThrowawayTags: set.ThrowawayTags, DigestLifetime: set.DigestLifetime, Reset: set.Reset, Resize: set.Resize,
		KubernetesDir: set.KubernetesDir, Called: made.add, Log: log,
		Offer: func() options.Offer { return offerOf(set.Config) },
	}
}

// registries tell what images run by themselves; nil if nobody asks them.
func registries(set settings.Settings, log *slog.Logger) k8sexec.Registry {
	if !set.AskRegistries {
		return nil
	}
	return newRegistry(set, log)
}

// usersRegistries are asked for images that only a job's user may pull.
func usersRegistries(set settings.Settings, log *slog.Logger) userimage.Registries {
	if !set.InPod() || !set.Images.HasCarrier() {
		return nil
	}
	return newRegistry(set, log)
}

func newRegistry(set settings.Settings, log *slog.Logger) *registry.Client {
	return registry.New(registry.Options{PrivateDir: set.PrivateDir, Auth: set.RegistryAuth, Plain: set.PlainRegistries, Architecture: runtime.GOARCH, Log: log})
}

// offerOf is what slots offer, for the backend's checks.
func offerOf(cfg *config.Config) options.Offer {
	o := settings.OfferOf(cfg)
	return options.Offer{
		Job: options.Size{CPUs: max(o.Slot.CPUs, o.Largest.CPUs), MemoryMB: max(o.Slot.MemoryMB, o.Largest.MemoryMB)},
		All: options.Size(o.Slots),
	}
}

// hostOf is the pilot container that the settings describe.
func hostOf(set settings.Settings) *hostprog.Host {
	return hostprog.New(hostprog.Options{SeparateUsers: set.SeparateUsers(), Paths: set.ProgramPaths, Configuration: set.Condor.Configuration})
}
