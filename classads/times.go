package classads

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// now returns the time of the evaluation's clock.
func (ev *evaluator) now() time.Time {
	if ev.env.Now != nil {
		return ev.env.Now()
	}
	return time.Now()
}

// zone returns the local zone of the evaluation.
func (ev *evaluator) zone() *time.Location {
	if ev.env.Now != nil {
		return ev.env.Now().Location()
	}
	return time.Local
}

// offset returns the seconds east of UTC of the local zone at a moment.
func (ev *evaluator) offset(unix int64) int {
	_, off := time.Unix(unix, 0).In(ev.zone()).Zone()
	return off
}

// timeLiteral makes a literal of absTime("...") and relTime("..."), which the
// parser turns into one; a nil node means that the text is not a time
// (HTCondor src/classad/source.cpp:evaluateFunction).
func timeLiteral(function, text string, zone *time.Location) (n node, isTime bool) {
	switch {
	case equalFold(function, "abstime"):
		if v, ok := parseAbsTime(text, zone); ok {
			return &literal{v}, true
		}
		return nil, true
	case equalFold(function, "reltime"):
		if v, ok := parseRelTime(text); ok {
			return &relTimeNode{v.float()}, true
		}
		return nil, true
	}
	return nil, false
}

// parseAbsTime reads year, month, day, hour, minute and second, separated by
// anything, all but the year optional, and an offset Z, +hh:mm or +hhmm
// (HTCondor src/classad/literals.cpp:MakeAbsTime). A time without an
// offset is in the zone; nil is the zone of the process.
func parseAbsTime(s string, local *time.Location) (Value, bool) {
	offset, zoned := 0, false
	trimmed := strings.TrimRight(s, spaces)
	n := len(s)
	switch {
	case len(trimmed) > 1 && lower(trimmed[len(trimmed)-1]) == 'z':
		zoned = true
		s = s[:len(trimmed)-1] + s[len(trimmed):]
	case n > 5 && isSign(s[n-5]):
		s, offset, zoned = cutOffset(s)
	case n > 6 && isSign(s[n-6]) && s[n-3] == ':':
		s, offset, zoned = cutOffset(s[:n-3] + s[n-2:])
	}
	i := nextDigit(s, 0)
	if i > len(s)-4 {
		return Value{}, false
	}
	year := leadingInt(s[i : i+4])
	fields := [5]int{1, 0, 0, 0, 0} // month, day, hour, minute, second
	i = nextDigit(s, i+4)
	for f := range fields {
		if i <= len(s)-2 {
			fields[f] = leadingInt(s[i : i+2])
			i += 2
		}
		i = nextDigit(s, i)
	}
	if i < len(s) {
		return Value{}, false
	}
	at := func(zone *time.Location) time.Time {
		return time.Date(year, time.Month(fields[0]), fields[1], fields[2], fields[3], fields[4], 0, zone)
	}
	if local == nil {
		local = time.Local
	}
	if !zoned {
		_, offset = at(local).Zone()
	}
	return AbsTimeValue(at(time.UTC).Unix()-int64(offset), offset), true
}

const spaces = " \t\n\v\f\r"

func isSign(c byte) bool { return c == '+' || c == '-' }

// cutOffset cuts +hhmm from the end.
func cutOffset(s string) (rest string, seconds int, ok bool) {
	o := s[len(s)-5:]
	for _, c := range []byte(o[1:]) {
		if !isDigit(c) {
			return s, 0, false
		}
	}
	if !isSign(o[0]) {
		return s, 0, false
	}
	seconds = leadingInt(o[1:3])*3600 + leadingInt(o[3:])*60
	if o[0] == '-' {
		seconds = -seconds
	}
	return s[:len(s)-5], seconds, true
}

func nextDigit(s string, i int) int {
	for i < len(s) && !isDigit(s[i]) {
		i++
	}
	return i
}

// leadingInt is the integer that the text begins with, or 0.
func leadingInt(s string) int {
	n := 0
	for i := 0; i < len(s) && isDigit(s[i]); i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// parseRelTime reads [-][[[days+]hours:]minutes:]seconds or 1d2h3m4s, from its
// end (HTCondor src/classad/literals.cpp:MakeRelTime).
func parseRelTime(s string) (Value, bool) {
	s = strings.TrimRight(s, spaces)
	seconds := 0.0
	if s != "" && (isDigit(s[len(s)-1]) || lower(s[len(s)-1]) == 's') {
		if !isDigit(s[len(s)-1]) {
			s = strings.TrimRight(s[:len(s)-1], spaces)
		}
		i := trailingDigits(s)
		if i > 0 && s[i-1] == '.' {
			i = trailingDigits(s[:i-1])
		}
		seconds = parseReal(s[i:])
		if s[i:] == "" || s[i:] == "." {
			seconds = 0
		}
		s = s[:i]
	}
	part := func(marks string) int32 {
		s = strings.TrimRight(s, spaces)
		if s == "" || strings.IndexByte(marks, s[len(s)-1]) < 0 {
			return 0
		}
		s = strings.TrimRight(s[:len(s)-1], spaces)
		i := trailingDigits(s)
		n, err := strconv.ParseInt(s[i:], 10, 32)
		s = s[:i]
		if err != nil {
			return 0 // out of range, as HTCondor's std::from_chars leaves it
		}
		return int32(n)
	}
	minutes := part("mM:")
	hours := part("hH:")
	days := part("dD+")
	s = strings.TrimRight(s, spaces)
	sign := 1.0
	if strings.HasSuffix(s, "-") {
		sign = -1
		s = strings.TrimRight(s[:len(s)-1], spaces)
	}
	if s != "" {
		return Value{}, false
	}
	return RelTimeValue(sign * (float64(days*86400+hours*3600+minutes*60) + seconds)), true
}

func trailingDigits(s string) int {
	i := len(s)
	for i > 0 && isDigit(s[i-1]) {
		i--
	}
	return i
}

// appendAbsTime writes 2003-01-25T09:00:00-06:00; the sign of UTC itself is
// minus (HTCondor src/classad/util.cpp:absTimeToString).
func appendAbsTime(dst []byte, unix int64, offset int) []byte {
	t := time.Unix(unix+int64(offset), 0).UTC()
	dst = strconv.AppendInt(dst, int64(t.Year()), 10)
	for _, f := range [...]struct {
		mark byte
		n    int
	}{{'-', int(t.Month())}, {'-', t.Day()}, {'T', t.Hour()}, {':', t.Minute()}, {':', t.Second()}} {
		dst = append(dst, f.mark)
		dst = appendPadded(dst, f.n)
	}
	mark := byte('+')
	if offset <= 0 {
		mark, offset = '-', -offset
	}
	dst = append(dst, mark)
	dst = appendPadded(dst, offset/3600)
	dst = append(dst, ':')
	return appendPadded(dst, offset/60%60)
}

// appendPadded writes %02d.
func appendPadded(dst []byte, n int) []byte {
	if 0 <= n && n < 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// appendRelTime writes [days+][hh:][mm:]ss, beginning with the greatest part
// that is not zero (HTCondor src/classad/util.cpp:relTimeToString).
func appendRelTime(dst []byte, seconds float64) []byte {
	if seconds < 0 {
		dst = append(dst, '-')
		seconds = -seconds
	}
	fraction := seconds - math.Floor(seconds)
	total := int(truncate32(seconds))
	days, hours, minutes := total/86400, total%86400/3600, total%3600/60
	rest := total % 60
	if days != 0 {
		dst = strconv.AppendInt(dst, int64(days), 10)
		dst = append(dst, '+')
	}
	if days != 0 || hours != 0 {
		dst = appendPadded(dst, hours)
		dst = append(dst, ':')
	}
	if days != 0 || hours != 0 || minutes != 0 {
		dst = appendPadded(dst, minutes)
		dst = append(dst, ':')
	}
	if fraction == 0 {
		return appendPadded(dst, rest)
	}
	from := len(dst)
	dst = appendG(dst, float64(rest)+fraction, 6, false)
	if len(dst)-from == 1 {
		dst = append(dst[:from], '0', dst[from])
	}
	return dst
}
