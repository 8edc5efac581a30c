package classads

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// tm is C's struct tm, except that year is the full year. Its fields may be
// out of their range: they can come from an ad.
type tm struct {
	second, minute, hour, day, month, year, weekDay, yearDay int64
	offset                                                   int    // seconds east of UTC
	zone                                                     string // its name
	local                                                    *time.Location
}

// brokenDown takes seconds since 1970 apart.
func brokenDown(seconds int64) tm {
	const day = 86400
	days := seconds / day
	rest := seconds % day
	if rest < 0 {
		rest += day
		days--
	}
	// time.Time has the year as an int and is right for every day count here
	// that HTCondor's gmtime can take apart.
	t := time.Unix(days*day, 0).UTC()
	return tm{
		second: rest % 60, minute: rest / 60 % 60, hour: rest / 3600,
		day: int64(t.Day()), month: int64(t.Month()) - 1, year: int64(t.Year()),
		weekDay: int64(t.Weekday()), yearDay: int64(t.YearDay()) - 1,
	}
}

func fraction(seconds float64) float64 { return seconds - math.Floor(seconds) }

// maxFormatted is the size of HTCondor's buffer for formatted time.
const maxFormatted = 1022

func fnFormatTime(ev *evaluator, sc *scope, c *call) Value {
	format := "%c"
	if len(c.args) == 0 {
		unix := ev.now().Unix()
		t := brokenDown(unix + int64(ev.offset(unix)))
		t.local = ev.zone()
		t.zone, t.offset = time.Unix(unix, 0).In(t.local).Zone()
		return StringValue(string(t.format(nil, format, 0)))
	}
	if len(c.args) > 2 {
		return ErrorValue("formatTime takes at most two arguments")
	}
	v := c.args[0].eval(ev, sc)
	ad, ok := splitTime(ev, v)
	if v.kind == RelTime || !ok {
		return ErrorValue("formatTime: the first argument is no absolute time")
	}
	field := func(name string, less int64) int64 {
		n := ad.find(name, hashName(name))
		if n == nil {
			return 0
		}
		v := ev.attempt(n, outer(ad, ev.env))
		if v.kind != Int {
			return 0
		}
		return int64(int32(v.num)) - less
	}
	t := tm{
		second: field("Seconds", 0), minute: field("Minutes", 0), hour: field("Hours", 0),
		day: field("Day", 0), month: field("Month", 1), year: field("Year", 0),
	}
	if !ad.Has("Year") {
		t.year = 1900
	}
	t.local = ev.zone()
	t.zone, _ = time.Unix(0, 0).In(t.local).Zone()
	t.weekDay = dayNumber(t.year, t.month+1, t.day) % 7
	t.yearDay = dayNumber(t.year, t.month+1, t.day) - dayNumber(t.year, 1, 1)
	if len(c.args) == 2 {
		f := c.args[1].eval(ev, sc)
		if f.kind != String {
			return ErrorValue("formatTime: the format must be a string")
		}
		format = f.str
	}
	out := t.format(nil, format, 0)
	if len(out) > maxFormatted {
		return ErrorValue("formatTime: the text is too long")
	}
	return StringValue(string(out))
}

// dayNumber counts days since the beginning of the calendar
// (HTCondor src/classad/util.cpp:fixed_from_gregorian).
func dayNumber(year, month, day int64) int64 {
	adjust := int64(0)
	if month > 2 {
		adjust = -2
		if m := year % 400; year%4 == 0 && m != 100 && m != 200 && m != 300 {
			adjust = -1
		}
	}
	return 365*(year-1) + (year-1)/4 - (year-1)/100 + (year-1)/400 + (367*month-362)/12 + adjust + day
}

// compounds are the conversions that stand for others, in the C locale.
var compounds = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M",
	'r': "%I:%M:%S %p", 'T': "%H:%M:%S", 'x': "%m/%d/%y", 'X': "%H:%M:%S",
}

// format is strftime(3) in the C locale, with the flags _ - 0 ^ # and a width,
// as glibc has them.
func (t *tm) format(dst []byte, format string, nested int) []byte {
	for i := 0; i < len(format) && len(dst) <= maxFormatted; i++ {
		if format[i] != '%' {
			dst = append(dst, format[i])
			continue
		}
		start := i
		var spec conversion
		i = spec.parse(format, i+1)
		if i >= len(format) {
			return append(dst, format[start:]...)
		}
		from := len(dst)
		if compound, ok := compounds[format[i]]; ok && nested == 0 {
			dst = t.format(dst, compound, 1)
			dst = spec.finish(dst, from, ' ')
			continue
		}
		var ok bool
		if dst, ok = t.convert(dst, format[i], &spec); !ok {
			dst = append(dst[:from], format[start:i+1]...)
		}
	}
	return dst
}

// conversion is the part of a conversion between % and its letter.
type conversion struct {
	pad   byte // flag _ - or 0
	upper bool
	swap  bool
	width int
}

func (c *conversion) parse(format string, i int) int {
	for ; i < len(format); i++ {
		switch format[i] {
		case '_', '-', '0':
			c.pad = format[i]
		case '^':
			c.upper = true
		case '#':
			c.swap = true
		default:
			for i < len(format) && isDigit(format[i]) {
				c.width = min(c.width*10+int(format[i]-'0'), maxFormatted+1)
				i++
			}
			if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
				i++
			}
			return i
		}
	}
	return i
}

// finish applies flags and width to the text from an index on.
func (c *conversion) finish(dst []byte, from int, pad byte) []byte {
	if c.upper {
		for i := from; i < len(dst); i++ {
			dst[i] = upper(dst[i])
		}
	}
	if missing := c.width - (len(dst) - from); missing > 0 && c.pad != '-' {
		if c.pad == '0' {
			pad = '0'
		} else if c.pad == '_' {
			pad = ' '
		}
		text := string(dst[from:])
		dst = append(dst[:from], strings.Repeat(string(rune(pad)), missing)...)
		dst = append(dst, text...)
	}
	return dst
}

// number writes a number of at least so many digits.
func (c *conversion) number(dst []byte, n int64, digits int, pad byte) []byte {
	switch c.pad {
	case '-':
		return strconv.AppendInt(dst, n, 10)
	case '_':
		pad = ' '
	case '0':
		pad = '0'
	}
	digits = max(digits, c.width)
	text := strconv.FormatInt(max(n, -n), 10)
	missing := digits - len(text)
	if n < 0 {
		missing--
	}
	fill := strings.Repeat(string(rune(pad)), max(missing, 0))
	switch {
	case n < 0 && pad == ' ':
		return append(append(append(dst, fill...), '-'), text...)
	case n < 0:
		dst = append(dst, '-')
	}
	return append(append(dst, fill...), text...)
}
