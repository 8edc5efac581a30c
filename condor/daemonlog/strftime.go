package daemonlog

import (
	"fmt"
	"strconv"
	"time"
)

// defaultTimeFormat is the header of a line unless DEBUG_TIME_FORMAT says
// otherwise.
const defaultTimeFormat = "%m/%d/%y %H:%M:%S"

// strftime formats as strftime(3) does in the C locale, for the conversions
// that a log header can want; others are written as they stand.
func strftime(b []byte, format string, t time.Time) []byte {
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' || i+1 == len(format) {
			b = append(b, c)
			continue
		}
		i++
		switch format[i] {
		case 'm':
			b = pad2(b, int(t.Month()))
		case 'd':
			b = pad2(b, t.Day())
		case 'e':
			b = fmt.Appendf(b, "%2d", t.Day())
		case 'y':
			b = pad2(b, t.Year()%100)
		case 'Y':
			b = strconv.AppendInt(b, int64(t.Year()), 10)
		case 'H':
			b = pad2(b, t.Hour())
		case 'I':
			b = t.AppendFormat(b, "03")
		case 'M':
			b = pad2(b, t.Minute())
		case 'S':
			b = pad2(b, t.Second())
		case 'p':
			b = t.AppendFormat(b, "PM")
		case 'b', 'h':
			b = t.AppendFormat(b, "Jan")
		case 'B':
			b = t.AppendFormat(b, "January")
		case 'a':
			b = t.AppendFormat(b, "Mon")
		case 'A':
			b = t.AppendFormat(b, "Monday")
		case 'j':
			b = fmt.Appendf(b, "%03d", t.YearDay())
		case 'Z':
			b = t.AppendFormat(b, "MST")
		case 'z':
			b = t.AppendFormat(b, "-0700")
		case 's':
			b = strconv.AppendInt(b, t.Unix(), 10)
		case 'D', 'x':
			b = t.AppendFormat(b, "01/02/06")
		case 'F':
			b = t.AppendFormat(b, "2006-01-02")
		case 'T', 'X':
			b = t.AppendFormat(b, "15:04:05")
		case 'R':
			b = t.AppendFormat(b, "15:04")
		case 'c':
			b = t.AppendFormat(b, "Mon Jan _2 15:04:05 2006")
		case '%':
			b = append(b, '%')
		default:
			b = append(b, '%', format[i])
		}
	}
	return b
}

func pad2(b []byte, n int) []byte {
	return append(b, byte('0'+n/10%10), byte('0'+n%10))
}
