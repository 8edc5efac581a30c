// Package strftime formats times as strftime(3) of the GNU C library does in the C
// locale, with all its conversions, its flags _ - 0 ^ # and its widths.
//
// It takes C's struct tm and not a time.Time: HTCondor fills one from the attributes
// of an ad and formats months and days that do not exist.
package strftime

import (
	"strconv"
	"strings"
	"time"
)

// Time is C's struct tm, except that Year is the full year. Fields may be out of
// their range, as those from an ad are.
type Time struct {
	Second, Minute, Hour int64
	Day                  int64 // from 1
	Month                int64 // from 0
	Year                 int64
	WeekDay              int64          // from 0 for Sunday
	YearDay              int64          // from 0
	Offset               int            // seconds east of UTC
	Zone                 string         // its name
	Local                *time.Location // where %s takes the fields to be from; nil is UTC
}

// Of takes a time apart, in its own location.
func Of(t time.Time) Time {
	_, offset := t.Zone()
	return Time{
		Second: int64(t.Second()), Minute: int64(t.Minute()), Hour: int64(t.Hour()),
		Day: int64(t.Day()), Month: int64(t.Month()) - 1, Year: int64(t.Year()),
		WeekDay: int64(t.Weekday()), YearDay: int64(t.YearDay()) - 1,
		Offset: offset, Zone: t.Format("MST"), Local: t.Location(),
	}
}

// MaxText is the size of HTCondor's buffer for a formatted time, in bytes.
const MaxText = 1022

// Append appends t to dst in a format. Anything but a conversion is copied. No
// further conversion begins behind MaxText bytes: a longer text is not complete.
func (t Time) Append(dst []byte, format string) []byte {
	return t.append(dst, format, len(dst)+MaxText, false)
}

// compounds are the conversions that stand for others, in the C locale.
var compounds = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M",
	'r': "%I:%M:%S %p", 'T': "%H:%M:%S", 'x': "%m/%d/%y", 'X': "%H:%M:%S",
}

// append appends t; at most says how long dst may be when another conversion begins.
func (t *Time) append(dst []byte, format string, atMost int, nested bool) []byte {
	for i := 0; i < len(format) && len(dst) <= atMost; i++ {
		if format[i] != '%' {
			dst = append(dst, format[i])
			continue
		}
		start := i
		var spec conversion
		i = spec.parse(format, i+1)
		if i >= len(format) {
			return spec.asIs(dst, format[start:])
		}
		from := len(dst)
		if spec.refuses(format[i]) {
			if format[i] == 'b' || format[i] == 'h' {
				spec.upper = spec.upper || spec.swap
			}
			dst = spec.asIs(dst, format[start:i+1])
			continue
		}
		if compound, ok := compounds[format[i]]; ok && !nested {
			dst = t.append(dst, compound, atMost, true)
			dst = spec.finish(dst, from, ' ')
			continue
		}
		var ok bool
		if dst, ok = t.convert(dst, format[i], &spec); !ok {
			dst = spec.asIs(dst[:from], format[start:i+1])
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
	other byte // E or O, which change nothing in the C locale
}

// refuses tells whether the letter may not come behind E, or behind O: then there is no conversion.
func (c *conversion) refuses(letter byte) bool {
	switch c.other {
	case 'E':
		return strings.IndexByte("ABDFGHIMSUVWabdeghjklmw", letter) >= 0
	case 'O':
		return strings.IndexByte("ADFXYacx", letter) >= 0
	}
	return false
}

// asIs writes what is no conversion. Flags and width apply to it all the same.
func (c *conversion) asIs(dst []byte, text string) []byte {
	from := len(dst)
	return c.finish(append(dst, text...), from, ' ')
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
			for i < len(format) && '0' <= format[i] && format[i] <= '9' {
				c.width = min(c.width*10+int(format[i]-'0'), MaxText+1)
				i++
			}
			if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
				c.other = format[i]
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
		for i, b := range dst[from:] {
			if 'a' <= b && b <= 'z' {
				dst[from+i] = b - 'a' + 'A'
			}
		}
	}
	if missing := c.width - (len(dst) - from); missing > 0 {
		switch c.pad {
		case '0':
			pad = '0'
		case '_', '-':
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
		from := len(dst)
		return c.finish(strconv.AppendInt(dst, n, 10), from, ' ')
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
