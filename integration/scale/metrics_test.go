package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const published = `# HELP requests_total what was asked
# TYPE requests_total counter
requests_total{code="200",verb="PATCH",path="a=\"b\",c"} 5
requests_total{code="403",verb="PATCH"} 2
requests_total{code="200",verb="GET"} 1e+01
size_bytes 4096
seconds_bucket{le="0.1"} 90
seconds_bucket{le="1"} 99
seconds_bucket{le="+Inf"} 100
nonsense
`

func TestMetrics(t *testing.T) {
	m := parseMetrics(published)
	for _, tc := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"requests_total", nil, 17},
		{"requests_total", []string{"verb=PATCH"}, 7},
		{"requests_total", []string{"verb=PATCH", "code!=200"}, 2},
		{"requests_total", []string{`path=a="b",c`}, 5},
		{"size_bytes", nil, 4096},
		{"other", nil, 0},
	} {
		if got := m.sum(tc.name, tc.labels...); got != tc.want {
			t.Errorf("%s%v: %v, want %v", tc.name, tc.labels, got, tc.want)
		}
	}
	if diff := cmp.Diff(map[string]float64{"PATCH": 7, "GET": 10}, m.by("verb", "requests_total")); diff != "" {
		t.Error(diff)
	}
	for q, want := range map[float64]float64{0.5: 0.1, 0.95: 1, 0.999: math.Inf(1)} {
		if got := m.quantile(q, "seconds"); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
}

func TestMetricsSince(t *testing.T) {
	before := parseMetrics("requests_total{verb=\"GET\"} 4\n")
	after := parseMetrics("requests_total{verb=\"GET\"} 10\nrequests_total{verb=\"PATCH\"} 3\n")
	if diff := cmp.Diff(map[string]float64{"GET": 6, "PATCH": 3}, after.since(before).by("verb", "requests_total")); diff != "" {
		t.Error(diff)
	}
}
