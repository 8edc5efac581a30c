package imagefile

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestProgress: what an unpacker says of its progress is logged once in a while, however it comes, and nothing else is.
func TestProgress(t *testing.T) {
	const told = `{"progress":{"entries":3,"of":9,"bytes":1000}}` + "\n"
	const want = "Still copying the files of image \\\"x.sif\\\"\" entries=3 of_about=9 bytes=1000 seconds="
	for name, tt := range map[string]struct {
		says  []string
		lines int
	}{
		"at once":            {[]string{told}, 1},
		"in pieces":          {strings.SplitAfter(told, ":"), 1},
		"behind others":      {[]string{`{"unconfined":["landlock"]}` + "\n" + told, `{"reason":"x","message":"y"}` + "\n"}, 1},
		"far too often":      {[]string{strings.Repeat(told, 10_000)}, 1},
		"behind a long line": {[]string{strings.Repeat("x", 1<<20), "\n" + told}, 1},
		"no end":             {[]string{strings.TrimSuffix(told, "\n")}, 0},
		"below nothing":      {[]string{`{"progress":{"entries":-1,"bytes":-1}}` + "\n"}, 0},
		"no number":          {[]string{`{"progress":{"entries":"\u001b[31m"}}` + "\n"}, 0},
		"an empty line":      {[]string{"\n\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p := &progress{image: "x.sif", began: time.Now(), log: slog.New(slog.NewTextHandler(&log, nil))}
			for _, s := range tt.says {
				if n, err := fmt.Fprint(p, s); n != len(s) || err != nil {
					t.Errorf("takes %d bytes of %d: %v", n, len(s), err)
				}
			}
			if got := strings.Count(log.String(), "\n"); got != tt.lines || strings.Count(log.String(), want) != tt.lines {
				t.Errorf("%d lines, want %d with %s:\n%.1000s", got, tt.lines, want, log.String())
			}
			if cap(p.line) > 4*longestLine {
				t.Errorf("it keeps %d bytes", cap(p.line))
			}
		})
	}
}
