package settings

import "podstarter/condor/config"

// Namespaces are HTCondor's knobs about what a job without an image has to itself on an execution point without a pod.
type Namespaces struct {
	// Mounts allows a mount namespace (PER_JOB_NAMESPACES; daemon_core.cpp:CreateProcessForkit::exec).
	Mounts bool
	// Processes wants a PID namespace (USE_PID_NAMESPACES; vanilla_proc.cpp:StartJob).
	Processes bool
}

const (
	knobJobNamespaces = "PER_JOB_NAMESPACES"
	knobPIDNamespaces = "USE_PID_NAMESPACES"
)

func (l *lenient) namespaces() Namespaces {
	return Namespaces{Mounts: l.bool(knobJobNamespaces, true), Processes: l.bool(knobPIDNamespaces, false)}
}

// OwnProcesses tells whether jobs without an image are to have a PID namespace of their own. It needs a /proc of its own, and so a mount namespace.
func (s Settings) OwnProcesses() bool {
	n := s.Condor.Namespaces
	return !s.InPod() && n.Processes && n.Mounts
}

// withoutMounts says that a PID namespace is wanted, and the mounts that it needs are not.
func withoutMounts(cfg *config.Config, pod bool) []NotGiven {
	n := (&lenient{cfg: cfg}).namespaces()
	if pod || !n.Processes || n.Mounts {
		return nil
	}
	return []NotGiven{{
		Name: knobPIDNamespaces, Where: cfg.Where(knobPIDNamespaces), Instead: "one of the two knobs",
		Means: "a job with processes of its own needs a /proc of its own, and " + knobJobNamespaces + " = False allows it no mounts, so that it sees the processes of the machine",
	}}
}
