package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

// TestFilterReport: names and exact types, as the shadow's history has them.
func TestFilterReport(t *testing.T) {
	const text = `[ TransferSuccess = true; TransferError = "e"; transferprotocol = "p"; TransferType = strcat("a"); TransferFileName = 7;
TransferFileBytes = 5; TransferTotalBytes = 5.0; TransferStartTime = 1 + 1; TransferEndTime = undefined; ConnectionTimeSeconds = 3;
TransferUrl = "u"; Other = "x"; PluginExitCode = 0; TransferData = { 1, foo };
DeveloperData = [ a = 1; b = bar ];
TransferErrorData = { [ ErrorType = "t"; ErrorCode = 5; Retryable = true; ShouldRefresh = false; Other = 1; DeveloperData = [ x = 1 ] ], 3, "no", foo } ]`
	ad, err := classads.ParseNew(text)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[ TransferSuccess = true; TransferError = "e"; transferprotocol = "p"; TransferFileBytes = 5; TransferUrl = "u"; TransferData = { 1,foo }; DeveloperData = [ a = 1; b = bar ]; TransferErrorData = { [ ErrorType = "t"; ErrorCode = 5; ShouldRefresh = false; DeveloperData = [ x = 1 ] ] } ]`
	if diff := cmp.Diff(want, filterReport(ad).FormatNew()); diff != "" {
		t.Error(diff)
	}
	good, err := classads.ParseNew(`[ ConnectionTimeSeconds = 0.25; TransferErrorData = "no list" ]`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`[ ConnectionTimeSeconds = 2.500000000000000E-01 ]`, filterReport(good).FormatNew()); diff != "" {
		t.Error(diff)
	}
}
