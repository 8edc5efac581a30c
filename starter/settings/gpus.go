package settings

import (
	"path/filepath"
	"slices"

	"podstarter/condor/config"
)

// GPUs are the settings about graphics processors; the zero value for a pod without.
type GPUs struct {
	// Containers are those payload containers that have some.
	Containers []string
	// Discovery is the program that finds them, with its arguments.
	Discovery []string
}

// gpus reads them. A startd that looks for GPUs itself runs its program with the arguments
// of STARTD_DETECT_GPUS (condor_startd.V6/ResAttributes.cpp:init_machine_resources).
func (r *reader) gpus() GPUs {
	g := GPUs{Containers: r.list(KnobGPUContainers)}
	if len(g.Containers) == 0 {
		return GPUs{}
	}
	program := r.text(KnobGPUDiscovery)
	if program == "" {
		program = StandardDiscovery(r.cfg)
	}
	r.absolute(KnobGPUDiscovery, program)
	g.Discovery = append([]string{program}, DiscoveryArguments(r.cfg)...)
	return g
}

// DiscoveryArguments are what the program is called with.
func DiscoveryArguments(cfg *config.Config) []string {
	args := config.Split(cfg.String("STARTD_DETECT_GPUS", "-properties "+cfg.String("GPU_DISCOVERY_EXTRA", "")))
	if len(args) == 0 || args[0][0] != '-' { // false, which is about the pilot container
		return []string{"-properties"}
	}
	return args
}

// StandardDiscovery is the path of HTCondor's own program.
func StandardDiscovery(cfg *config.Config) string {
	return filepath.Join(cfg.String("LIBEXEC", "/usr/libexec/condor"), "condor_gpu_discovery")
}

func (r *reader) checkGPUs(s *Settings) {
	for i, name := range s.GPUs.Containers {
		switch {
		case !slices.Contains(s.Containers, name):
			r.bad(KnobGPUContainers, "names %s, which is none of %s", name, KnobContainers.Name)
		case slices.Contains(s.GPUs.Containers[:i], name):
			r.bad(KnobGPUContainers, "names %s twice", name)
		}
	}
	if len(s.GPUs.Containers) > 0 && s.Spares > 0 {
		r.bad(KnobGPUContainers, "is for pods without spares, since a device stays with its container, but %s is %d", KnobSpares.Name, s.Spares)
	}
}
