package filetransfer

import (
	"testing"
)

// The stock curl_plugin names no protocol for a URL with a token. The files that it
// stored count all the same, those that it fetched do not.
func TestBytesWithoutProtocol(t *testing.T) {
	run := &PluginRun{Reports: []PluginReport{
		{Success: true, Judged: true, Sized: true, Bytes: 10},
		{Success: true, Judged: true, Sized: true, Bytes: 5, Protocol: "HTTP"},
		{Success: true, Judged: true, Bytes: 7},
	}}
	var fetched, stored stats
	fetched.ran(run)
	stored.stored(run)
	if got := fetched.moved(); got != 5 {
		t.Errorf("%d bytes fetched", got)
	}
	if got := stored.moved(); got != 15 {
		t.Errorf("%d bytes stored", got)
	}
	if got, want := stored.ad().FormatNew(), ad(t, `[HTTPFilesCount=1; HTTPSizeBytes=5; Protocols="HTTP"]`).FormatNew(); got != want {
		t.Errorf("stats %s, want %s", got, want)
	}
}
