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
		t.Error("it would go on for ever")
	}
	got := splitEnvironment(aside)
	if diff := cmp.Diff([]string{"PATH=/bin", "GODEBUG=x=1", "EMPTY=", "ODD"}, got.image); diff != "" || got.nonce != "n" {
		t.Errorf("nonce %q, %s", got.nonce, diff)
	}
}

func TestMergeEnvironment(t *testing.T) {
	got := mergeEnvironment([]string{"A=1", "B=2", "A=3"}, []string{"C=", "B=4", "=C:=odd"})
	if diff := cmp.Diff([]string{"A=3", "B=4", "C=", "=C:=odd"}, got); diff != "" {
		t.Error(diff)
	}
}
