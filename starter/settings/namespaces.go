package settings

import (
	"strings"

	"podstarter/condor/config"
)

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
	knobMounts        = "MOUNT_UNDER_SCRATCH"
)

func (l *lenient) namespaces() Namespaces {
	return Namespaces{Mounts: l.bool(knobJobNamespaces, true), Processes: l.bool(knobPIDNamespaces, false)}
}

// OwnProcesses tells whether jobs without an image are to have a PID namespace of their own. It needs a /proc of its own, and so a mount namespace.
func (s Settings) OwnProcesses() bool {
	n := s.Condor.Namespaces
	return !s.InPod() && n.Processes && n.Mounts
}

// withoutMounts are the knobs that need mounts, which PER_JOB_NAMESPACES does not allow. The stock starter holds each job then
// (daemon_core.cpp:CreateProcessForkit::exec).
func withoutMounts(cfg *config.Config, pod bool) (found []NotGiven) {
	n := (&lenient{cfg: cfg}).namespaces()
	if pod || n.Mounts {
		return nil
	}
	add := func(name, means string) {
		found = append(found, NotGiven{Name: name, Where: cfg.Where(name), Instead: "one of the two knobs", Means: knobJobNamespaces + " = False allows jobs no mounts, so that " + means})
	}
	if strings.TrimSpace(cfg.String(knobMounts, "")) != "" {
		add(knobMounts, "one without an image has the directories of the machine")
	}
	if n.Processes {
		add(knobPIDNamespaces, "one without an image sees the processes of the machine")
	}
	return found
}
