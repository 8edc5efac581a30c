package activation

import (
	"context"

	"podstarter/classads"
	"podstarter/starter/submitside"
)

// finalUpdate sends the startd its last update, once: from then on the startd
// regards the slot as being cleaned up.
func (a *activation) finalUpdate(ctx context.Context) *classads.Ad {
	a.creds.Stop()
	ad := classads.NewAd()
	if a.job.Sandbox != nil {
		ad = a.account.full(ctx, "")
	}
	ad.SetInt("BytesSent", a.files.Sent())
	ad.SetInt("BytesRecvd", a.files.Received())
	a.peers.reports.Final(ctx, ad)
	return ad
}

// guide asks the shadow what to do next.
func (a *activation) guide() submitside.Guide {
	return submitside.Guide{Shadow: a.peers.shadow, Diagnose: a.sitePrograms().Diagnose, Silent: a.opt.Settings.Condor.Silent, Log: a.log}
}
