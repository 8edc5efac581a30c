package filetransfer

import (
	"time"

	"podstarter/classads"
	"podstarter/sandbox/jobfiles"
)

// recordItem records an item that has arrived, or could not: by the name that the peer
// gave it, and in whole seconds (DoDownload; FileTransferStats::Publish). reports are of
// a plugin that took this file alone: what it says replaces what is known without it.
func (d *download) recordItem(name string, began time.Time, bytes int64, reports []PluginReport) {
	if d.Record == nil {
		return
	}
	switch {
	case !jobfiles.LegalName(name):
		name = "/dev/null" // where the contents went
	case name == historicExec && d.job.Executable != "":
		name = d.job.Executable
	}
	from, to := began.Unix(), time.Now().Unix()
	ad := classads.NewAd()
	ad.SetReal("ConnectionTimeSeconds", float64(to-from))
	ad.SetInt("TransferEndTime", to)
	ad.SetInt("TransferFileBytes", bytes)
	ad.SetString("TransferFileName", name)
	ad.SetString("TransferProtocol", "cedar")
	ad.SetInt("TransferStartTime", from)
	ad.SetBool("TransferSuccess", d.failed == nil)
	ad.SetInt("TransferTotalBytes", bytes)
	ad.SetString("TransferType", "download")
	for _, r := range reports {
		if r.Ad != nil {
			ad.Update(r.Ad)
		}
	}
	d.Record(ad)
}

// recordUnfetched records URLs that are not fetched because one before them failed.
func (d *download) recordUnfetched(urls []urlItem) {
	for _, u := range urls {
		d.recordItem(u.name, time.Now(), 0, nil)
	}
}

// recordRun records what a plugin reported of a list.
func (x *session) recordRun(run *PluginRun) {
	if x.Record == nil {
		return
	}
	for _, r := range run.Reports {
		if r.Ad != nil {
			x.Record(r.Ad)
		}
	}
}
