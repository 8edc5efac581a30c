package strftime

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
)

const (
	all   = "%a|%A|%b|%B|%h|%c|%C|%d|%D|%e|%F|%g|%G|%H|%I|%j|%k|%l|%m|%M|%p|%P|%r|%R|%s|%S|%T|%u|%U|%V|%w|%W|%x|%X|%y|%Y|%z|%Z|%n%t%%"
	flags = "%5d|%-d|%_d|%05e|%^a|%#B|%#p|%10Y|%_10Y|%^10b|%Ey|%Od|%-j|%_j|%010F|%_12T|%^c|%3C|%-I"
)

// TestAppend compares with what glibc's strftime wrote in the zone Europe/Zurich.
func TestAppend(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		unix         int64
		format, want string
	}{
		{1767323045, all, "Fri|Friday|Jan|January|Jan|Fri Jan  2 04:04:05 2026|20|02|01/02/26| 2|2026-01-02|26|2026|04|04|002| 4| 4|01|04|AM|am|04:04:05 AM|04:04|1767323045|05|04:04:05|5|00|01|5|00|01/02/26|04:04:05|26|2026|+0100|CET|\n\t%"},
		{1767323045, flags, "00002|2| 2|00002|FRI|JANUARY|am|0000002026|      2026|       JAN|26|02|2|  2|2026-01-02|    04:04:05|FRI JAN  2 04:04:05 2026|020|4"},
		{1785585599, all, "Sat|Saturday|Aug|August|Aug|Sat Aug  1 13:59:59 2026|20|01|08/01/26| 1|2026-08-01|26|2026|13|01|213|13| 1|08|59|PM|pm|01:59:59 PM|13:59|1785585599|59|13:59:59|6|30|31|6|30|08/01/26|13:59:59|26|2026|+0200|CEST|\n\t%"},
		{1785585599, flags, "00001|1| 1|00001|SAT|AUGUST|pm|0000002026|      2026|       AUG|26|01|213|213|2026-08-01|    13:59:59|SAT AUG  1 13:59:59 2026|020|1"},
		{0, all, "Thu|Thursday|Jan|January|Jan|Thu Jan  1 01:00:00 1970|19|01|01/01/70| 1|1970-01-01|70|1970|01|01|001| 1| 1|01|00|AM|am|01:00:00 AM|01:00|0|00|01:00:00|4|00|01|4|00|01/01/70|01:00:00|70|1970|+0100|CET|\n\t%"},
		{0, flags, "00001|1| 1|00001|THU|JANUARY|am|0000001970|      1970|       JAN|70|01|1|  1|1970-01-01|    01:00:00|THU JAN  1 01:00:00 1970|019|1"},
		{951782400, all, "Tue|Tuesday|Feb|February|Feb|Tue Feb 29 01:00:00 2000|20|29|02/29/00|29|2000-02-29|00|2000|01|01|060| 1| 1|02|00|AM|am|01:00:00 AM|01:00|951782400|00|01:00:00|2|09|09|2|09|02/29/00|01:00:00|00|2000|+0100|CET|\n\t%"},
		{951782400, flags, "00029|29|29|00029|TUE|FEBRUARY|am|0000002000|      2000|       FEB|00|29|60| 60|2000-02-29|    01:00:00|TUE FEB 29 01:00:00 2000|020|1"},
		{1230768000, all, "Thu|Thursday|Jan|January|Jan|Thu Jan  1 01:00:00 2009|20|01|01/01/09| 1|2009-01-01|09|2009|01|01|001| 1| 1|01|00|AM|am|01:00:00 AM|01:00|1230768000|00|01:00:00|4|00|01|4|00|01/01/09|01:00:00|09|2009|+0100|CET|\n\t%"},
		{1230768000, flags, "00001|1| 1|00001|THU|JANUARY|am|0000002009|      2009|       JAN|09|01|1|  1|2009-01-01|    01:00:00|THU JAN  1 01:00:00 2009|020|1"},
		{1262304000, all, "Fri|Friday|Jan|January|Jan|Fri Jan  1 01:00:00 2010|20|01|01/01/10| 1|2010-01-01|09|2009|01|01|001| 1| 1|01|00|AM|am|01:00:00 AM|01:00|1262304000|00|01:00:00|5|00|53|5|00|01/01/10|01:00:00|10|2010|+0100|CET|\n\t%"},
		{1262304000, flags, "00001|1| 1|00001|FRI|JANUARY|am|0000002010|      2010|       JAN|10|01|1|  1|2010-01-01|    01:00:00|FRI JAN  1 01:00:00 2010|020|1"},
		{0, "%q|%|%E|x%", "%q|%|%E|x%"},
	} {
		got := string(Of(time.Unix(c.unix, 0).In(zone)).Append(nil, c.format))
		if diff := cmp.Diff(strings.Split(c.want, "|"), strings.Split(got, "|")); diff != "" {
			t.Errorf("%d %q (-want +got):\n%s", c.unix, c.format, diff)
		}
	}
}

// TestOutOfRange: an ad may name any day, month and hour.
func TestOutOfRange(t *testing.T) {
	odd := Time{Second: 61, Minute: -3, Hour: 30, Day: -7, Month: 12, Year: -5, WeekDay: -1, YearDay: 400}
	if got, want := string(odd.Append(nil, "%a %b %d %H:%M:%S %Y %I %p %s")), "? ? -7 30:-3:61 -5 18 PM -62294032919"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestModifiers: E and O change nothing, or make that it is no conversion; what the flags do to words and to the offset.
func TestModifiers(t *testing.T) {
	at := Time{Second: 40, Minute: 46, Hour: 1, Day: 9, Month: 8, Year: 2001, WeekDay: 0, YearDay: 251, Zone: "IST", Offset: 5*3600 + 30*60}
	west := at
	west.Offset = -(3*3600 + 7*60)
	for format, want := range map[string]string{
		"%Ea %^Ea %#Ea %Ed %EY %Ey %OF %Od %OB %Ob %Oc %EC %OC %EEd %EOd %E5d %E": "%Ea %^EA %#Ea %Ed 2001 01 %OF 09 September Sep %Oc 20 20 %EEd %EOd %E5d %E",
		"%^f %^P %#P %^#P %#p %#Z %^Z %5P %#a":                                    "%^F am am am am ist IST    am SUN",
		"%z|%_z|%-z|%0z|%10z|%_10z|%-10z|%010z|%2z":                               "+0530|+ 530|+530|+0530|         +0000000530|         +       530|         +       530|000000000+0000000530| +0530",
		// Flags and width count for what is no conversion, too.
		"%-5d|%-6F|%-3T|%5Q|%-8OF|%08EQ|%#Eb|%#7Eh|%#EB|%3%|%-3n|%3E%|%^_1Oa|%5": "    9|2001-09-09|01:46:40|  %5Q|   %-8OF|000%08EQ|%#EB|  %#7EH|%#EB|  %|  \n|  %|%^_1OA|   %5",
	} {
		if got := string(at.Append(nil, format)); got != want {
			t.Errorf("%q: %q, want %q", format, got, want)
		}
	}
	at.Local = time.UTC
	if got := string(at.Append(nil, "%s|%12s|%012s|%-12s|%_12s|%5s")); got != "1000000000|  1000000000|001000000000|  1000000000|  1000000000|1000000000" {
		t.Errorf("%q", got)
	}
	if got := string(west.Append(nil, "%z|%_z|%-z|%8z")); got != "-0307|- 307|-307|       -00000307" {
		t.Errorf("%q", got)
	}
}

// TestTextIsBounded: a format makes at most one conversion more than MaxText bytes.
func TestTextIsBounded(t *testing.T) {
	before := []byte("before ")
	for _, format := range []string{strings.Repeat("%c", 1000), "%99999999999Y%99999Y", strings.Repeat("x", 1<<20)} {
		got := Of(time.Unix(0, 0).UTC()).Append(before, format)
		if n := len(got) - len(before); n <= MaxText || n > 2*MaxText+1 {
			t.Errorf("%.20q: %d bytes", format, n)
		}
	}
}
