package userlog

import (
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Format is the form of a log (condor_event.h: ULogEvent::formatOpt).
type Format uint

// Forms, which can be combined. Text is that without XML and JSON.
const (
	XML Format = 1 << iota
	JSON
	ISODate
	UTC
	SubSecond

	// DefaultFormat is that of users' logs; the event log of a schedd has none of these.
	DefaultFormat = ISODate
)

var formatWords = map[string]Format{"XML": XML, "JSON": JSON, "ISO_DATE": ISODate, "UTC": UTC, "SUB_SECOND": SubSecond}

// ParseFormat reads DEFAULT_USERLOG_FORMAT_OPTIONS and EVENT_LOG_FORMAT_OPTIONS, beginning with a
// default. As in HTCondor, words without a meaning are passed over (condor_event.cpp:ULogEvent::parse_opts).
func ParseFormat(text string, f Format) Format {
	for _, word := range config.Split(text) {
		name, not := strings.CutPrefix(word, "!")
		flag := formatWords[strings.ToUpper(name)]
		switch legacy := strings.EqualFold(name, "LEGACY"); {
		case legacy && not:
			f |= ISODate
		case legacy:
			f &^= ISODate | UTC | SubSecond
		case not:
			f &^= flag
		default:
			f |= flag
		}
	}
	return f
}

// ID is the job that events are about.
type ID struct{ Cluster, Proc, Subproc int }

// format is an event as it is written.
func (f Format) format(id ID, e Event, now time.Time) string {
	if f&UTC != 0 {
		now = now.UTC()
	} else {
		now = now.Local()
	}
	switch {
	case f&JSON != 0:
		return f.ad(id, e, now).FormatJSON() + "\n"
	case f&XML != 0:
		return f.ad(id, e, now).FormatXML()
	}
	layout := "01/02 15:04:05"
	if f&ISODate != 0 {
		layout = "2006-01-02 15:04:05"
	}
	if f&SubSecond != 0 {
		layout += ".000"
	}
	if f&UTC != 0 {
		layout += "Z"
	}
	return fmt.Sprintf("%03d (%03d.%03d.%03d) %s %s...\n", e.number(), id.Cluster, id.Proc, id.Subproc, now.Format(layout), e.body())
}

// ad is an event as an ad (condor_event.cpp:ULogEvent::toClassAd).
func (f Format) ad(id ID, e Event, now time.Time) *classads.Ad {
	ad := classads.NewAd()
	ad.SetInt("EventTypeNumber", int64(e.number()))
	ad.SetString("MyType", names[e.number()][1])
	layout := "2006-01-02T15:04:05.000"
	if f&UTC != 0 {
		layout += "Z"
	}
	ad.SetString("EventTime", now.Format(layout))
	ad.SetInt("Cluster", int64(id.Cluster))
	ad.SetInt("Proc", int64(id.Proc))
	ad.SetInt("Subproc", int64(id.Subproc))
	e.attributes(ad)
	return ad
}
