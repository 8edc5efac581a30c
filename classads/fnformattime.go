package classads

import (
	"math"
	"time"

	"podstarter/classads/strftime"
)

// brokenDown takes seconds since 1970 apart.
func brokenDown(seconds int64) strftime.Time {
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
	return strftime.Time{
		Second: rest % 60, Minute: rest / 60 % 60, Hour: rest / 3600,
		Day: int64(t.Day()), Month: int64(t.Month()) - 1, Year: int64(t.Year()),
		WeekDay: int64(t.Weekday()), YearDay: int64(t.YearDay()) - 1,
	}
}

func fraction(seconds float64) float64 { return seconds - math.Floor(seconds) }

func fnFormatTime(ev *evaluator, sc *scope, c *call) Value {
	format := "%c"
	if len(c.args) == 0 {
		unix := ev.now().Unix()
		t := brokenDown(unix + int64(ev.offset(unix)))
		t.Local = ev.zone()
		t.Zone, t.Offset = time.Unix(unix, 0).In(t.Local).Zone()
		return StringValue(string(t.Append(nil, format)))
	}
	if len(c.args) > 2 {
		return ErrorValue("formatTime takes at most two arguments")
	}
	v := c.args[0].eval(ev, sc)
	ad, ok := splitTime(ev, v)
	if v.kind == RelTime || !ok {
		return ErrorValue("formatTime: the first argument is not an absolute time")
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
	t := strftime.Time{
		Second: field("Seconds", 0), Minute: field("Minutes", 0), Hour: field("Hours", 0),
		Day: field("Day", 0), Month: field("Month", 1), Year: field("Year", 0),
	}
	if !ad.Has("Year") {
		t.Year = 1900
	}
	t.Local = ev.zone()
	t.Zone, _ = time.Unix(0, 0).In(t.Local).Zone()
	t.WeekDay = dayNumber(t.Year, t.Month+1, t.Day) % 7
	t.YearDay = dayNumber(t.Year, t.Month+1, t.Day) - dayNumber(t.Year, 1, 1)
	if len(c.args) == 2 {
		f := c.args[1].eval(ev, sc)
		if f.kind != String {
			return ErrorValue("formatTime: the format must be a string")
		}
		format = f.str
	}
	out := t.Append(nil, format)
	if len(out) > strftime.MaxText {
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
