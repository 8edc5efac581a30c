package userlog

import (
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
)

// Number is the number of an event (condor_utils/condor_event.h: ULogEventNumber).
type Number int

// The events that a starter writes.
const (
	NumberExecute     Number = 1
	NumberEvicted     Number = 4
	NumberTerminated  Number = 5
	NumberSuspended   Number = 10
	NumberUnsuspended Number = 11
	NumberRemoteError Number = 21
	numberInformation Number = 28
)

// names are what a JobAdInformation event calls its trigger, and the types of ads.
var names = map[Number][2]string{
	NumberExecute:     {"ULOG_EXECUTE", "ExecuteEvent"},
	NumberEvicted:     {"ULOG_JOB_EVICTED", "JobEvictedEvent"},
	NumberTerminated:  {"ULOG_JOB_TERMINATED", "JobTerminatedEvent"},
	NumberSuspended:   {"ULOG_JOB_SUSPENDED", "JobSuspendedEvent"},
	NumberUnsuspended: {"ULOG_JOB_UNSUSPENDED", "JobUnsuspendedEvent"},
	NumberRemoteError: {"ULOG_REMOTE_ERROR", "RemoteErrorEvent"},
	numberInformation: {"ULOG_JOB_AD_INFORMATION", "JobAdInformationEvent"},
}

// Event is what the log tells.
type Event interface {
	number() Number
	// body is the text behind the header, which ends in a line feed.
	body() string
	// attributes are those of the event in an ad.
	attributes(ad *classads.Ad)
}

// Execute says that the job begins (ExecuteEvent).
type Execute struct{ Host string }

func (e Execute) number() Number { return NumberExecute }
func (e Execute) body() string   { return "Job executing on host: " + oneLine(e.Host) + "\n" }
func (e Execute) attributes(ad *classads.Ad) {
	ad.SetString("ExecuteHost", e.Host)
}

// Ending is how the job's process has ended.
type Ending struct {
	Signal   int // 0: it exited
	ExitCode int
}

func (e Ending) normal() bool { return e.Signal == 0 }

func (e Ending) attributes(ad *classads.Ad) {
	ad.SetBool("TerminatedNormally", e.normal())
	if e.normal() {
		ad.SetInt("ReturnValue", int64(e.ExitCode))
	} else {
		ad.SetInt("TerminatedBySignal", int64(e.Signal))
	}
}

// CPU is what the job has used.
type CPU struct{ User, System time.Duration }

// String is the text of a rusage (condor_event.cpp:formatRusage).
func (c CPU) String() string {
	return fmt.Sprintf("Usr %s, Sys %s", days(c.User), days(c.System))
}

func days(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	return fmt.Sprintf("%d %02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
}

// Terminated says that the job has ended for good (JobTerminatedEvent).
type Terminated struct {
	Ending
	Local CPU // a job of the local universe counts as one that ran here
}

func (e Terminated) number() Number { return NumberTerminated }

func (e Terminated) body() string {
	var b strings.Builder
	b.WriteString("Job terminated.\n")
	if e.normal() {
		fmt.Fprintf(&b, "\t(1) Normal termination (return value %d)\n", e.ExitCode)
	} else {
		fmt.Fprintf(&b, "\t(0) Abnormal termination (signal %d)\n\t(0) No core file\n", e.Signal)
	}
	for _, line := range []struct {
		cpu  CPU
		what string
	}{{CPU{}, "Run Remote"}, {e.Local, "Run Local"}, {CPU{}, "Total Remote"}, {CPU{}, "Total Local"}} {
		fmt.Fprintf(&b, "\t\t%s  -  %s Usage\n", line.cpu, line.what)
	}
	for _, what := range []string{"Run Bytes Sent", "Run Bytes Received", "Total Bytes Sent", "Total Bytes Received"} {
		fmt.Fprintf(&b, "\t0  -  %s By Job\n", what) // no file is transferred
	}
	return b.String()
}

func (e Terminated) attributes(ad *classads.Ad) {
	e.Ending.attributes(ad)
	ad.SetString("RunLocalUsage", e.Local.String())
	for _, name := range []string{"RunRemoteUsage", "TotalLocalUsage", "TotalRemoteUsage"} {
		ad.SetString(name, CPU{}.String())
	}
	for _, name := range []string{"SentBytes", "ReceivedBytes", "TotalSentBytes", "TotalReceivedBytes"} {
		ad.SetReal(name, 0)
	}
}

// Evicted says that the job was made to end, or ended and is to run again (JobEvictedEvent).
type Evicted struct {
	Requeued *Ending // how it ended, if it runs again
	Reason   string  // why it runs again; may be empty
	Local    CPU
}

func (e Evicted) number() Number { return NumberEvicted }

func (e Evicted) body() string {
	var b strings.Builder
	b.WriteString("Job was evicted.\n")
	if e.Requeued != nil {
		b.WriteString("\t(0) Job terminated and was requeued\n")
	} else {
		b.WriteString("\t(0) CPU times\n")
	}
	fmt.Fprintf(&b, "\t\t%s  -  Run Remote Usage\n\t\t%s  -  Run Local Usage\n", CPU{}, e.Local)
	b.WriteString("\t0  -  Run Bytes Sent By Job\n\t0  -  Run Bytes Received By Job\n")
	if r := e.Requeued; r != nil {
		if r.normal() {
			fmt.Fprintf(&b, "\t(1) Normal termination (return value %d)\n", r.ExitCode)
		} else {
			fmt.Fprintf(&b, "\t(0) Abnormal termination (signal %d)\n\t(0) No core file\n", r.Signal)
		}
		if e.Reason != "" {
			fmt.Fprintf(&b, "\t%s\n", oneLine(e.Reason))
		}
	}
	return b.String()
}

func (e Evicted) attributes(ad *classads.Ad) {
	ad.SetBool("Checkpointed", false)
	ad.SetString("RunLocalUsage", e.Local.String())
	ad.SetString("RunRemoteUsage", CPU{}.String())
	ad.SetReal("SentBytes", 0)
	ad.SetReal("ReceivedBytes", 0)
	ad.SetBool("TerminatedAndRequeued", e.Requeued != nil)
	ad.SetBool("TerminatedNormally", false)
	if e.Requeued != nil {
		e.Requeued.attributes(ad)
		if e.Reason != "" {
			ad.SetString("Reason", e.Reason)
		}
	}
}

// Suspended says that the job's processes were stopped (JobSuspendedEvent).
type Suspended struct{ Processes int }

func (e Suspended) number() Number { return NumberSuspended }
func (e Suspended) body() string {
	return fmt.Sprintf("Job was suspended.\n\tNumber of processes actually suspended: %d\n", e.Processes)
}
func (e Suspended) attributes(ad *classads.Ad) { ad.SetInt("NumberOfPIDs", int64(e.Processes)) }

// Unsuspended says that they go on (JobUnsuspendedEvent).
type Unsuspended struct{}

func (e Unsuspended) number() Number          { return NumberUnsuspended }
func (e Unsuspended) body() string            { return "Job was unsuspended.\n" }
func (e Unsuspended) attributes(*classads.Ad) {}

// RemoteError says why the job cannot go on (RemoteErrorEvent).
type RemoteError struct{ Host, Message string }

func (e RemoteError) number() Number { return NumberRemoteError }

func (e RemoteError) body() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Error from starter on %s:\n", oneLine(e.Host))
	for line := range strings.SplitSeq(strings.TrimRight(e.Message, "\n"), "\n") {
		b.WriteString("\t" + line + "\n")
	}
	return b.String()
}

func (e RemoteError) attributes(ad *classads.Ad) {
	ad.SetString("Daemon", "starter")
	ad.SetString("ExecuteHost", e.Host)
	ad.SetString("ErrorMsg", e.Message)
}

// information tells attributes of the job beside another event (JobAdInformationEvent).
type information struct{ ad *classads.Ad }

func (e information) number() Number { return numberInformation }

func (e information) body() string {
	// A string of a job may have line feeds, which this syntax cannot hide.
	ad := e.ad.Clone()
	for name, expr := range e.ad.All() {
		v, _ := expr.Literal()
		if text, is := v.Str(); is {
			ad.SetString(name, oneLine(text))
		}
	}
	return "Job ad information event triggered.\n" + ad.FormatSorted()
}

// attributes leaves what the event has of its own, such as its type (JobAdInformationEvent::toClassAd).
func (e information) attributes(ad *classads.Ad) {
	for name, expr := range e.ad.All() {
		if !ad.Has(name) {
			ad.Insert(name, expr)
		}
	}
}

// oneLine keeps text from beginning a line of its own, which readers could take for another event.
func oneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}
