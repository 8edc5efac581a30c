//go:build pool

package failures

import (
	"encoding/json"
	"maps"
	"os"
)

// writeRecord notes what was measured; rows that were not played keep what is known of them.
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
