package conformance

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// Turns is the number of parts of the cases on request. Each run without the flag
// -all has one of them, so that all have run after a few.
const Turns = 7

// Turn is the part of the cases on request that a run has, from 1 to [Turns]; 0 is
// none of them and [EveryTurn] all.
type Turn int

// EveryTurn means all cases on request.
const EveryTurn Turn = -1

// TurnAt is the part for a run that begins then. It changes by the hour: runs a few
// hours apart come to all parts.
func TurnAt(t time.Time) Turn { return Turn(t.Unix()/int64(time.Hour/time.Second)%Turns) + 1 }

// ParseTurn reads "none", "all" or a part such as "3/7". The empty text means the
// part for a run that begins at this time.
func ParseTurn(text string, now time.Time) (Turn, error) {
	switch text {
	case "":
		return TurnAt(now), nil
	case "none":
		return 0, nil
	case "all":
		return EveryTurn, nil
	}
	part, of, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(part)
	if err == nil && (n < 1 || n > Turns || of != strconv.Itoa(Turns)) {
		err = errors.New("there is no such part")
	}
	if err != nil {
		return 0, fmt.Errorf("reading the turn %q: want none, all, or a part from 1/%d to %[2]d/%[2]d: %w", text, Turns, err)
	}
	return Turn(n), nil
}

// String is what [ParseTurn] reads.
func (t Turn) String() string {
	switch t {
	case 0:
		return "none"
	case EveryTurn:
		return "all"
	}
	return fmt.Sprintf("%d/%d", int(t), Turns)
}

// has reports whether the turn has the case on request of this name. By the name, a
// case keeps its part when others come and go.
func (t Turn) has(name string) bool { return t == EveryTurn || t == turnOf(name) }

func turnOf(name string) Turn {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return Turn(sum.Sum32()%Turns) + 1
}
