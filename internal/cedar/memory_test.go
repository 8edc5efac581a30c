package cedar

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestAdMemory: an ad takes no more memory than one could with a text of the
// greatest length. Of lists of short numbers that would be thirty times as much.
func TestAdMemory(t *testing.T) {
	const many = 250_000 // nodes of one attribute, below the parser's own bound
	tests := map[string]struct {
		lines int
		line  func(i int) string
		fits  bool
	}{
		"lists":          {lines: 20, line: func(i int) string { return fmt.Sprintf("a%d={%s1}", i, strings.Repeat("1,", many)) }},
		"attributes":     {lines: 400_000, line: func(i int) string { return fmt.Sprintf("a%d=1", i) }},
		"many are taken": {lines: 100_000, line: func(i int) string { return fmt.Sprintf("a%d=1", i) }, fits: true},
		// As of a job with 50,000 input files, as many of output, and a remap for each.
		"long texts are taken": {lines: 3, line: func(i int) string {
			return fmt.Sprintf("a%d=\"%s\"", i, strings.Repeat("results/2026-11-22/sample-001234/histogram-of-energies.root,", 100_000))
		}, fits: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				a.PutInt(int64(tt.lines))
				for i := range tt.lines {
					a.PutString(tt.line(i))
				}
				a.PutString("")
				a.PutString("")
				_ = a.EndMessage()
			}()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			ad, err := b.GetAd()
			runtime.GC()
			runtime.ReadMemStats(&after)
			refused := errors.As(err, new(*ProtocolError)) && strings.Contains(err.Error(), fmt.Sprint(maxAdNodes))
			if tt.fits != (err == nil && ad.Len() == tt.lines) || tt.fits == refused {
				t.Errorf("got %v", err)
			}
			if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > maxAdBytes {
				t.Errorf("%d KiB are held", held>>10)
			}
			runtime.KeepAlive(ad)
			_ = b.Close()
			<-sent
		})
	}
}
