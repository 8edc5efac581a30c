package conformance

import (
	"fmt"
	"slices"
	"strings"

	"podstarter/integration/harness"
)

// Newest is the kind of pool whose endings are the general ones.
var Newest = harness.Kind{Versions: harness.Versions{EP: "25.14", AP: "25.14"}, Mode: harness.Shared}

// ofKind reports whether one of the lists of words is about such a pool: each of its words
// must be one of the kind's. Of a pair of versions, the first * stands for any text.
func ofKind(lists []string, k harness.Kind) bool {
	return slices.ContainsFunc(lists, func(words string) bool {
		return !slices.ContainsFunc(strings.Fields(words), func(word string) bool {
			return !slices.ContainsFunc(k.Words(), func(w string) bool { return matches(word, w) })
		})
	})
}

// kindWords are the words of all kinds, except versions.
var kindWords = []string{string(harness.Shared), string(harness.Unshared), string(harness.Rootless),
	harness.Static, harness.Partitionable, harness.OneSlot, harness.SeveralSlots}

// checkKinds finds words that no kind of pool has.
func checkKinds(lists []string) error {
	for _, words := range lists {
		if strings.TrimSpace(words) == "" {
			return fmt.Errorf("a kind of pool has no words")
		}
		for _, word := range strings.Fields(words) {
			if !strings.Contains(word, "+") && !slices.Contains(kindWords, word) {
				return fmt.Errorf("no kind of pool is %q; there are %s, and pairs of versions", word, strings.Join(kindWords, ", "))
			}
		}
	}
	return nil
}
