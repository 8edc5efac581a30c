package filetransfer

import (
	"context"
	"time"

	"podstarter/classads"
)

// Plugins are the programs that move files from and to URLs. Another package finds and
// runs them.
type Plugins interface {
	// For returns the program that moves a URL, or why there is none. It returns the
	// same one, by ==, for all URLs that can be moved in one run.
	For(ctx context.Context, url string) (Plugin, *PluginFailure)
}

// Plugin is one such program.
type Plugin interface {
	// Path identifies a plugin; plugins run in the order of their paths.
	Path() string
	// Many reports whether one run may move many files. Otherwise Run takes one.
	Many() bool
	// Run moves files and waits for the end of the program. proxy is the path of the
	// job's X.509 proxy, empty if there is none. The error is ctx's cause, if that
	// ended first: the plugin and all that it started are then dead, too.
	Run(ctx context.Context, class PluginClass, files []URLFile, proxy string) (*PluginRun, error)
}

// PluginClass is the purpose for which files are moved; the numbers are HTCondor's
// (file_transfer.h: TransferClass).
type PluginClass int

const (
	PluginInput      PluginClass = 1
	PluginOutput     PluginClass = 2
	PluginCheckpoint PluginClass = 3
)

// URLFile is a file and the URL that it comes from or goes to.
type URLFile struct {
	URL  string
	Path string // absolute, as the starter's container has it
}

// PluginRun is the outcome of a run.
type PluginRun struct {
	// Reports are the plugin's reports of files, in its own order. There may be more or
	// fewer than there are files.
	Reports []PluginReport
	// Failure is nil for a success. The exit status decides, as in stock: a run may
	// succeed although it reports a file that failed.
	Failure *PluginFailure
	// Said is what the run adds to HTCondor's stack of errors, the newest first: with a
	// Failure its Text, but a success may add something, too.
	Said string
	// Unexplained: the run failed, and Said only states that nobody said why.
	Unexplained bool
	// Results are for the shadow: InputPluginResultList and so on.
	Results []*classads.Ad
	Began   time.Time
	Took    time.Duration
}

// PluginReport is a plugin's report of one file. It may contain anything.
type PluginReport struct {
	URL, FileName string // TransferUrl, TransferFileName; empty if missing
	Judged        bool   // TransferSuccess is there
	Success       bool   // and true
	Error         string // TransferError
	Protocol      string // in upper case, fit for the name of an attribute; empty: not counted
	Sized         bool   // TransferTotalBytes is there
	Bytes         int64
	Ad            *classads.Ad // the whole report, for logs
}

// PluginFailure says how a plugin failed, in HTCondor's terms. Its hold code is that
// of the direction.
type PluginFailure struct {
	Subcode  int
	TryAgain bool
	Text     string // without newlines
}
