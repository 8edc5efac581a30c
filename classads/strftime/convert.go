package strftime

import (
	"strconv"
	"strings"
	"time"
)

// convert writes one conversion; false if there is none of that letter.
func (t *Time) convert(dst []byte, letter byte, c *conversion) ([]byte, bool) {
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
		return t.zone(dst, c), true
	case 's':
		in := t.Local
		if in == nil {
			in = time.UTC
		}
		at := time.Date(int(t.Year), time.Month(t.Month+1), int(t.Day), int(t.Hour), int(t.Minute), int(t.Second), 0, in)
		dst = strconv.AppendInt(dst, at.Unix(), 10)
	default:
		return t.convertNumber(dst, letter, c)
	}
	return c.finish(dst, from, ' '), true
}

// zone writes the offset from UTC. The GNU C library pads its sign and its number, both to the whole width.
func (t *Time) zone(dst []byte, c *conversion) []byte {
	sign, minutes := "+", t.Offset/60
	if minutes < 0 {
		sign, minutes = "-", -minutes
	}
	digits, space := strconv.Itoa(minutes/60*100+minutes%60), " "
	if c.pad == '0' {
		space = "0"
	}
	dst = append(dst, strings.Repeat(space, max(0, c.width-1))+sign...)
	switch c.pad {
	case '-':
		dst = append(dst, strings.Repeat(" ", max(0, c.width-len(digits)))...)
	case '_':
		dst = append(dst, strings.Repeat(" ", max(0, max(4, c.width)-len(digits)))...)
	default:
		dst = append(dst, strings.Repeat("0", max(0, max(4, c.width)-len(digits)))...)
	}
	return append(dst, digits...)
}

// word returns the text of a conversion that names something.
func (t *Time) word(letter byte, c *conversion) string {
	switch {
	case letter == 'P', c.swap && letter == 'p', c.swap && letter == 'Z':
		c.upper = false
	case c.swap:
		c.upper = true
	}
	switch letter {
	case 'a', 'A':
		if t.WeekDay < 0 || t.WeekDay > 6 {
			return "?"
		}
		name := time.Weekday(t.WeekDay).String()
		if letter == 'a' {
			return name[:3]
		}
		return name
	case 'b', 'B', 'h':
		if t.Month < 0 || t.Month > 11 {
			return "?"
		}
		name := time.Month(t.Month + 1).String()
		if letter == 'B' {
			return name
		}
		return name[:3]
	case 'Z':
		if c.swap {
			return strings.ToLower(t.Zone)
		}
		return t.Zone
	}
	half := "AM"
	if t.Hour > 11 {
		half = "PM"
	}
	if letter == 'P' || c.swap {
		half = strings.ToLower(half)
	}
	return half
}

func (t *Time) convertNumber(dst []byte, letter byte, c *conversion) ([]byte, bool) {
	hour12 := func() int64 {
		switch {
		case t.Hour > 12:
			return t.Hour - 12
		case t.Hour == 0:
			return 12
		}
		return t.Hour
	}
	n, digits, pad := int64(0), 2, byte('0')
	switch letter {
	case 'C':
		n = floorDivide(t.Year, 100)
	case 'd':
		n = t.Day
	case 'e':
		n, pad = t.Day, ' '
	case 'G', 'g':
		year, _ := t.isoWeek()
		if n = year; letter == 'G' {
			digits = 1
		} else {
			n = floorModulo(year, 100)
		}
	case 'H':
		n = t.Hour
	case 'I':
		n = hour12()
	case 'j':
		n, digits = t.YearDay+1, 3
	case 'k':
		n, pad = t.Hour, ' '
	case 'l':
		n, pad = hour12(), ' '
	case 'm':
		n = t.Month + 1
	case 'M':
		n = t.Minute
	case 'S':
		n = t.Second
	case 'u':
		n, digits = (t.WeekDay-1+7)%7+1, 1
	case 'U':
		n = (t.YearDay - t.WeekDay + 7) / 7
	case 'V':
		_, n = t.isoWeek()
	case 'w':
		n, digits = t.WeekDay, 1
	case 'W':
		n = (t.YearDay - (t.WeekDay-1+7)%7 + 7) / 7
	case 'y':
		n = floorModulo(t.Year, 100)
	case 'Y':
		n, digits = t.Year, 1
	default:
		return dst, false
	}
	return c.number(dst, n, digits, pad), true
}

func floorDivide(a, b int64) int64 { return (a - floorModulo(a, b)) / b }
func floorModulo(a, b int64) int64 { return (a%b + b) % b }

// isoWeek returns the year and week of ISO 8601, as glibc computes them.
func (t *Time) isoWeek() (year, week int64) {
	weekDays := func(yearDay int64) int64 { // days since the Monday of week 1
		const bigEnough = 3 * 7
		return yearDay - (yearDay-t.WeekDay+4+bigEnough)%7 + 4 - 1
	}
	length := func(y int64) int64 {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 366
		}
		return 365
	}
	year = t.Year
	days := weekDays(t.YearDay)
	if days < 0 {
		year--
		days = weekDays(t.YearDay + length(year))
	} else if d := weekDays(t.YearDay - length(year)); d >= 0 {
		year++
		days = d
	}
	return year, days/7 + 1
}

// two writes a number in two digits, or more if it needs them.
