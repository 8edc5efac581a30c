package startd

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
)

// maxAbilityLine is the longest line of the -classad output in bytes, without
// the line feed: a startd reads 1024 bytes at a time and takes the rest of a
// longer line for another attribute (condor_startd.V6/Starter.cpp:
// Starter::config).
const maxAbilityLine = 1022

// WriteAbilities prints an ad as a startd wants the answer to -classad: one
// attribute per line, no empty line. A single line that the startd cannot read
// makes it drop the whole ad. In that case nothing is printed, and the error
// names the attributes.
func WriteAbilities(w io.Writer, ad *classads.Ad) error {
	var out []byte
	var problems *multierror.Error
	for name, e := range ad.All() {
		line := classads.AppendOldLine(nil, name, e)
		switch {
		case len(line) > maxAbilityLine:
			problems = multierror.Append(problems, fmt.Errorf("attribute %s: its line has %d bytes, but a startd reads at most %d", name, len(line), maxAbilityLine))
		case bytes.ContainsAny(line, "\n\r\x00"):
			problems = multierror.Append(problems, fmt.Errorf("attribute %s: it holds a line feed", name))
		}
		out = append(append(out, line...), '\n')
	}
	if len(out) == 0 {
		problems = multierror.Append(problems, fmt.Errorf("the ad is empty"))
	}
	if err := problems.ErrorOrNil(); err != nil {
		return fmt.Errorf("cannot tell the startd the starter's abilities: %w", err)
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("telling the startd the starter's abilities: %w", err)
	}
	return nil
}
