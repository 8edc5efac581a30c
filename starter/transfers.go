package main

import (
	"context"
	"strings"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox/filetransfer"
	"podstarter/sandbox/jobfiles"
	"podstarter/starter/settings"
	"podstarter/starter/submitside"
)

// transfers is the traffic of files between the sandbox and the access point.
type transfers struct {
	transfer *filetransfer.Transfer // nil for a job without file transfer
	when     jobfiles.When
	in, out  filetransfer.Result
	arrived  bool // the output has
	history  *transferHistory
	repeated int // times that it was sent again over the same connection for calls
	forced   int // times that this connection was broken to begin anew
}

func (t *transfers) sent() int64     { return t.out.Bytes }
func (t *transfers) received() int64 { return t.in.Bytes }

// openTransfers gets ready to transfer files, if the job has them transferred.
func (a *activation) openTransfers() error {
	if !a.info.FileTransfer {
		return nil
	}
	var err error
	if a.files.when, err = jobfiles.ParseWhen(a.ad); err != nil {
		return err
	}
	knobs := a.set.Condor.Transfer
	var record func(*classads.Ad)
	if a.files.history = a.openTransferHistory(); a.files.history != nil {
		record = a.files.history.add
	}
	a.files.transfer = filetransfer.New(filetransfer.Config{
		Sandbox: a.sandbox, Job: a.ad, Plugins: a.openPlugins(), Record: record, SignURLs: knobs.SignURLs,
		InputTimeout: knobs.Timeout, OutputTimeout: knobs.Timeout, Stall: knobs.Stall,
		MaxOutput: a.set.MaxOutputFiles,
		Outside:   a.set.Backend == settings.BackendLocal,
		Log:       a.log,
	})
	return a.submit.Use(a.files.transfer, &cedar.Client{Version: a.version(), Own: a.address, Name: "STARTER " + a.address, Timeout: knobs.Timeout})
}

// fetchInput is one try to bring the job's input in.
func (a *activation) fetchInput(ctx context.Context) error {
	result, err := a.files.transfer.Download(ctx)
	if result.Met {
		a.half.Over(submitside.TransferringInput)
	}
	a.writeHistory()
	a.files.in = *result
	a.tellPluginResults(ctx, "Input", result.Plugins)
	return err
}

// writeHistory writes what a transfer has recorded.
func (a *activation) writeHistory() {
	a.files.history.flush()
	if h := a.files.history; h != nil && h.err != nil {
		a.log.Warn("The log of transfers is not complete", "error", h.err)
		h.err = nil
	}
}

// sendOutput is the transfer of what the job made.
func (a *activation) sendOutput(ctx context.Context, kind jobfiles.Kind) error {
	if kind != jobfiles.Checkpoint {
		a.closeJobLog()
	}
	result, err := a.files.transfer.Upload(ctx, filetransfer.Upload{Kind: kind, Number: a.checkpoint, Added: a.addedOutput(), Removed: a.chirp.hidden()})
	if result.Met {
		a.half.Over(submitside.TransferringOutput)
	}
	a.writeHistory()
	which := "Output"
	if kind == jobfiles.Checkpoint {
		which = "Checkpoint"
	}
	a.tellPluginResults(ctx, which, result.Plugins)
	if err != nil {
		return err // what of it got through counts for nothing, as in stock
	}
	a.files.out = *result
	if kind == jobfiles.Checkpoint {
		return nil
	}
	a.files.arrived = true
	if !result.Unnamed {
		spooled := strings.Join(result.Spooled, ",")
		a.spooled = &spooled
	}
	return nil
}
