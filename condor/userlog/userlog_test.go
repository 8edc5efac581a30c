package userlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

// The texts are those of a stock starter 25.14 for jobs that ended in these ways.
const (
	executing = `001 (012.000.000) 2026-11-26 14:01:24 Job executing on host: <127.0.0.1:9701?sock=starter_1>
...
`
	terminated = `005 (012.000.000) 2026-11-26 14:01:24 Job terminated.
	(1) Normal termination (return value 5)
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
		Usr 1 01:01:01, Sys 0 00:00:02  -  Run Local Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Total Remote Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
	0  -  Run Bytes Sent By Job
	0  -  Run Bytes Received By Job
	0  -  Total Bytes Sent By Job
	0  -  Total Bytes Received By Job
...
`
	killed = `005 (012.000.000) 2026-11-26 14:01:24 Job terminated.
	(0) Abnormal termination (signal 9)
	(0) No core file
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Total Remote Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
	0  -  Run Bytes Sent By Job
	0  -  Run Bytes Received By Job
	0  -  Total Bytes Sent By Job
	0  -  Total Bytes Received By Job
...
`
	evicted = `004 (012.000.000) 2026-11-26 14:01:24 Job was evicted.
	(0) CPU times
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
	0  -  Run Bytes Sent By Job
	0  -  Run Bytes Received By Job
...
`
	requeued = `004 (012.000.000) 2026-11-26 14:01:24 Job was evicted.
	(0) Job terminated and was requeued
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
	0  -  Run Bytes Sent By Job
	0  -  Run Bytes Received By Job
	(0) Abnormal termination (signal 15)
	(0) No core file
	a policy
...
`
	again = `004 (012.000.000) 2026-11-26 14:01:24 Job was evicted.
	(0) Job terminated and was requeued
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
	0  -  Run Bytes Sent By Job
	0  -  Run Bytes Received By Job
	(1) Normal termination (return value 1)
...
`
	remoteError = `021 (012.000.000) 2026-11-26 14:01:24 Error from starter on <h>:
	Failed to execute
	twice
...
`
	executingXML = `<c>
    <a n="EventTypeNumber"><i>1</i></a>
    <a n="MyType"><s>ExecuteEvent</s></a>
    <a n="EventTime"><s>2026-11-26T14:01:24.567</s></a>
    <a n="Cluster"><i>12</i></a>
    <a n="Proc"><i>0</i></a>
    <a n="Subproc"><i>0</i></a>
    <a n="ExecuteHost"><s>&lt;h&gt;</s></a>
</c>
`
)

var moment = time.Date(2026, 11, 26, 14, 1, 24, 567e6, time.Local)

func me(f func() error) error { return f() }

func TestEvents(t *testing.T) {
	tests := map[string]struct {
		event Event
		want  string
	}{
		"execute":           {Execute{"<127.0.0.1:9701?sock=starter_1>"}, executing},
		"terminated":        {Terminated{Ending{ExitCode: 5}, CPU{25*time.Hour + time.Minute + time.Second, 2900 * time.Millisecond}}, terminated},
		"killed":            {Terminated{Ending: Ending{Signal: 9}}, killed},
		"evicted":           {Evicted{}, evicted},
		"requeued":          {Evicted{Requeued: &Ending{Signal: 15}, Reason: "a policy"}, requeued},
		"runs again":        {Evicted{Requeued: &Ending{ExitCode: 1}}, again},
		"an error":          {RemoteError{"<h>", "Failed to execute\ntwice\n"}, remoteError},
		"a forged end":      {Execute{"<h>\n...\n005 (012.000.000) "}, strings.Replace(executing, "<127.0.0.1:9701?sock=starter_1>", "<h> ... 005 (012.000.000) ", 1)},
		"a forged reason":   {Evicted{Requeued: &Ending{Signal: 15}, Reason: "a policy\n...\n005"}, strings.Replace(requeued, "a policy", "a policy ... 005", 1)},
		"an error in lines": {RemoteError{"<h>", "...\nx"}, "021 (012.000.000) 2026-11-26 14:01:24 Error from starter on <h>:\n\t...\n\tx\n...\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, DefaultFormat.format(ID{12, 0, 0}, tt.event, moment)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	utc := moment.UTC().Format("2006-01-02 15:04:05")
	tests := map[string]struct {
		options string
		from    Format
		want    string // what begins
	}{
		"default":           {"", DefaultFormat, "001 (012.000.000) 2026-11-26 14:01:24 Job"},
		"legacy":            {"LEGACY", DefaultFormat, "001 (012.000.000) 11/26 14:01:24 Job"},
		"not legacy":        {"!LEGACY", 0, "001 (012.000.000) 2026-11-26 14:01:24 Job"},
		"parts of a second": {"sub_second, iso_date", 0, "001 (012.000.000) 2026-11-26 14:01:24.567 Job"},
		"UTC":               {"UTC ISO_DATE", 0, "001 (012.000.000) " + utc + "Z Job"},
		"taken away":        {"!ISO_DATE", DefaultFormat, "001 (012.000.000) 11/26 14:01:24 Job"},
		"unknown":           {"COLOURS", DefaultFormat, "001 (012.000.000) 2026-11-26 14:01:24 Job"},
		"XML":               {"XML", DefaultFormat, executingXML},
		"JSON":              {"JSON", DefaultFormat, "{"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ParseFormat(tt.options, tt.from).format(ID{12, 0, 0}, Execute{"<h>"}, moment)
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s, want it to begin with %s", got, tt.want)
			}
		})
	}
}

// TestLog: each log gets its events, in its form; one that cannot be written keeps no other from being written.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	ad, err := classads.ParseOld("ClusterId = 12\nProcId = 0\nIwd = \"" + dir + "\"\nUserLog = \"new/log\"\nUserLogUseXML = true\nDAGManNodesLog = \"" + dir +
		"/nodes\"\nDAGManNodesMask = \"0,1,2,5\"\nJobAdInformationAttrs = \"Cmd, ExitCode, None\"\nCmd = \"/bin/true\"\nExitCode = 2 + 3\n")
	if err != nil {
		t.Fatal(err)
	}
	knobs := config.FromMap(map[string]string{"EVENT_LOG": filepath.Join(dir, "events"), "EVENT_LOG_FORMAT_OPTIONS": "UTC"})
	l, err := Open(Options{Job: ad, Knobs: knobs, User: me, Site: me, Now: func() time.Time { return moment }})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Event{Execute{"<h>"}, Evicted{}} {
		if err := l.Write(e, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Write(Terminated{Ending: Ending{ExitCode: 5}}, ad); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if got := read("new/log"); !strings.HasPrefix(got, executingXML+"<c>\n") || strings.Count(got, "<c>") != 4 ||
		!strings.Contains(got, `"TriggerEventTypeName"><s>ULOG_JOB_TERMINATED<`) || !strings.Contains(got, `"ExitCode"><i>5<`) || !strings.Contains(got, `"Cmd"><s>/bin/true<`) {
		t.Errorf("the user's log is\n%s", got)
	}
	// What only some logs want does not reach others; DAGMan's is never XML.
	if got := read("nodes"); strings.Count(got, "...\n") != 2 || strings.Contains(got, "evicted") || strings.Contains(got, "<c>") {
		t.Errorf("DAGMan's log is\n%s", got)
	}
	if got := read("events"); !strings.HasPrefix(got, "001 (012.000.000) "+moment.UTC().Format("01/02 15:04:05")+"Z Job executing") || strings.Count(got, "...\n") != 3 {
		t.Errorf("the event log is\n%s", got)
	}
}

// TestSiteLogs: what a site says of its jobs' logs and of its own.
func TestSiteLogs(t *testing.T) {
	dir := t.TempDir()
	ad, err := classads.ParseOld("ClusterId = 12\nProcId = 0\nIwd = \"" + dir + "\"\nUserLog = \"log\"\nCmd = \"/bin/true\"\n")
	if err != nil {
		t.Fatal(err)
	}
	knobs := map[string]string{
		"DEFAULT_USERLOG_FORMAT_OPTIONS": "ISO_DATE", "ENABLE_USERLOG_FSYNC": "true",
		"EVENT_LOG": filepath.Join(dir, "events"), "EVENT_LOG_USE_XML": "true", "EVENT_LOG_FSYNC": "true", "EVENT_LOG_JOB_AD_INFORMATION_ATTRS": "Cmd, None",
	}
	l, err := Open(Options{Job: ad, Knobs: config.FromMap(knobs), User: me, Site: me, Now: func() time.Time { return moment }})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Write(Execute{"<h>"}, ad); err != nil {
		t.Fatal(err)
	}
	// The site's log has such an event for each other, even if nobody has the job's ad; the job's own log has none.
	if err := l.Write(Execute{"<h>"}, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "events"))
	if n := strings.Count(string(text), "TriggerEventTypeNumber"); err != nil || n != 2 || strings.Count(string(text), "/bin/true") != 1 || strings.Count(string(text), "<s>JobAdInformationEvent<") != 2 {
		t.Errorf("%d events with attributes, want 2 of their own type, one of which has the job's: %v\n%s", n, err, text)
	}
	for _, f := range l.files {
		if !f.sync {
			t.Errorf("%s is not written through to the disk", f.path)
		}
	}
	for name, want := range map[string][]string{
		"log":    {"001 (012.000.000) " + moment.Format(time.DateOnly)},
		"events": {"<c>", `"Cmd"><s>/bin/true<`},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		for _, w := range want {
			if err != nil || !strings.Contains(string(text), w) {
				t.Errorf("%s lacks %q: %v\n%s", name, w, err, text)
			}
		}
	}
	delete(knobs, "EVENT_LOG_FSYNC")
	delete(knobs, "ENABLE_USERLOG_FSYNC")
	if l, err = Open(Options{Job: ad, Knobs: config.FromMap(knobs), User: me, Site: me}); err != nil {
		t.Fatal(err)
	}
	for _, f := range l.files {
		if f.sync {
			t.Errorf("%s is written through to the disk, and nobody asks for it", f.path)
		}
	}
}

func TestLogsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"below a file": dir + "/file/log", "a directory": dir, "a device": "/dev/zero"} {
		t.Run(name, func(t *testing.T) {
			ad := classads.NewAd()
			ad.SetString("UserLog", path)
			ad.SetString("DAGManNodesLog", filepath.Join(t.TempDir(), "nodes"))
			l, err := Open(Options{Job: ad, Knobs: config.FromMap(nil), User: me, Site: me})
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			if err := l.Write(Execute{"<h>"}, nil); err != nil {
				t.Errorf("the other log: %v", err)
			}
			if text, err := os.ReadFile(ad.StringOr("DAGManNodesLog", "")); err != nil || !strings.Contains(string(text), "executing") {
				t.Errorf("the other log: %q, %v", text, err)
			}
		})
	}
	// No log is no mistake.
	ad := classads.NewAd()
	ad.SetString("UserLog", os.DevNull)
	if l, err := Open(Options{Job: ad, Knobs: config.FromMap(nil), User: me, Site: me}); err != nil || l.Write(Execute{"<h>"}, ad) != nil {
		t.Errorf("got %v", err)
	}
}

// TestForgedInformation: attributes of a job make no events of their own in a log, least of all in the one of all jobs.
func TestForgedInformation(t *testing.T) {
	dir := t.TempDir()
	ad, err := classads.ParseOld("ClusterId = 12\nProcId = 0\nCmd = formatTime(0, \"a%n...%n005 (001.000.000) 01/01 00:00:00 Job terminated.\")\n")
	if err != nil {
		t.Fatal(err)
	}
	knobs := map[string]string{"EVENT_LOG": filepath.Join(dir, "events"), "EVENT_LOG_JOB_AD_INFORMATION_ATTRS": "Cmd"}
	l, err := Open(Options{Job: ad, Knobs: config.FromMap(knobs), User: me, Site: me})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Write(Evicted{Requeued: &Ending{}, Reason: "a\n...\n005 (001.000.000) "}, ad); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "events"))
	if got := string(text); err != nil || strings.Count(got, "\n...\n") != 2 || strings.Contains(got, "\n005") || !strings.Contains(got, `Cmd = "a ... 005 (`) {
		t.Errorf("%v, the event log is\n%s", err, got)
	}
}
