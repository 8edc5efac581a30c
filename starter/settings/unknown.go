package settings

import (
	"fmt"
	"slices"
	"strings"

	"podstarter/condor/config"
)

// ownPrefix begins the names of all our knobs.
const ownPrefix = "POD_STARTER_"

// macros are names with our prefix that are not knobs: the files of
// condor_config.d set them for their own use.
var macros = []string{"POD_STARTER_CONTAINER_COUNT", "POD_STARTER_GPU_CONTAINER_COUNT", "POD_STARTER_IDLE_TIME", "POD_STARTER_ACCEPT_TIME", "POD_STARTER_RETIRE_TIME"}

// Unknown is a name that is set in the configuration, looks like a knob of ours,
// but is not: most likely a misspelling, which has no effect.
type Unknown struct {
	Name  string
	Where string // file and line, "" if not known
	Meant string // the knob with the nearest name, "" if none is near
}

// String is a sentence for the log and for -check.
func (u Unknown) String() string {
	where, meant := "", ""
	if u.Where != "" {
		where = " (set at " + u.Where + ")"
	}
	if u.Meant != "" {
		meant = "; did you mean " + u.Meant + "?"
	}
	return fmt.Sprintf("%s%s is not a knob of podstarter and has no effect%s", u.Name, where, meant)
}

// UnknownKnobs finds such names, sorted: those that begin as ours do, and others
// that differ from one of ours by a letter or two.
func UnknownKnobs(cfg *config.Config) []Unknown {
	known := make([]string, 0, len(Knobs))
	for _, k := range Knobs {
		known = append(known, k.Name)
	}
	return unknownAmong(cfg.Names(), known, cfg.Where)
}

// mostLetters is how far a name may be from a known one to be taken for it,
// unless it has our prefix.
const mostLetters = 2

func unknownAmong(names, known []string, where func(string) string) []Unknown {
	expected := map[string]bool{}
	for _, name := range known {
		expected[name] = true
	}
	for _, name := range macros {
		expected[name] = true
	}
	known = append(known, macros...)
	var found []Unknown
	for _, full := range names {
		// A knob may be set for a subsystem or a slot type: STARTER.NAME.
		name := full[strings.LastIndexByte(full, '.')+1:]
		ours := strings.HasPrefix(name, ownPrefix)
		if expected[name] || !ours && !strings.Contains(name, "STARTER") && !strings.HasPrefix(name, "POD") {
			continue
		}
		most := mostLetters
		if ours {
			most = max(most, len(name[len(ownPrefix):])/3)
		}
		meant := nearest(name, known, most)
		if ours || meant != "" {
			found = append(found, Unknown{Name: full, Where: where(full), Meant: meant})
		}
	}
	return found
}

// nearest is the known name with the fewest changes of a letter from a name, the
// first of several; "" if all have more than most.
func nearest(name string, known []string, most int) string {
	best := ""
	for _, k := range known {
		if d := len(k) - len(name); d > most || -d > most {
			continue
		}
		if n := distance(name, k, most); n <= most {
			best, most = k, n-1
		}
	}
	return best
}

// distance counts the letters that have to be put in, left out, replaced, or
// swapped with their neighbour to turn one name into another. From more than most
// on it stops counting: every starter compares hundreds of names.
func distance(a, b string, most int) int {
	// Rows of the table of prefixes' distances.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		// Each number in a row is at least the least of the two rows before it.
		if slices.Min(row) > most && slices.Min(last) > most {
			return most + 1
		}
	}
	return row[len(b)]
}
