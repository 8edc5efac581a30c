package language

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kinds of work.
const (
	parse  = "parse"
	cached = "parse-cached" // the values come from a cache, as a daemon may have it
	print  = "print"
	match  = "match"
)

// A run is how long a kind of work took once.
type run struct {
	kind   string
	number int // ads, or pairs of ads
	took   time.Duration
	// agreed is a result that does not depend on the library.
	agreed int64
}

// parseRuns reads what the program with HTCondor's library prints.
func parseRuns(text string) ([]run, error) {
	var runs []run
	for line := range strings.Lines(text) {
		var r run
		var nanoseconds int64
		if _, err := fmt.Sscan(line, &r.kind, &r.number, &nanoseconds, &r.agreed); err != nil {
			return nil, fmt.Errorf("reading times from %s: %w", strconv.Quote(strings.TrimSpace(line)), err)
		}
		r.took = time.Duration(nanoseconds)
		runs = append(runs, r)
	}
	return runs, nil
}
