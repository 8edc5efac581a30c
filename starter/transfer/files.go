// Package transfer moves the job's files between its sandbox and the access point:
// input, output and checkpoints, with the site's and the job's plugins for URLs, the
// log of single transfers, and the tries after a connection broke.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sandbox/filetransfer"
	"podstarter/sandbox/jobfiles"
	"podstarter/starter/hostprog"
	"podstarter/starter/settings"
	"podstarter/starter/submitside"
)

// Shadow is the connection for calls to the shadow.
type Shadow interface {
	Broken() bool
	Disconnect(cause error)
}

// SubmitSide says where the shadow takes and gives files, and how long the job may go
// on without one.
type SubmitSide interface {
	Use(t submitside.Transfer, client *cedar.Client) error
	Lease() time.Duration
}

// Options are what [Files] work with.
type Options struct {
	Job, Machine *classads.Ad
	Info         job.Info
	Sandbox      *sandbox.Sandbox
	Programs     hostprog.Job
	Settings     settings.Settings
	Tokens       string // path of the job's tokens; empty if it has none
	Shadow       Shadow
	Side         SubmitSide
	Client       *cedar.Client // by which the shadow is called for files
	// Over is told that the shadow has to note the end of a transfer.
	Over func(attribute string)
	// Tell sends an update about what plugins did.
	Tell func(ctx context.Context, ad *classads.Ad)
	// Note writes a line into the job's event log.
	Note func(ctx context.Context, line string)
	Log  *slog.Logger
}

// Files are the files of one job. They are used by one goroutine at a time. A nil
// *Files is a job without file transfer.
type Files struct {
	Options
	transfer *filetransfer.Transfer
	when     jobfiles.When
	in, out  filetransfer.Result
	history  *history
	sent     bool    // the output has arrived
	spooled  *string // what went back to the spool; nil before anything did
	repeated int     // times that output was sent again over the same connection for calls
	forced   int     // times that this connection was broken to begin anew
}

// Open gets ready to transfer the job's files. The result is nil for a job without file
// transfer.
func Open(o Options) (*Files, error) {
	if !o.Info.FileTransfer {
		return nil, nil
	}
	f := &Files{Options: o}
	var err error
	if f.when, err = jobfiles.ParseWhen(o.Job); err != nil {
		return nil, err
	}
	knobs := o.Settings.Condor.Transfer
	var record func(*classads.Ad)
	if f.history = f.openHistory(); f.history != nil {
		record = f.history.add
	}
	f.transfer = filetransfer.New(filetransfer.Config{
		Sandbox: o.Sandbox, Job: o.Job, Plugins: f.openPlugins(), Record: record, SignURLs: knobs.SignURLs,
		InputTimeout: knobs.Timeout, OutputTimeout: knobs.Timeout, Stall: knobs.Stall,
		MaxOutput: o.Settings.MaxOutputFiles,
		Outside:   !o.Settings.InPod(),
		Log:       o.Log,
	})
	return f, o.Side.Use(f.transfer, o.Client)
}

// Sent is how many bytes of output have arrived at the access point.
func (f *Files) Sent() int64 {
	if f == nil {
		return 0
	}
	return f.out.Bytes
}

// Received is how many bytes of input have come in.
func (f *Files) Received() int64 {
	if f == nil {
		return 0
	}
	return f.in.Bytes
}

// Spooled names what went back to the job's spool; nil before anything did.
func (f *Files) Spooled() *string {
	if f == nil {
		return nil
	}
	return f.spooled
}

// Fetch is one try to bring the job's input in.
func (f *Files) Fetch(ctx context.Context) error {
	result, err := f.transfer.Download(ctx)
	if result.Met {
		f.Over(submitside.TransferringInput)
	}
	f.logEnd(err)
	f.writeHistory()
	f.in = *result
	f.tellPlugins(ctx, "Input", result.Plugins)
	return err
}

// VerifyCheckpoint compares a checkpoint that came with the input with its manifest. The
// error is a *filetransfer.CheckpointError if it is not what was saved.
func (f *Files) VerifyCheckpoint(ctx context.Context) error { return f.transfer.VerifyCheckpoint(ctx) }

// Output says which output is to be sent after an end; false for none, and when it has
// arrived.
func (f *Files) Output(e jobfiles.Ending) (jobfiles.Kind, bool) {
	if f == nil || f.sent {
		return 0, false
	}
	kind, wanted := jobfiles.Choose(f.Job, f.when, e)
	if !wanted {
		f.Log.Info("No output is transferred after this kind of end")
	}
	return kind, wanted
}

// logEnd says how a transfer ended; stock adds the exit status of its child, which is 0
// after a failure (file_transfer.cpp:FileTransfer::Reap).
func (f *Files) logEnd(err error) {
	if err != nil {
		f.Log.Warn("File transfer failed (status=0).")
		return
	}
	f.Log.Info("File transfer completed successfully.")
}

// Send sends what the job made. An error means that nothing of it counts, as in stock.
// What was left out without an error is noted in the job's event log.
func (f *Files) Send(ctx context.Context, u filetransfer.Upload) error {
	result, err := f.transfer.Upload(ctx, u)
	if result.Met {
		f.Over(submitside.TransferringOutput)
	}
	f.logEnd(err)
	f.writeHistory()
	which := "Output"
	if u.Kind == jobfiles.Checkpoint {
		which = "Checkpoint"
	}
	f.tellPlugins(ctx, which, result.Plugins)
	if err != nil {
		return err
	}
	if result.LeftOut != "" {
		f.Note(ctx, result.LeftOut)
	}
	f.out = *result
	if u.Kind == jobfiles.Checkpoint {
		return nil
	}
	f.sent = true
	if !result.Unnamed {
		spooled := strings.Join(result.Spooled, ",")
		f.spooled = &spooled
	}
	return nil
}

// Bounds of the tries to send the output when the connection for it breaks.
const (
	// sameShadow is how often the same shadow is asked again while its connection for
	// calls is well. Nothing else helps: a shadow that loses that one takes no more
	// files (remoteresource.cpp:disconnectClaimSock, initFileTransfer), unless another
	// shadow comes back.
	sameShadow = 1
	// forcedDisconnects is how often both sides begin anew after that
	// (jic_shadow.cpp:transferOutputFinish).
	forcedDisconnects = 4
)

// ReapTime is the time for the shadow to notice that its half of a transfer ended. It
// dies if the next one begins before that, even if it asked for that itself: it asks
// when its half reports the failure, a moment before that half ends
// (pseudo_ops.cpp:pseudo_request_guidance, file_transfer.cpp:Upload).
const ReapTime = 2 * time.Second

// Again decides what follows a transfer of output that broke: nil to try again at once,
// shadow.ErrLost to wait for the shadow, and err to give up.
func (f *Files) Again(ctx context.Context, err error) error {
	t := (*filetransfer.Error)(nil)
	if !errors.As(err, &t) || !t.TryAgain || f.Side.Lease() <= 0 {
		return err
	}
	switch {
	case !f.Shadow.Broken() && f.repeated < sameShadow && t.PeerDone():
		f.repeated++
		f.Log.Warn("The file transfer broke, it is tried again", "error", err)
		return submitside.Pause(ctx, ReapTime)
	case f.forced < forcedDisconnects:
		f.forced++
		f.Log.Warn("File transfer failed, forcing disconnect.", "error", err)
		f.Shadow.Disconnect(err)
		return fmt.Errorf("%w: %w", shadow.ErrLost, err)
	}
	return err
}

// tellPlugins tells the shadow what plugins did, for the history of the job's runs
// (jic_shadow.cpp:updateShadowWithPluginResults).
func (f *Files) tellPlugins(ctx context.Context, which string, results []*classads.Ad) {
	if len(results) == 0 {
		return
	}
	var list []*classads.Expr
	for _, ad := range results {
		e := classads.AdExpr(ad)
		// A line cannot have all that a report may, such as a string that ends in a backslash, and the shadow
		// would end for good at one that it cannot read.
		if _, _, err := classads.ParseOldLine(string(classads.AppendOldLine(nil, "Report", e))); err != nil {
			f.Log.Warn("The shadow is not sent a plugin's report, since no line of an ad can hold it; no string in it should end in a backslash", "error", err)
			continue
		}
		list = append(list, e)
	}
	ad := classads.NewAd()
	ad.SetList(which+"PluginResultList", list...)
	f.Tell(ctx, ad)
}
