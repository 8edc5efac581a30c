package options

import "strings"

// PullerContainer is the container of a puller whose name gives only the pod.
const PullerContainer = "puller"

// Puller is a container of a companion pod that gets images onto the pilot's node.
type Puller struct{ Pod, Container string }

// ParsePuller reads POD or POD/CONTAINER. It does not judge the names.
func ParsePuller(text string) Puller {
	pod, container, named := strings.Cut(text, "/")
	if !named {
		container = PullerContainer
	}
	return Puller{pod, container}
}

// String is POD/CONTAINER, without the container's name if that is the usual one.
func (p Puller) String() string {
	if p.Container == PullerContainer {
		return p.Pod
	}
	return p.Pod + "/" + p.Container
}
