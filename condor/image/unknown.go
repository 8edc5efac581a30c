package image

import (
	"fmt"
	"strings"
)

// What becomes of jobs with images that no rule of the site knows ([KnobUnknown]).
const (
	UnknownHold    = "hold"
	UnknownRequeue = "requeue"
)

func parseUnknown(word string) (othersMay bool, err error) {
	switch strings.ToLower(word) {
	case "", UnknownHold:
		return false, nil
	case UnknownRequeue:
		return true, nil
	}
	return false, fmt.Errorf("%s is neither %s nor %s", excerpt(word), UnknownHold, UnknownRequeue)
}

// unknown is the failure of a job whose image has no meaning here. Elsewhere it may have one. What the
// site itself chose has none anywhere.
func (s *Site) unknown(w *wish, subcode int, format string, args ...any) error {
	if s.othersMay && w.source != KnobDefault && w.source != knobStockDefault {
		return elsewhere(format, args...)
	}
	return hold(subcode, format, args...)
}
