package harness

import (
	"strings"
	"testing"
)

// TestSides: each execution point has its own pod and its own clause, and only ours has our starter.
func TestSides(t *testing.T) {
	seen := map[string]Side{}
	for _, side := range []Side{Ours, Stock, StockDocker, StockApptainer, "faults-1"} {
		for _, text := range []string{side.Requirements(), side.PodName()} {
			if other, ok := seen[text]; ok {
				t.Errorf("%s and %s have %q in common", side, other, text)
			}
			seen[text] = side
		}
		if stock := strings.HasPrefix(string(side), "stock"); side.IsStock() != stock || (side.StarterComm() == "condor_starter") != stock {
			t.Errorf("%s: stock %v, starter %s", side, side.IsStock(), side.StarterComm())
		}
	}
}

// TestImageMacros: only what a submit description uses is defined, once, and the registry is that of the images.
func TestImageMacros(t *testing.T) {
	p := &Pool{Images: map[string]string{"busybox": "127.0.0.1:5/podstarter/busybox:1", "debian": "127.0.0.1:5/podstarter/debian:2"}}
	for commands, want := range map[string]string{
		"docker_image = $(IMAGE_busybox)\n": "IMAGE_busybox = 127.0.0.1:5/podstarter/busybox:1\n",
		"docker_image = $(REGISTRY)/none\n": "REGISTRY = 127.0.0.1:5\n",
		"arguments = $(Process)\n":          "",
	} {
		if got := p.imageMacros(commands); got != want {
			t.Errorf("%q gives %q, want %q", commands, got, want)
		}
	}
}
