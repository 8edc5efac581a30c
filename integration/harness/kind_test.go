package harness

import "testing"

func TestKindsAreNamed(t *testing.T) {
	v := Versions{EP: "25.14", AP: "23.9"}
	for want, k := range map[string]Kind{
		"25.14+23.9":                        {Versions: v, Mode: Shared},
		"25.14+23.9 rootless":               {Versions: v, Mode: Rootless, OneSlot: true},
		"25.14+23.9 partitionable":          {Versions: v, Mode: Shared, Partitionable: true},
		"25.14+23.9 unshared partitionable": {Versions: v, Mode: Unshared, Partitionable: true},
	} {
		if got := k.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
