package options

import (
	"strings"
	"testing"
	"time"
)

// TestSpares: at least one payload container is left for slots.
func TestSpares(t *testing.T) {
	for _, tt := range []struct {
		name       string
		containers []string
		spares     int
		want       string // part of the mistake; empty for none
	}{
		{"none", []string{"payload"}, 0, ""},
		{"one of two", []string{"payload", "payload-2"}, 1, ""},
		{"more spares than slots", []string{"payload", "payload-2", "payload-3"}, 2, ""},
		{"negative", []string{"payload"}, -1, "is -1"},
		{"all", []string{"payload", "payload-2"}, 2, "is 2, and POD_STARTER_CONTAINERS names 2; it must be at most 1"},
		{"more than there are", []string{"payload"}, 3, "is 3, and POD_STARTER_CONTAINERS names 1; it must be at most 0"},
		{"no container, which is a mistake of its own", nil, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{PodName: "p", PodNamespace: "n", Containers: tt.containers, Spares: tt.spares, BaseUID: 10001, ControlDir: "/c", PrivateDir: "/p",
				KubernetesDir: "/k", Server: "https://127.0.0.1:1", BindTimeout: time.Second}
			text := ""
			if err := o.Complete(); err != nil {
				for line := range strings.Lines(err.Error()) {
					if rest, ok := strings.CutPrefix(line, KnobSpares+": "); ok {
						text = rest
					}
				}
			}
			if (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) {
				t.Errorf("mistake %q, want one with %q", text, tt.want)
			}
		})
	}
}
