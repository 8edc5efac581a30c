package harness

import "testing"

func TestKindsAreNamed(t *testing.T) {
	v := Versions{EP: "25.14", AP: "23.9"}
	for want, k := range map[string]Kind{
		"25.14+23.9":                        {v, Shared, false},
		"25.14+23.9 rootless":               {v, Rootless, false},
		"25.14+23.9 partitionable":          {v, Shared, true},
		"25.14+23.9 unshared partitionable": {v, Unshared, true},
	} {
		if got := k.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
