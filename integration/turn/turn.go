// Package turn chooses, of tests that take too long for each run, those that this run
// has. All have run after a few runs a few hours apart.
package turn

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Parts is the number of parts into which names are divided.
const Parts = 7

// Turn is the part that a run has, from 1 to [Parts], or [None] or [All].
type Turn int

// Runs with nothing of what comes in turn, and with all of it.
const (
	None Turn = 0
	All  Turn = -1
)

// At is the part for a run that begins then. It changes by the hour.
func At(t time.Time) Turn { return Turn(Index(t, Parts) + 1) }

// Index is which of n things a run has that begins then, from 0. Runs at fixed intervals, such as one each day, come to all
// of them: hours go by a prime number, of which few intervals are a multiple.
func Index(t time.Time, n int) int {
	prime := n
	for !big.NewInt(int64(prime)).ProbablyPrime(0) { // exact for numbers as small
		prime++
	}
	return int(t.Unix()/int64(time.Hour/time.Second)) % prime % n
}

// Parse reads "none", "all" or a part such as "3/7". The empty text means the part
// for a run that begins at this time.
func Parse(text string, now time.Time) (Turn, error) {
	switch text {
	case "":
		return At(now), nil
	case None.String():
		return None, nil
	case All.String():
		return All, nil
	}
	part, of, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(part)
	if err == nil && (n < 1 || n > Parts || of != strconv.Itoa(Parts)) {
		err = errors.New("there is no such part")
	}
	if err != nil {
		return None, fmt.Errorf("reading the turn %q: want none, all, or a part from 1/%d to %[2]d/%[2]d: %w", text, Parts, err)
	}
	return Turn(n), nil
}

// String is what [Parse] reads.
func (t Turn) String() string {
	switch t {
	case None:
		return "none"
	case All:
		return "all"
	}
	return fmt.Sprintf("%d/%d", int(t), Parts)
}

// Has reports whether the turn has the thing of this name. By its name, a thing keeps
// its part when others come and go.
func (t Turn) Has(name string) bool { return t == All || t == Of(name) }

// Of is the part that has the thing of this name.
func Of(name string) Turn {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return Turn(sum.Sum32()%Parts) + 1
}
