//go:build pool

package podfailures

import (
	"encoding/json"
	"maps"
	"os"
	"time"
)

// writeRecord writes the measurements; rows that did not run keep their last ones.
func writeRecord(measured map[string]Measured) error {
	known, err := Record()
	if err != nil {
		return err
	}
	maps.Copy(known, measured)
	text, err := json.MarshalIndent(known, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(recordName, append(text, '\n'), 0o644)
}

// took sorts a time into one of a few classes, so that the page does not change with each run.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return "< 1 s"
	case d < 10*time.Second:
		return "1-10 s"
	case d < time.Minute:
		return "10-60 s"
	}
	return "> 1 min"
}
