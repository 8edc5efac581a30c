package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	container := []string{"PATH=/bin", "GODEBUG=x=1", "POD_STARTER_NONCE=n", "POD_STARTER_OTHER=1", "EMPTY=", "ODD"}
	aside, found := setRuntimeVariablesAside(container)
	if !found {
		t.Error("GODEBUG was not seen")
	}
	if _, again := setRuntimeVariablesAside(aside); again {
		t.Error("it would start over for ever")
	}
	got := splitEnvironment(aside)
	if diff := cmp.Diff([]string{"PATH=/bin", "GODEBUG=x=1", "EMPTY=", "ODD"}, got.image); diff != "" || got.nonce != "n" {
		t.Errorf("nonce %q, %s", got.nonce, diff)
	}
}

// TestHomeOfRoot: the home that the container runtime gives the wrapper is not the payload's. One that the image sets is.
func TestHomeOfRoot(t *testing.T) {
	for entry, kept := range map[string]bool{"HOME=/root": false, "HOME=/": false, "HOME=": true, "HOME=/opt/app": true, "HOME=/root/app": true} {
		if got := splitEnvironment([]string{"PATH=/bin", entry}); (len(got.image) == 2) != kept {
			t.Errorf("of %s the payload gets %q", entry, got.image)
		}
	}
}

func TestHide(t *testing.T) {
	container := []string{"KUBERNETES_PORT=1", "KUBERNETES_SERVICE_HOST=2", "PATH=/bin", "SECRET=x", "SECRETS=y", "ODD"}
	got := hide(container, []string{"KUBERNETES_*", "SECRET", "ABSENT"})
	if diff := cmp.Diff([]string{"PATH=/bin", "SECRETS=y", "ODD"}, got); diff != "" {
		t.Error(diff)
	}
	if len(container) != 6 || container[0] != "KUBERNETES_PORT=1" {
		t.Errorf("the container's own environment was changed: %q", container)
	}
}

func TestMergeEnvironment(t *testing.T) {
	got := mergeEnvironment([]string{"A=1", "B=2", "A=3"}, []string{"C=", "B=4", "=C:=odd"})
	if diff := cmp.Diff([]string{"A=3", "B=4", "C=", "=C:=odd"}, got); diff != "" {
		t.Error(diff)
	}
}
