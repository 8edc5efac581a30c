package tally

// Bounds are the upper ends of the classes of [Times], in seconds. A kubelet needs one to two
// for a container; 900 is the default of POD_STARTER_BIND_TIMEOUT.
var Bounds = [...]float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900}

// Times are durations by class.
type Times struct {
	Count uint64              `json:"count"`
	Sum   float64             `json:"sum"` // seconds
	Class [len(Bounds)]uint64 `json:"class"`
}

// add counts a duration in seconds.
func (t *Times) add(seconds float64) {
	seconds = max(0, seconds)
	t.Count++
	t.Sum += seconds
	for i, bound := range Bounds {
		if seconds <= bound {
			t.Class[i]++
			return
		}
	}
}

// Cumulative are the classes as Prometheus has them: how many were not longer than each bound.
func (t Times) Cumulative() map[float64]uint64 {
	out, sum := make(map[float64]uint64, len(Bounds)), uint64(0)
	for i, bound := range Bounds {
		sum += t.Class[i]
		out[bound] = sum
	}
	return out
}
