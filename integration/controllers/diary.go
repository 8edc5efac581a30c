package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// diary is a job that goes on until it is told to end, and ends well when it is begun again. It notes when it ran by the clock that all
// pods of a machine share, in a file that goes with it.
const diary = `#!/bin/sh
note() {
	read -r now _ </proc/uptime
	echo "$1 $now" >>diary
}
if [ -e diary ]; then
	note begin
	note end
	exit 0
fi
note begin
trap 'note told; exit 1' TERM
while :; do
	sleep 0.1
done
`

// once says what is wrong with a diary of two runs.
func once(text string) error {
	var words []string
	last := 0.0
	for line := range strings.Lines(text) {
		var word string
		var at float64
		if _, err := fmt.Sscan(line, &word, &at); err != nil {
			return fmt.Errorf("reading %q: %w", line, err)
		}
		if at < last {
			return errors.New("a run began before the one before it had ended")
		}
		words, last = append(words, word), at
	}
	if want := []string{"begin", "told", "begin", "end"}; !slices.Equal(words, want) {
		return fmt.Errorf("it went through %q, want %q", words, want)
	}
	return nil
}
