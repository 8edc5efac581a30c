package activation

import (
	"context"

	"podstarter/classads"
	"podstarter/starter/submitside"
)

// finalUpdate is the last the startd hears: from then on it takes the slot for
// being cleaned up. It happens once.
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
