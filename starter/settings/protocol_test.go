package settings

import (
	"testing"

	"podstarter/condor/config"
)

// TestProtocol: HTCondor's own value of ENABLE_IPV4 is no mistake to warn of, and only False switches it off
// (condor_utils/my_hostname.cpp).
func TestProtocol(t *testing.T) {
	for _, tt := range []struct {
		value    string
		want     bool
		warnings int
	}{
		{"auto", true, 0}, {"AUTO", true, 0}, {"True", true, 0}, {"False", false, 0}, {"", true, 0}, {"perhaps", true, 1},
	} {
		t.Run(tt.value, func(t *testing.T) {
			l := &lenient{cfg: config.FromMap(map[string]string{"ENABLE_IPV4": tt.value})}
			if got := l.protocol("ENABLE_IPV4"); got != tt.want || len(l.warnings) != tt.warnings {
				t.Errorf("ENABLE_IPV4 = %q: %v, %v", tt.value, got, l.warnings)
			}
		})
	}
}
