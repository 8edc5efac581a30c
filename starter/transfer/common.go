package transfer

import (
	"context"

	"podstarter/classads"
	"podstarter/sandbox/filetransfer"
)

// Common brings common input files in, from a socket of the shadow's that is for them only.
// Plugins are the site's: what a job brings is no common file.
func Common(ctx context.Context, o Options, into filetransfer.Sandbox, from Peer) error {
	o.Job = o.Job.Clone()
	o.Job.Delete("TransferPlugins")
	f := &Files{Options: o}
	knobs := o.Settings.Condor.Transfer
	var record func(*classads.Ad)
	if f.history = f.openHistory(); f.history != nil {
		record = f.history.add
	}
	// Of the job only this: it has neither a program nor output there.
	ad := classads.NewAd()
	ad.SetString("TransferOutput", "")
	f.transfer = filetransfer.New(filetransfer.Config{
		Sandbox: into, Job: ad, Plugins: f.openPlugins(), Record: record, Dial: from.Dial, Key: from.Key,
		InputTimeout: knobs.Timeout, OutputTimeout: knobs.Timeout, Stall: knobs.Stall, Log: o.Log,
	})
	result, err := f.transfer.Download(ctx)
	f.logEnd(err)
	f.writeHistory()
	f.tellPlugins(ctx, "Common", result.Plugins)
	return err
}

// Peer is where the shadow sends files from.
type Peer struct {
	Dial filetransfer.Dial
	Key  string
}
