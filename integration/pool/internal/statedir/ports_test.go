package statedir

import "testing"

func TestChoosePort(t *testing.T) {
	all := func(int) bool { return true }
	none := func(int) bool { return false }
	taken := map[string]int{}
	first, err := ChoosePort(taken, "etcd", "seed", false, all)
	if err != nil || first < firstPort || first >= lastPort {
		t.Fatalf("ChoosePort = %d, %v; want a port of the range", first, err)
	}
	if taken["etcd"] != first {
		t.Errorf("the port is remembered as %d, not %d", taken["etcd"], first)
	}

	for _, tc := range []struct {
		name string
		keep bool
		free Prober
		same bool
		fail bool
	}{
		{name: "free again", free: all, same: true},
		{name: "held by its owner", keep: true, free: none, same: true},
		{name: "taken by somebody else", free: func(p int) bool { return p != first }},
		{name: "nothing free", free: none, fail: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			taken := map[string]int{"etcd": first}
			got, err := ChoosePort(taken, "etcd", "seed", tc.keep, tc.free)
			if (err != nil) != tc.fail {
				t.Fatalf("error %v, want one: %v", err, tc.fail)
			}
			if err == nil && (got == first) != tc.same {
				t.Errorf("port %d after %d; want the same: %v", got, first, tc.same)
			}
		})
	}

	t.Run("two names, one port", func(t *testing.T) {
		taken := map[string]int{"other": first}
		got, err := ChoosePort(taken, "etcd", "seed", false, all)
		if err != nil || got == first {
			t.Errorf("ChoosePort = %d, %v; %d is another's", got, err, first)
		}
	})
}
