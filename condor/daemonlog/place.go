package daemonlog

import "log/slog"

// ParsePlace returns the level and the category of a line for which a knob names
// debug flags, such as "D_ALWAYS" or "D_FULLDEBUG". If the knob names several, the
// lowest counts. Not ok means that the line is not written
// (condor_utils/dprintf_common.cpp:parse_debug_cat_and_verbosity).
func ParsePlace(list string) (level slog.Level, c Category, ok bool) {
	var f Flags
	f.mergeAll(list)
	for i := range categoryNames {
		if f.basic&(1<<i) == 0 {
			continue
		}
		if f.verbose&(1<<i) != 0 {
			return slog.LevelDebug, Category(i), true
		}
		return slog.LevelInfo, Category(i), true
	}
	return 0, 0, false
}
