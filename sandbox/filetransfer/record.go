package filetransfer

import (
	"time"

	"podstarter/classads"
)

// recordItem records what arrived over CEDAR (LogThisTransferStats).
func (d *download) recordItem(target string, began time.Time, bytes int64) {
	if d.Record == nil {
		return
	}
	now := time.Now()
	ad := classads.NewAd()
	ad.SetReal("ConnectionTimeSeconds", now.Sub(began).Seconds())
	ad.SetReal("TransferEndTime", seconds(now))
	ad.SetInt("TransferFileBytes", bytes)
	ad.SetString("TransferFileName", d.shown(target))
	ad.SetString("TransferProtocol", "cedar")
	ad.SetReal("TransferStartTime", seconds(began))
	ad.SetBool("TransferSuccess", d.failed == nil)
	ad.SetInt("TransferTotalBytes", bytes)
	ad.SetString("TransferType", "download")
	d.Record(ad)
}

// recordRun records what a plugin reported.
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

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
