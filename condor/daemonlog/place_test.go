package daemonlog

import (
	"log/slog"
	"testing"
)

func TestParsePlace(t *testing.T) {
	for list, want := range map[string]struct {
		level    slog.Level
		category Category
		ok       bool
	}{
		"":                    {},
		"nonsense":            {},
		"D_PID":               {}, // no category
		"D_ALWAYS":            {slog.LevelInfo, Always, true},
		"D_FULLDEBUG":         {slog.LevelDebug, Always, true},
		"d_always:2":          {slog.LevelDebug, Always, true},
		"D_STATS, D_COMMAND":  {slog.LevelInfo, Command, true},
		"D_COMMAND:2":         {slog.LevelDebug, Command, true},
		"D_COMMAND|D_ALWAYS":  {slog.LevelInfo, Always, true},
		"D_FULLDEBUG D_STATS": {slog.LevelDebug, Always, true},
	} {
		level, category, ok := ParsePlace(list)
		if level != want.level || category != want.category || ok != want.ok {
			t.Errorf("%q: %v, %v, %v; want %v, %v, %v", list, level, category, ok, want.level, want.category, want.ok)
		}
	}
}
