package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

// TestTimesOfRecordsShowTheirType: all else of a record stays.
func TestTimesOfRecordsShowTheirType(t *testing.T) {
	found := harness.Result{Stdout: "***\nConnectionTimeSeconds = 6E-05\nData = [ ConnectionTimeSeconds = -1.5; TransferEndTime = 7 ]\nJobClusterId = 12\n" +
		"TransferFileBytes = 12\nTransferStartTime = 1763870000\nTransferTotalBytes = 12\n***\nConnectionTimeSeconds = 0.0\n"}
	want := "***\nConnectionTimeSeconds = <real>\nData = [ ConnectionTimeSeconds = <real>; TransferEndTime = <number> ]\nJobClusterId = <cluster>\n" +
		"TransferFileBytes = 12\nTransferStartTime = <number>\nTransferTotalBytes = 12\n***\nConnectionTimeSeconds = <real>"
	if diff := cmp.Diff(want, timeless(found)); diff != "" {
		t.Error(diff)
	}
}
