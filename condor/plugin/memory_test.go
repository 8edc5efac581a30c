package plugin

import (
	"runtime"
	"strings"
	"testing"
)

// TestReportsMemory: reports with lists of short numbers take many times the
// memory of their text and are limited; real reports are taken in full.
func TestReportsMemory(t *testing.T) {
	const most = 100_016
	report := `[ TransferSuccess = true; TransferUrl = "https://storage.example.org/user/project/a"; TransferFileName = "a"; TransferProtocol = "https";
		TransferTotalBytes = 123456; TransferStartTime = 1732240000; TransferEndTime = 1732240001; ConnectionTimeSeconds = 0.25;
		DeveloperData = [ Attempts = 1; HttpCacheHost = "cache.example.org"; TransferHostName = "storage.example.org" ] ]` + "\n"
	for name, tt := range map[string]struct {
		text string
		all  int
		most int64
	}{
		"lists":   {text: strings.Repeat("[a={"+strings.Repeat("1,", 4000)+"1}]\n", 500), most: 24 << 20},
		"reports": {text: strings.Repeat(report, 10_000), all: 10_000, most: 64 << 20},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ads := ParseReports([]byte(tt.text), most)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > tt.most {
			t.Errorf("%s: %d ads of %d KiB of text hold %d KiB", name, len(ads), len(tt.text)>>10, held>>10)
		}
		if tt.all > 0 && len(ads) != tt.all {
			t.Errorf("%s: %d of %d are taken", name, len(ads), tt.all)
		}
		runtime.KeepAlive(ads)
	}
}
