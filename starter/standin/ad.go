package standin

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// Attributes that only a shadow can mean: with them the activation would look for one, or for what only a shadow can bring.
var shadows = []string{"ShadowIpAddr", "MyAddress", "ShadowVersion", "TransferSocket", "TransferKey", "RemoteIwd"}

// Attributes by which a job reaches its shadow, or its files go there.
var byShadow = []string{"WantIOProxy", "WantRemoteUpdates", "StreamIn", "StreamOut", "StreamErr"}

// wishes are what the stock starter does for such a job, and this one does not.
var wishes = []struct{ attribute, what string }{
	{"OAuthServicesNeeded", "brings no OAuth tokens to it"},
	{"SendCredential", "brings no Kerberos credential to it"},
	{"x509userproxy", "brings no X.509 proxy to it; name the proxy in the job's environment"},
}

// readAd reads the job's ad and writes into it what the stock starter takes for granted (jic_local.cpp:initJobInfo, initJobId).
func readAd(from io.Reader, set settings.Settings, log *slog.Logger) (*classads.Ad, error) {
	ad, err := job.ReadLines(from, log)
	if err != nil {
		return nil, err
	}
	ad = ad.Public()
	ad.Use(set.Language)
	if err := complete(ad, set.Config); err != nil {
		return nil, err
	}
	if _, err := ad.GetString("Cmd"); err != nil {
		return nil, fmt.Errorf("the job's ad: %w; the FETCH_WORK hook has to give a program", err)
	}
	// jic_local.cpp:checkUniverse
	switch u := job.Universe(ad.IntOr("JobUniverse", int64(job.Vanilla))); u {
	case job.Vanilla, job.Local, job.Java:
		ad.SetInt("JobUniverse", int64(u))
	default:
		return nil, fmt.Errorf("JobUniverse is %d, and without a shadow only jobs of the universes vanilla (%d), java (%d) and local (%d) can be run", int(u), job.Vanilla, job.Java, job.Local)
	}
	for _, w := range wishes {
		if ad.StringOr(w.attribute, "") != "" || ad.BoolOr(w.attribute, false) {
			return nil, fmt.Errorf("the job has the attribute %s, and this starter %s", w.attribute, w.what)
		}
	}
	if ad.StringOr("StarterUserLog", "") != "" && set.InPod() {
		return nil, errors.New("the job has the attribute StarterUserLog, and in a pod this starter writes no event log; leave it out")
	}
	for name, value := range map[string]int64{"ClusterId": 1, "ProcId": 0} {
		if _, err := ad.GetInt(name); err != nil {
			ad.SetInt(name, value)
		}
	}
	if n, _ := ad.GetInt("ProcId"); n < 0 { // what stands for common files has such a number
		return nil, fmt.Errorf("ProcId is %d, and the process of a job has a number that is at least 0; leave it out", n)
	}
	// The stock starter works in the sandbox, so that is where a relative path begins (starter.cpp:createTempExecuteDir).
	if iwd := ad.StringOr("Iwd", ""); !filepath.IsAbs(iwd) {
		ad.SetString("Iwd", filepath.Join((&payloadrun.Job{Settings: set}).ScratchPath(), iwd))
	}
	ad.SetString("ShouldTransferFiles", "NO")
	ad.SetBool("WantDelayedUpdates", false) // true if it is not there
	for _, name := range shadows {
		ad.Delete(name)
	}
	for _, name := range byShadow {
		if ad.Has(name) {
			ad.SetBool(name, false)
		}
	}
	return ad, nil
}
