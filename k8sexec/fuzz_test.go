package k8sexec

import (
	"strings"
	"testing"
	"time"

	"podstarter/k8sexec/imageref"
)

// FuzzDecodeWarm decodes files of images that have run.
func FuzzDecodeWarm(f *testing.F) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Add([]byte(`[{"name":"docker.io/library/debian:13","digest":"sha256:` + strings.Repeat("5e", 32) + `","asked":"debian:13","used":"2026-11-20T11:00:00Z"}]`))
	f.Add([]byte(`[{"Name":"x","Used":"2026-11-20T11:00:00Z"},{"Name":"docker.io/library/x:latest","Digest":"sha256:0","Used":"2027-01-01T00:00:00Z"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		known := decodeWarm(data, now)
		if len(known) > maxWarm {
			t.Errorf("%d images", len(known))
		}
		for i, w := range known {
			img, err := imageref.Parse(w.Name)
			if err != nil || img.String() != w.Name || w.Used.After(now) || i > 0 && w.Used.After(known[i-1].Used) || strings.ContainsAny(w.Asked, "\n\x00") {
				t.Errorf("%+v, %v", w, err)
			}
		}
	})
}
