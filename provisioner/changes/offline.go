package changes

import (
	"podstarter/provisioner/offline"
	"podstarter/provisioner/round"
)

// offers is what is said of offline ads.
type offers struct {
	// numbers are those said last, and refused the reasons, by shape.
	numbers [3]int
	refused map[string]string
}

// offline says how many pods have offline ads, and which shapes have none for pods
// that could be made.
func (l *Log) offline(rep round.Report) {
	if rep.Offline == nil {
		return
	}
	var numbers [3]int
	for _, k := range rep.Offline.Keep {
		numbers[k.Role]++
	}
	for _, n := range rep.Offline.New {
		numbers[offline.Spare] += n
	}
	if numbers != l.offers.numbers {
		l.log.Info("Offline ads are published", "spare", numbers[offline.Spare], "coming", numbers[offline.Coming], "stuck", numbers[offline.Stuck])
		l.offers.numbers = numbers
	}
	before := l.offers.refused
	l.offers.refused = map[string]string{}
	for i, why := range rep.Offline.Refused {
		shape := rep.Shapes[i]
		switch {
		case why == before[shape]:
		case why == "":
			l.log.Info("A shape has offline ads again", "shape", shape)
		default:
			l.log.Info("A shape has no offline ads", "shape", shape, "reason", clean(why))
		}
		if why != "" {
			l.offers.refused[shape] = why
		}
	}
}
