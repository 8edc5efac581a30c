package classads

import (
	"strconv"
	"time"
)

// convert writes one conversion; false if there is none of that letter.
func (t *tm) convert(dst []byte, letter byte, c *conversion) ([]byte, bool) {
	from := len(dst)
	switch letter {
	case '%':
		dst = append(dst, '%')
	case 'n':
		dst = append(dst, '\n')
	case 't':
		dst = append(dst, '\t')
	case 'a', 'A', 'b', 'B', 'h', 'p', 'P', 'Z':
		dst = append(dst, t.word(letter, c)...)
	case 'z':
		sign, off := byte('+'), t.offset/60
		if off < 0 {
			sign, off = '-', -off
		}
		dst = append(dst, sign)
		dst = appendPadded(dst, off/60)
		dst = appendPadded(dst, off%60)
	case 's':
		at := time.Date(int(t.year), time.Month(t.month+1), int(t.day), int(t.hour), int(t.minute), int(t.second), 0, t.local)
		return strconv.AppendInt(dst, at.Unix(), 10), true
	default:
		return t.convertNumber(dst, letter, c)
	}
	return c.finish(dst, from, ' '), true
}

// word returns the text of a conversion that names something.
func (t *tm) word(letter byte, c *conversion) string {
	if c.swap && letter != 'p' && letter != 'Z' {
		c.upper = true
	}
	switch letter {
	case 'a', 'A':
		if t.weekDay < 0 || t.weekDay > 6 {
			return "?"
		}
		name := time.Weekday(t.weekDay).String()
		if letter == 'a' {
			return name[:3]
		}
		return name
	case 'b', 'B', 'h':
		if t.month < 0 || t.month > 11 {
			return "?"
		}
		name := time.Month(t.month + 1).String()
		if letter == 'B' {
			return name
		}
		return name[:3]
	case 'Z':
		return t.zone
	}
	half := "AM"
	if t.hour > 11 {
		half = "PM"
	}
	if letter == 'P' || c.swap {
		half = string(appendLower(nil, half))
	}
	return half
}

func (t *tm) convertNumber(dst []byte, letter byte, c *conversion) ([]byte, bool) {
	hour12 := func() int64 {
		switch {
		case t.hour > 12:
			return t.hour - 12
		case t.hour == 0:
			return 12
		}
		return t.hour
	}
	n, digits, pad := int64(0), 2, byte('0')
	switch letter {
	case 'C':
		n = floorDivide(t.year, 100)
	case 'd':
		n = t.day
	case 'e':
		n, pad = t.day, ' '
	case 'G', 'g':
		year, _ := t.isoWeek()
		if n = year; letter == 'G' {
			digits = 1
		} else {
			n = floorModulo(year, 100)
		}
	case 'H':
		n = t.hour
	case 'I':
		n = hour12()
	case 'j':
		n, digits = t.yearDay+1, 3
	case 'k':
		n, pad = t.hour, ' '
	case 'l':
		n, pad = hour12(), ' '
	case 'm':
		n = t.month + 1
	case 'M':
		n = t.minute
	case 'S':
		n = t.second
	case 'u':
		n, digits = (t.weekDay-1+7)%7+1, 1
	case 'U':
		n = (t.yearDay - t.weekDay + 7) / 7
	case 'V':
		_, n = t.isoWeek()
	case 'w':
		n, digits = t.weekDay, 1
	case 'W':
		n = (t.yearDay - (t.weekDay-1+7)%7 + 7) / 7
	case 'y':
		n = floorModulo(t.year, 100)
	case 'Y':
		n, digits = t.year, 1
	default:
		return dst, false
	}
	return c.number(dst, n, digits, pad), true
}

func floorDivide(a, b int64) int64 { return (a - floorModulo(a, b)) / b }
func floorModulo(a, b int64) int64 { return (a%b + b) % b }

// isoWeek returns the year and week of ISO 8601, as glibc computes them.
func (t *tm) isoWeek() (year, week int64) {
	weekDays := func(yearDay int64) int64 { // days since the Monday of week 1
		const bigEnough = 3 * 7
		return yearDay - (yearDay-t.weekDay+4+bigEnough)%7 + 4 - 1
	}
	length := func(y int64) int64 {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 366
		}
		return 365
	}
	year = t.year
	days := weekDays(t.yearDay)
	if days < 0 {
		year--
		days = weekDays(t.yearDay + length(year))
	} else if d := weekDays(t.yearDay - length(year)); d >= 0 {
		year++
		days = d
	}
	return year, days/7 + 1
}

// appendNumbers writes numbers and the marks between them; all but the first
// number have at least two digits.
func appendNumbers(dst []byte, first int, rest ...any) []byte {
	dst = strconv.AppendInt(dst, int64(first), 10)
	for _, r := range rest {
		switch r := r.(type) {
		case rune:
			dst = append(dst, byte(r))
		case int:
			dst = appendPadded(dst, r)
		}
	}
	return dst
}
