package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseExits(t *testing.T) {
	got := parseExits("11/21/26 02:44:41 slot1_1: Changing state\n11/21/26 02:44:41 Starter pid 3010 exited with status 0\n" +
		"11/21/26 02:44:42 Starter pid 3011 died on signal 9 (signal 9 (Killed))\n")
	if diff := cmp.Diff(map[int]string{3010: "status 0", 3011: "signal 9"}, got); diff != "" {
		t.Error(diff)
	}
}
