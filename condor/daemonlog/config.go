package daemonlog

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"podstarter/condor/config"
)

// OptionsFor reads the knobs about the starter's log
// (condor_utils/dprintf_config.cpp:dprintf_config). The suffix is the value of
// the -a argument, the slot's id; it becomes part of the file's name
// (condor_daemon_core.V6/daemon_core_main.cpp:handle_log_append).
func OptionsFor(cfg *config.Config, suffix string) (Options, error) {
	var opt Options
	path, err := basePath(cfg, suffix != "")
	if err != nil {
		return opt, err
	}
	if strings.ContainsAny(suffix, "/\x00") {
		return opt, fmt.Errorf("the suffix %q for the log's name may not contain a slash", suffix)
	}
	if suffix != "" {
		path += "." + suffix
	}
	opt.Path = path
	opt.Flags = flagsFrom(cfg)
	if stamps, err := cfg.Bool("LOGS_USE_TIMESTAMP", false); err != nil {
		return opt, err
	} else if stamps {
		opt.Flags.header |= withTimestamp
	}
	opt.TimeFormat = strings.Trim(cfg.String("DEBUG_TIME_FORMAT", defaultTimeFormat), `"`)
	if opt.Truncate, err = cfg.Bool("TRUNC_STARTER_LOG_ON_OPEN", false); err != nil {
		return opt, err
	}
	keep, err := cfg.Int("MAX_NUM_STARTER_LOG", 1)
	if err != nil {
		return opt, err
	}
	opt.Keep = int(max(0, min(keep, 10000)))
	opt.MaxSize = defaultMaxSize
	for _, knob := range []string{"MAX_DEFAULT_LOG", "MAX_STARTER_LOG"} {
		text, ok := cfg.Lookup(knob)
		if !ok {
			continue
		}
		n, isAge, err := parseLimit(text)
		if err != nil {
			return opt, &config.Error{Name: knob, Value: text, Where: cfg.Where(knob),
				Want: "a size such as 10 Mb or a time such as 1 day", Err: err}
		}
		if isAge {
			opt.MaxSize, opt.MaxAge = 0, time.Duration(n)*time.Second
		} else {
			opt.MaxSize, opt.MaxAge = n, 0
		}
	}
	return opt, nil
}

// basePath is the log's path without the slot's id. The log of a starter with a local name, of which the file's name
// says nothing, is not that of all starters.
func basePath(cfg *config.Config, slot bool) (string, error) {
	name, knob := "Starter", "STARTER_LOG"
	if local := cfg.LocalName(); local != "" && !slot {
		name, knob = daemonName(local), local+".STARTER_LOG"
	}
	if path, ok := cfg.Lookup(knob); ok {
		return path, nil
	}
	dir, ok := cfg.Lookup("LOG")
	switch {
	case !ok:
		return "", fmt.Errorf("neither %s nor LOG is set; the starter has nowhere to log to", knob)
	case strings.ContainsAny(name, "/\x00"):
		return "", fmt.Errorf("the local name %q may not contain a slash, since it names the log; set %s", name, knob)
	}
	return filepath.Join(dir, name+"Log"), nil
}

// daemonName writes a name as those of logs are: slot_type_1 becomes SlotType1
// (condor_utils/dprintf_config.cpp:make_log_name_from_daemon_name).
func daemonName(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' || unicode.IsSpace(r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + strings.ToLower(word[1:]))
	}
	return b.String()
}

const defaultMaxSize = 10 << 20

func flagsFrom(cfg *config.Config) Flags {
	own, ok := cfg.Lookup("STARTER_DEBUG")
	if !ok {
		own = cfg.String("DEFAULT_DEBUG", "")
	}
	return ParseFlags(cfg.String("ALL_DEBUG", ""), own)
}

// OptionsForJobLog parses the -a2 argument, with which a job asks for a copy of
// the log in its sandbox: "FLAGS,PATH" or "PATH" with macros
// (condor_startd.V6/Starter.cpp:Starter::execDCStarter,
// condor_utils/dprintf_config.cpp:dprintf_config). Without FLAGS it has the
// same lines as the starter's own log. The caller decides whether the path may
// be written.
func OptionsForJobLog(cfg *config.Config, arg string, base Options) Options {
	opt := base
	pid := base.PID
	if pid == 0 {
		pid = os.Getpid()
	}
	arg = cfg.Expand(arg, map[string]string{"PID": strconv.Itoa(pid)})
	if i := strings.LastIndexByte(arg, ','); i >= 0 {
		header := base.Flags.header
		opt.Flags = ParseFlags(arg[:i])
		opt.Flags.header |= header
		arg = arg[i+1:]
	}
	opt.Path = strings.TrimSpace(arg)
	return opt
}

// parseLimit reads "NUMBER [UNIT]": b, Kb, Mb, Gb, Tb are sizes; s, min, h,
// day, w are times; a number without unit is bytes
// (condor_utils/dprintf_config.cpp:dprintf_parse_log_size).
func parseLimit(text string) (n int64, isAge bool, err error) {
	text = strings.TrimSpace(text)
	digits := len(text)
	for i, c := range text {
		if c < '0' || c > '9' {
			digits = i
			break
		}
	}
	n, err = strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("it must begin with a number")
	}
	unit := strings.TrimSpace(text[digits:])
	if strings.ContainsAny(unit, " \t0123456789") {
		return 0, false, fmt.Errorf("%q is not a unit", cutUnit(unit))
	}
	factor := int64(1)
	lower := strings.ToLower(unit)
	switch {
	case unit == "" || lower[0] == 'b':
	case lower[0] == 'k':
		factor = 1 << 10
	case lower[0] == 'g':
		factor = 1 << 30
	case lower[0] == 't':
		factor = 1 << 40
	case lower[0] == 's':
		isAge = true
	case lower[0] == 'h':
		isAge, factor = true, 3600
	case lower[0] == 'd':
		isAge, factor = true, 86400
	case lower[0] == 'w':
		isAge, factor = true, 7*86400
	case unit == "m" || strings.HasPrefix(lower, "mi") && !strings.HasPrefix(lower, "mib"):
		isAge, factor = true, 60
	case unit == "M" || strings.HasPrefix(lower, "mb") || strings.HasPrefix(lower, "mib"):
		factor = 1 << 20
	default:
		return 0, false, fmt.Errorf("%q is not a unit", cutUnit(unit))
	}
	most := int64(math.MaxInt64)
	if isAge {
		most /= int64(time.Second) // it becomes a time.Duration
	}
	if n > most/factor {
		return 0, false, fmt.Errorf("it is too large")
	}
	return n * factor, isAge, nil
}

func cutUnit(s string) string {
	if len(s) > 20 {
		return s[:20] + "..."
	}
	return s
}
