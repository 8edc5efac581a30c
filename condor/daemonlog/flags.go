package daemonlog

import (
	"fmt"
	"log/slog"
	"strings"
)

// Category is the subject of a line. The numbers and names are those of
// condor_includes/condor_debug.h and condor_utils/dprintf_common.cpp.
type Category uint8

// The categories that a starter uses. A line without category is Always.
const (
	Always     Category = 0
	Failure    Category = 1 // D_ERROR
	Status     Category = 2
	ZKM        Category = 3
	Job        Category = 4
	Machine    Category = 5
	Config     Category = 6
	Protocol   Category = 7
	DaemonCore Category = 9
	Security   Category = 11
	Command    Category = 12
	Network    Category = 14
	Syscalls   Category = 20
	Stats      Category = 29
)

var categoryNames = [...]string{
	"D_ALWAYS", "D_ERROR", "D_STATUS", "D_ZKM", "D_JOB", "D_MACHINE", "D_CONFIG", "D_PROTOCOL",
	"D_PRIV", "D_DAEMONCORE", "D_FULLDEBUG", "D_SECURITY", "D_COMMAND", "D_MATCH", "D_NETWORK",
	"D_KEYBOARD", "D_PROCFAMILY", "D_IDLE", "D_THREADS", "D_ACCOUNTANT", "D_SYSCALLS", "D_CRON",
	"D_HOSTNAME", "D_PERF_TRACE", "D_LOAD", "D_25", "D_26", "D_AUDIT", "D_TEST", "D_STATS",
	"D_MATERIALIZE", "D_DYE",
}

// genericVerbose is the category of old D_FULLDEBUG messages.
const genericVerbose = 10

// String returns HTCondor's name of the category.
func (c Category) String() string {
	if int(c) < len(categoryNames) {
		return categoryNames[c]
	}
	return fmt.Sprintf("D_%d", uint8(c))
}

// In marks a line, or all lines of a logger made with With, as belonging to a
// category. Such a line appears only if the category is on: with D_CATEGORY at
// level Info, with D_CATEGORY:2 at level Debug. Warnings and errors always
// appear.
func In(c Category) slog.Attr { return slog.Any(categoryKey, c) }

const categoryKey = "category"

// header options
const (
	withPID = 1 << iota
	withFDs
	withCategory
	withSubSecond
	withTimestamp
)

// Flags select the lines that appear and the contents of their headers. The zero
// value shows only warnings and errors; use [ParseFlags].
type Flags struct {
	header  uint8
	basic   uint32 // bit per category
	verbose uint32
}

// ParseFlags merges debug flag lists such as the values of ALL_DEBUG and
// STARTER_DEBUG, later ones last. D_ALWAYS, D_ERROR and D_STATUS are on by
// default. Unknown words are ignored, as in HTCondor
// (condor_utils/dprintf_common.cpp:_condor_parse_merge_debug_flags).
func ParseFlags(lists ...string) Flags {
	f := Flags{basic: 1<<Always | 1<<Failure | 1<<Status}
	for _, list := range lists {
		f.mergeAll(list)
	}
	if f.verbose&(1<<Always) != 0 {
		f.basic |= 1 << genericVerbose
	}
	return f
}

func (f *Flags) mergeAll(list string) {
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r == '|' || r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		f.merge(word)
	}
}

func (f *Flags) merge(word string) {
	verbosity := 1
	switch word[0] {
	case '-':
		word, verbosity = word[1:], 0
	case '+':
		word = word[1:]
	}
	word, level, ok := strings.Cut(word, ":")
	if ok && level != "" && '0' <= level[0] && level[0] <= '9' {
		verbosity = int(level[0] - '0')
	}
	var header uint8
	var bits uint32
	switch word = strings.ToUpper(word); word {
	case "D_ALL":
		header, bits = withPID|withFDs|withCategory, ^uint32(0)
	case "D_ANY":
		bits = ^uint32(0)
	case "D_PID":
		header = withPID
	case "D_FDS":
		header = withFDs
	case "D_LEVEL", "D_CATEGORY", "D_CAT":
		header = withCategory
	case "D_SUB_SECOND":
		header = withSubSecond
	case "D_TIMESTAMP":
		header = withTimestamp
	case "D_FULLDEBUG":
		bits = 1 << Always
		verbosity *= 2
	case "D_FAILURE":
		bits = 1 << Failure
	default:
		for i, name := range categoryNames {
			if word == name {
				bits = 1 << i
			}
		}
	}
	if verbosity == 0 {
		f.header &^= header
		f.verbose &^= bits
		return
	}
	f.header |= header
	f.basic |= bits
	if verbosity > 1 {
		f.verbose |= bits
	}
}

// Verbose tells whether lines of level Debug without a category appear;
// HTCondor calls that D_FULLDEBUG.
func (f Flags) Verbose() bool { return f.verbose&(1<<Always) != 0 }

// String lists the flags that are on, as HTCondor's line "Daemon Log is logging"
// does (condor_utils/dprintf.cpp:_condor_print_dprintf_info).
func (f Flags) String() string {
	var words []string
	for i, name := range categoryNames {
		if i == genericVerbose || (f.basic|f.verbose)&(1<<i) == 0 {
			continue
		}
		if f.verbose&(1<<i) != 0 {
			name += ":2"
		}
		words = append(words, name)
	}
	return strings.Join(words, " ")
}

// shows tells whether a line appears. Level and category correspond to HTCondor's
// category and verbosity.
func (f Flags) shows(level slog.Level, c Category) bool {
	switch {
	case level >= slog.LevelWarn:
		return true
	case level < slog.LevelInfo:
		return f.verbose&(1<<c) != 0
	default:
		return f.basic&(1<<c) != 0
	}
}

// label is the (D_CATEGORY) header of a line.
func label(level slog.Level, c Category) string {
	switch {
	case level >= slog.LevelError && c == Always:
		return Failure.String()
	case level >= slog.LevelError:
		return c.String() + "|D_FAILURE"
	case level < slog.LevelInfo:
		return c.String() + ":2"
	case c == Status:
		return Always.String()
	}
	return c.String()
}
