package daemonlog

import "log/slog"

// ParsePlace says where a line goes for which a knob names a category, such as
// "D_ALWAYS" or "D_FULLDEBUG": its level and category. It is the lowest of those that
// the list names; not ok means nowhere
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
