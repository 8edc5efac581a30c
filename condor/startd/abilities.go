package startd

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
)

// maxAbilityLine is how long a line of the -classad output may be, line feed
// not counted: a startd reads 1024 bytes at a time and takes the rest of a
// longer one for another attribute (condor_startd.V6/Starter.cpp:
// Starter::config).
const maxAbilityLine = 1022

// WriteAbilities prints an ad as a startd wants the answer to -classad: an
// attribute a line, no line empty. One line that the startd cannot read makes
// it drop the whole ad, so nothing is printed then and the error names the
// attributes.
func WriteAbilities(w io.Writer, ad *classads.Ad) error {
	var out []byte
	var problems *multierror.Error
	for name, e := range ad.All() {
		line := classads.AppendOldLine(nil, name, e)
		switch {
		case len(line) > maxAbilityLine:
			problems = multierror.Append(problems, fmt.Errorf("attribute %s: its line has %d bytes, a startd reads at most %d", name, len(line), maxAbilityLine))
		case bytes.ContainsAny(line, "\n\r\x00"):
			problems = multierror.Append(problems, fmt.Errorf("attribute %s: it holds a line feed", name))
		}
		out = append(append(out, line...), '\n')
	}
	if len(out) == 0 {
		problems = multierror.Append(problems, fmt.Errorf("there is no attribute at all"))
	}
	if err := problems.ErrorOrNil(); err != nil {
		return fmt.Errorf("the starter's abilities cannot be told to the startd: %w", err)
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("telling the startd the starter's abilities: %w", err)
	}
	return nil
}
