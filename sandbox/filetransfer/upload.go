package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/manifest"
)

// Upload says what to return to the access point.
type Upload struct {
	Kind    jobfiles.Kind
	Number  int64    // of a checkpoint
	Added   []string // names that joined the output while the job ran
	Removed []string // names that left it, and those never to be sent (.chirp.config if it was written)
}

// Upload returns files to the access point. A file that cannot be sent does not stop
// the others; the error names the first that failed. What cannot be listed or followed,
// and was not named by the job, is no error: it is in the result's LeftOut. If a failed
// job has none of the wanted files, there is no connection and no error.
//
// It returns when the shadow has closed its side. The result is never nil, the
// error is an *Error.
func (t *Transfer) Upload(ctx context.Context, u Upload) (*Result, error) {
	t.busy.Lock()
	defer t.busy.Unlock()
	began := time.Now()
	t.mu.Lock()
	job, before := jobfiles.Read(t.config.Job), t.before
	t.mu.Unlock()
	if err := refusal(&job, u.Kind); err != nil {
		return (&stats{}).result(began), err
	}
	pick := jobfiles.Select(&job, jobfiles.Wanted{Kind: u.Kind, Added: u.Added, Removed: u.Removed}, before)
	if u.Kind == jobfiles.Failure && len(pick.Names) == 0 {
		return (&stats{}).result(began), nil
	}
	x, err := t.begin(ctx, cedar.FileTransDownload)
	if err != nil {
		return x.stats.result(began), err
	}
	undo := x.s.Cancel(ctx)
	defer undo()
	up := &upload{session: x, kind: u.Kind, limit: -1}
	up.plan = jobfiles.Plan{
		Log: x.Log, Job: &x.job, Pick: pick, Max: x.MaxOutput,
		Excluded: jobfiles.Excluded(&x.job, u.Removed),
	}
	up.chooseDestination(u.Number)
	var done func()
	if up.plan.View, done, err = x.view(); err == nil {
		err = x.Sandbox.Payload().Do(up.run)
		done()
	}
	x.finish(err)
	result := x.stats.result(began)
	if err != nil {
		return result, x.verdict(err)
	}
	result.Spooled, result.Unnamed = x.stats.spooled, up.unnamed
	result.LeftOut = leftOutText(u.Kind, up.plan.LeftOut())
	return result, nil
}

// upload is the sending side of a transfer (DoUpload). Its methods act as the
// identity of the calling thread.
type upload struct {
	*session
	kind         jobfiles.Kind
	plan         jobfiles.Plan
	limit        int64           // bytes that may be sent altogether, -1 for any number
	failures     int             // items that failed on this side
	noted        int             // errors
	failed       *Error          // the first
	named        map[string]bool // what is in stats.spooled
	spooledBytes int             // of those names
	unnamed      bool            // those names are too many, or cannot be listed
	fetches      bool            // the peer has URLs to fetch: its answer may take long

	batch        batch              // to be stored by a plugin
	signed       map[string]string  // URLs with signatures of the shadow
	unsignedFrom int                // the first item of the plan whose signature has not been requested yet
	unsigned     bool               // the shadow refused to sign any
	manifest     *manifest.Manifest // of a checkpoint that goes to URLs
	listing      string             // its name
}

// fail records the error of an item.
func (u *upload) fail(e *Error) {
	u.failures++
	u.note(e)
}

// note records an error; the first one is reported.
func (u *upload) note(e *Error) {
	if u.noted++; u.noted <= maxTold {
		u.Log.Warn("an output file failed, sending the others", "code", e.Code, "subcode", e.Subcode, "reason", e.Text)
	}
	if u.failed == nil {
		u.failed = e
	}
}

func (u *upload) run() error {
	err := u.plan.Make(u.ctx)
	if errors.Is(err, jobfiles.ErrTooMany) {
		u.fail(&Error{Code: CodeUpload, Subcode: int(errno(err)), Err: err, Text: "|Error: " + err.Error()})
		// Return standard output and error all the same.
		u.plan.Pick = jobfiles.Selection{Names: u.job.WithStdio(nil)}
		err = u.plan.Make(u.ctx)
	}
	if err != nil {
		return u.unlisted(err)
	}
	info := classads.NewAd()
	info.SetInt("SandboxSize", u.plan.Bytes())
	if u.kind.Final() {
		u.s.PutInt(1)
	} else {
		u.s.PutInt(0)
	}
	u.s.PutAd(info)
	if err := u.s.EndMessage(); err != nil {
		return u.lost(err)
	}
	if err := u.everything(); err != nil {
		return u.lost(err)
	}
	u.s.PutInt(cmdFinished)
	if err := u.s.EndMessage(); err != nil {
		return u.lost(err)
	}
	own := u.ownVerdict()
	if err := u.putAck(own); err != nil {
		return u.lost(err)
	}
	if u.fetches {
		// The shadow runs plugins before it answers, each for up to
		// MAX_FILE_TRANSFER_PLUGIN_LIFETIME.
		u.s.SetTimeout(mostAlive)
	}
	return u.settle(own, u.getAck())
}

// unlisted is the error of a sandbox whose files cannot be listed. A job that closed
// its own directories will do so again, so do not retry then.
func (u *upload) unlisted(err error) *Error {
	e := broken(u.code, "STARTER cannot list the files to send", err)
	e.TryAgain = !errors.Is(err, fs.ErrPermission) && !errors.Is(err, jobfiles.ErrTooMany)
	return e
}

// ownVerdict sums up what went wrong on this side. The shadow looks for
// "|Error: " at the front of what it shows to users.
func (u *upload) ownVerdict() *Error {
	if u.failed == nil {
		return nil
	}
	v := *u.failed
	if u.failures > 0 {
		v.Text = fmt.Sprintf("|Error: %d total failures: first failure: %s", u.failures, strings.TrimPrefix(v.Text, "|Error: "))
	}
	v.Text = fmt.Sprintf("STARTER at %s failed to send file(s) to %s: %s", u.local(), u.peer(), v.Text)
	return &v
}

// settle makes one verdict of both sides' (ExitDoUpload).
func (u *upload) settle(own, peer *Error) error {
	switch {
	case own == nil && peer == nil:
		return nil
	case own == nil:
		if peer.Code == 0 {
			peer.Code = u.code
		}
		peer.Text = fmt.Sprintf("STARTER at %s failed to send file(s) to %s; %s", u.local(), u.peer(), peer.Text)
		return peer
	case peer == nil || peer.Err != nil: // the peer reported nothing itself
		return own
	}
	own.Text += "; " + peer.Text
	return own
}

// lost makes the error of a transfer whose stream is unusable. The peer may still have
// sent the reason.
func (u *upload) lost(err error) error {
	v := &Error{}
	if errors.As(err, &v) {
		return v
	}
	v = broken(u.code, fmt.Sprintf("STARTER at %s failed to send file(s) to %s", u.local(), u.peer()), err)
	if context.Cause(u.ctx) == nil && u.s.Err() != nil {
		u.s.SetTimeout(lingerTime)
		u.s.SetCoalesce(false) // or reading would try to send first
		if peer := u.getAck(); peer != nil && peer.Err == nil {
			v.Code, v.Subcode, v.TryAgain = peer.Code, peer.Subcode, peer.TryAgain
			v.Text += "; " + peer.Text
			if v.Code == 0 {
				v.Code = u.code
			}
		}
	}
	return v
}
