package classads

import "strconv"

const timeFamily = "time"

const (
	fieldYear = iota
	fieldMonth
	fieldDayOfYear
	fieldDayOfMonth
	fieldDayOfWeek
	fieldDays
	fieldHours
	fieldMinutes
	fieldSeconds
)

// timeFunctions tell and take apart time (HTCondor src/classad/fnCall.cpp).
var timeFunctions = []builtin{
	{name: "time", family: timeFamily, usage: "time()", summary: "seconds since 1970 in UTC",
		min: 0, max: 0, eval: func(ev *evaluator, _ *scope, _ *call) Value { return IntValue(ev.now().Unix()) }},
	{name: "currentTime", family: timeFamily, usage: "currentTime()", summary: "now as an absolute time",
		min: 0, max: 0, eval: func(ev *evaluator, _ *scope, _ *call) Value { return ev.currentTime() }},
	{name: "timeZoneOffset", family: timeFamily, usage: "timeZoneOffset()", summary: "offset of the local zone from UTC as a relative time",
		min: 0, max: 0, eval: fnZoneOffset},
	{name: "dayTime", family: timeFamily, usage: "dayTime()", summary: "time since local midnight as a relative time",
		min: 0, max: 0, eval: fnDayTime},
	timeField("getYear", fieldYear, "year of an absolute time"),
	timeField("getMonth", fieldMonth, "month of an absolute time, from 1"),
	timeField("getDayOfYear", fieldDayOfYear, "day in the year of an absolute time, from 0"),
	timeField("getDayOfMonth", fieldDayOfMonth, "day in the month of an absolute time, from 1"),
	timeField("getDayOfWeek", fieldDayOfWeek, "day in the week of an absolute time, Sunday is 0"),
	timeField("getDays", fieldDays, "days of a relative time"),
	timeField("getHours", fieldHours, "hours of a time, 0 to 23"),
	timeField("getMinutes", fieldMinutes, "minutes of a time, 0 to 59"),
	timeField("getSeconds", fieldSeconds, "seconds of a time, 0 to 59"),
	{name: "splitTime", family: timeFamily, usage: "splitTime(time)", summary: "ad with the parts of a time",
		min: 1, max: 1, eval: fnSplitTime},
	{name: "formatTime", family: timeFamily, usage: "formatTime([time [, format]])", summary: "text of a time, formatted as strftime(3) does",
		min: 0, max: -1, eval: fnFormatTime},
	{name: "interval", family: timeFamily, usage: "interval(seconds)", summary: "days+hours:minutes:seconds",
		min: 1, max: 1, eval: fnInterval},
}

func timeField(name string, field int, summary string) builtin {
	return builtin{name: name, family: timeFamily, usage: name + "(time)", summary: summary,
		min: 1, max: 1, variant: field, eval: fnTimeField}
}

func (ev *evaluator) currentTime() Value {
	unix := ev.now().Unix()
	return AbsTimeValue(unix, ev.offset(unix))
}

func fnZoneOffset(ev *evaluator, _ *scope, _ *call) Value {
	return RelTimeValue(float64(ev.offset(ev.now().Unix())))
}

func fnDayTime(ev *evaluator, _ *scope, _ *call) Value {
	h, m, s := ev.now().In(ev.zone()).Clock()
	return RelTimeValue(float64(h*3600 + m*60 + s))
}

func fnTimeField(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	switch v.kind {
	case AbsTime:
		t := brokenDown(v.num + int64(ev.offset(v.num)))
		switch c.fn.variant {
		case fieldYear:
			return IntValue(t.Year)
		case fieldMonth:
			return IntValue(t.Month + 1)
		case fieldDayOfYear:
			return IntValue(t.YearDay)
		case fieldDayOfMonth:
			return IntValue(t.Day)
		case fieldDayOfWeek:
			return IntValue(t.WeekDay)
		case fieldHours:
			return IntValue(t.Hour)
		case fieldMinutes:
			return IntValue(t.Minute)
		case fieldSeconds:
			return IntValue(t.Second)
		}
	case RelTime:
		s := wholeSeconds(v)
		switch c.fn.variant {
		case fieldDays:
			return IntValue(s / 86400)
		case fieldHours:
			return IntValue(s % 86400 / 3600)
		case fieldMinutes:
			return IntValue(s % 3600 / 60)
		case fieldSeconds:
			return IntValue(s % 60)
		}
	}
	return ErrorValue(c.fn.name + ": the argument is not a time with this part")
}

// splitTime splits a time into the parts of an ad; false if the value is not a time
// (HTCondor src/classad/fnCall.cpp:doSplitTime).
func splitTime(ev *evaluator, v Value) (*Ad, bool) {
	switch v.kind {
	case Int:
		return splitAbsTime(v.num, ev.offset(v.num)), true
	case Real:
		unix := int64(truncate32(v.float()))
		return splitAbsTime(unix, ev.offset(unix)), true
	case AbsTime:
		return splitAbsTime(v.num, int(v.off)), true
	case RelTime:
		return splitRelTime(v.float()), true
	case Record:
		return v.sc.ad, true
	}
	return nil, false
}

func splitAbsTime(unix int64, offset int) *Ad {
	t := brokenDown(unix + int64(offset))
	ad := NewAd()
	ad.SetString("Type", "AbsoluteTime")
	ad.SetInt("Year", t.Year)
	ad.SetInt("Month", t.Month+1)
	ad.SetInt("Day", t.Day)
	ad.SetInt("Hours", t.Hour)
	ad.SetInt("Minutes", t.Minute)
	ad.SetInt("Seconds", t.Second)
	ad.SetInt("Offset", int64(offset))
	return ad
}

func splitRelTime(seconds float64) *Ad {
	negative := seconds < 0
	if negative {
		seconds = -seconds
	}
	total := truncate32(seconds)
	days, hours, minutes := total/86400, total%86400/3600, total%3600/60
	rest := float64(total%60) + fraction(seconds)
	if negative { // the greatest part that is not zero carries the sign
		switch {
		case days > 0:
			days = -days
		case hours > 0:
			hours = -hours
		case minutes > 0:
			minutes = -minutes
		default:
			rest = -rest
		}
	}
	ad := NewAd()
	ad.SetString("Type", "RelativeTime")
	ad.SetInt("Days", int64(days))
	ad.SetInt("Hours", int64(hours))
	ad.SetInt("Minutes", int64(minutes))
	ad.SetReal("Seconds", rest)
	return ad
}

func fnSplitTime(ev *evaluator, sc *scope, c *call) Value {
	v := c.args[0].eval(ev, sc)
	if v.kind == Undefined {
		return v
	}
	ad, ok := splitTime(ev, v)
	if !ok || v.kind == Record {
		return ErrorValue("splitTime: the argument is not a time")
	}
	return Value{kind: Record, sc: outer(ad, ev.env)}
}

func fnInterval(ev *evaluator, sc *scope, c *call) Value {
	v := toInt(c.args[0].eval(ev, sc))
	if v.kind != Int {
		return ErrorValue("interval: the argument is not a number")
	}
	s := int(int32(v.num))
	days, hours, minutes, seconds := s/86400, s%86400/3600, s%3600/60, s%60
	abs := func(n int) int { return max(n, -n) }
	var b []byte
	switch {
	case days != 0:
		b = appendNumbers(b, days, '+', abs(hours), ':', abs(minutes), ':', abs(seconds))
	case hours != 0:
		b = appendNumbers(b, hours, ':', abs(minutes), ':', abs(seconds))
	case minutes != 0:
		b = appendNumbers(b, minutes, ':', abs(seconds))
	default:
		b = appendNumbers(b, seconds)
	}
	return StringValue(string(b))
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
