package plugin

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"podstarter/classads"
)

// Subcodes of a failed transfer that are neither an exit status nor a signal. Negative
// ones send the job back to the queue (src/condor_utils/condor_holdcodes.h).
const (
	SubcodeNotFound     = -1001 // no plugin has the method
	SubcodeNotAllowed   = -1002 // the plugin must not be used
	SubcodeNotExecuted  = -1003
	SubcodeNothingSaid  = -1004                // no report of input
	subcodeUnreported   = int(syscall.ENODATA) // no report of output, by a plugin that exits with 0
	subcodeTimedOut     = 62                   // ETIME
	leastVacatingResult = -1000
)

// Failure says how a transfer by a plugin failed, in HTCondor's terms. The direction
// decides the hold code.
type Failure struct {
	Subcode  int
	TryAgain bool
	Text     string // entries as HTCondor's error stack has them, the newest first
}

func (f *Failure) Error() string { return f.Text }

// stack is HTCondor's stack of errors (condor_utils/condor_error.cpp). It is bounded,
// to keep the hold reason readable.
type stack struct {
	entries []string
	dropped int
}

const maxEntries = 20

func (s *stack) push(format string, args ...any) {
	if len(s.entries) == maxEntries {
		s.entries = s.entries[1:]
		s.dropped++
	}
	s.entries = append(s.entries, "FILETRANSFER:1:"+fmt.Sprintf(format, args...))
}

func (s *stack) empty() bool { return len(s.entries) == 0 }

// text is CondorError::getFullText.
func (s *stack) text() string {
	var b strings.Builder
	for i := len(s.entries) - 1; i >= 0; i-- {
		if b.Len() > 0 {
			b.WriteByte('|')
		}
		b.WriteString(s.entries[i])
	}
	return b.String()
}

// Report is what a plugin reported about one file.
type Report struct {
	// Ad is all of it with PluginExitCode or PluginExitSignal; bounded, otherwise as
	// the plugin wrote it.
	Ad *classads.Ad

	URL      string // TransferUrl, "" if it is missing
	FileName string // TransferFileName, "" if it is missing
	Success  bool   // TransferSuccess
	Judged   bool   // TransferSuccess is there
	Error    string // TransferError
	Protocol string // TransferProtocol in upper case; "" is not counted
	Bytes    int64  // TransferTotalBytes, never below 0
	Sized    bool   // TransferTotalBytes is there
}

func newReport(ad *classads.Ad) Report {
	r := Report{Ad: ad}
	r.URL = ad.StringOr("TransferUrl", "")
	r.FileName = ad.StringOr("TransferFileName", "")
	success, err := ad.GetBool("TransferSuccess")
	r.Success, r.Judged = success && err == nil, err == nil
	r.Error = ad.StringOr("TransferError", "")
	if protocol := ad.StringOr("TransferProtocol", ""); protocol != "cedar" && attributePart(protocol) {
		r.Protocol = upper(protocol)
	}
	n, err := ad.GetInt("TransferTotalBytes")
	if r.Sized = err == nil; r.Sized {
		r.Bytes = min(max(n, 0), 1<<60)
	}
	return r
}

// attributePart reports whether a protocol can begin the name of the attribute in
// which it is counted.
func attributePart(s string) bool {
	const most = 64
	if s == "" || len(s) > most || !letter(s[0]) {
		return false
	}
	for _, c := range []byte(s) {
		if !letter(c) && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// Result is the result of one run of a plugin.
type Result struct {
	Plugin  *Plugin
	Status  Status
	Reports []Report // as the plugin wrote them, in its order; there may be fewer or more than files
	Took    time.Duration

	// Failure is nil if the run counts as a success: the exit status decides, not the
	// reports about the files.
	Failure *Failure
	// Unexplained: the plugin failed, and neither it nor its reports said why.
	Unexplained bool

	// Ads are for InputPluginResultList and the like: the invocation's ad, and the
	// filtered reports.
	Ads []*classads.Ad

	unsaid bool // output was not reported
	code   int  // exit status or its substitute
	signal int  // 0: it exited, or took too long
	late   int  // the signal that ended it after the time limit
	errors stack
}

// Executed reports whether the plugin ran at all.
func (r *Result) Executed() bool { return r.Status != NotExecuted && r.Took > 0 }

// Said returns what the run adds to HTCondor's stack of errors, the newest first, "" for
// nothing. A success adds reports of failures.
func (r *Result) Said() string { return r.errors.text() }

// fail builds the failure of a run from how it ended (file_transfer.cpp:DoDownload).
func (r *Result) fail() {
	f := &Failure{Text: r.errors.text()}
	switch {
	case r.Status == TimedOut:
		f.Subcode = subcodeTimedOut
	case r.Status == NotExecuted:
		f.Subcode, f.TryAgain = SubcodeNotExecuted, true
	case r.signal != 0:
		f.Subcode = r.signal
	case r.code > 0:
		f.Subcode = r.code << 8
	case r.unsaid:
		f.Subcode = subcodeUnreported
	case r.code <= leastVacatingResult:
		f.Subcode = r.code
	}
	r.Failure = f
}

// invocation returns the ad of the run itself.
func (r *Result) invocation(class Class, schemes []string) *classads.Ad {
	ad := classads.NewAd()
	ad.SetInt("TransferClass", int64(class))
	ad.SetString("PluginBasename", r.Plugin.Base())
	ad.SetString("Schemes", strings.Join(schemes, ","))
	ad.SetInt("Result", int64(r.Status))
	ad.SetInt("DurationInSeconds", int64(r.Took/time.Second))
	// After the time limit stock sends a number that it never set.
	signal := max(r.signal, r.late)
	ad.SetBool("ExitBySignal", signal != 0)
	if signal != 0 {
		ad.SetInt("ExitSignal", int64(signal))
	} else {
		ad.SetInt("ExitCode", int64(r.code))
	}
	return ad
}
