package plugin

import (
	"context"
	"strings"
	"time"

	"podstarter/classads"
)

// one runs a plugin of protocol 1: source and destination are its arguments, and
// what it writes to its standard output is its report (InvokeFileTransferPlugin).
func (r *Runner) one(ctx context.Context, p *Plugin, class Class, file File, proxy string) (*Result, error) {
	res := &Result{Plugin: p, Status: Failed}
	from, to := file.URL, file.Path
	if class.upload() {
		from, to = to, from
	}
	end, err := r.execute(ctx, res, Program{
		Path: r.program(p), Args: []string{from, to}, Env: r.environment(p, proxy), Dir: r.Scratch,
		Limit: r.lifetime(), FromJob: p.FromJob,
	})
	if err != nil || res.Status == NotExecuted {
		return res, err
	}
	r.logOutput(p, res, end)
	text := end.Output
	if len(text) > maxReportText {
		text = text[:maxReportText]
	}
	ad, _ := ParseLines(text)
	ad.Delete("TransferClass")
	code := res.code
	if res.Status == TimedOut {
		code = subcodeTimedOut
	}
	ad.SetInt("PluginExitCode", int64(code))
	ad.SetBool("PluginExitBySignal", res.signal != 0 || res.Status == TimedOut)
	report := newReport(ad)
	report.URL = file.URL
	res.Reports = []Report{report}
	switch {
	case res.Status == Success:
		return res, nil
	case res.Status == TimedOut:
		res.errors.push("File transfer plugin %s timed out after %d seconds.", p.Path, int(r.lifetime()/time.Second))
	default:
		res.blame(p, ad, file)
	}
	res.fail()
	return res, nil
}

func (res *Result) blame(p *Plugin, ad *classads.Ad, file File) {
	said := ad.StringOr("TransferError", "")
	if said == "" {
		said = "File transfer plugin " + p.Path + " exited unexpectedly without producing an error message "
	}
	url := ad.StringOr("TransferUrl", "")
	if url == "" {
		url = file.URL // stock sets no URL, so the access point does not know the protocol
	}
	said = strings.TrimRight(said, "\x00")
	if res.signal != 0 {
		res.errors.push("exit by signal %d from %s. |Error: %s ( URL file = %s )|", res.signal, p.Path, said, Safe(url))
		return
	}
	res.errors.push("non-zero exit (%d) from %s. |Error: %s ( URL file = %s )|", res.code, p.Path, said, Safe(url))
}
