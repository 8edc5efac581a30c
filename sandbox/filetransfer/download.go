package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"podstarter/internal/cedar"
	"podstarter/sandbox/jobfiles"
)

// Items of a transfer (file_transfer.cpp: TransferCommand).
const (
	cmdFinished    = 0
	cmdFile        = 1
	cmdEncrypted   = 2 // a file, encryption on
	cmdUnencrypted = 3 // a file, encryption off if the session allows it
	cmdProxy       = 4 // an X.509 proxy by delegation
	cmdURL         = 5 // a URL for the receiver to fetch
	cmdMkdir       = 6
	cmdOther       = 999 // an ad that says what; see the sub constants
)

// historicExec is what old shadows call the executable.
const historicExec = "condor_exec.exe"

// Download fetches the job's input. If the job names no output, it then records the
// state of the sandbox, to find out later what the job changed.
//
// It returns when the shadow has closed its side. The result is never nil, the
// error is an *Error.
func (t *Transfer) Download(ctx context.Context) (*Result, error) {
	t.busy.Lock()
	defer t.busy.Unlock()
	began := time.Now()
	x, err := t.begin(ctx, cedar.FileTransUpload)
	defer x.calm()
	if err != nil {
		return x.stats.result(began), err
	}
	ctx = x.ctx
	undo := x.s.Cancel(ctx)
	defer undo()
	d := &download{session: x, remap: jobfiles.ParseRemaps(x.job.InputRemaps)}
	var seen jobfiles.Catalog
	err = x.Sandbox.Payload().Do(func() error {
		if err := d.run(); err != nil {
			return err
		}
		if x.job.Executable != "" {
			// Whatever mode it has: it may come from a spooled sandbox.
			err := x.Sandbox.Root().Chmod(x.job.Executable, 0o755)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				x.Log.Warn("the job's program cannot be made executable", "error", err)
			}
		}
		if x.job.HasOutput {
			return nil
		}
		var err error
		if seen, err = jobfiles.TakeCatalog(ctx, x.Sandbox.Root()); err != nil {
			return broken(x.code, "STARTER cannot look at the files that the job begins with", err)
		}
		return nil
	})
	x.finish(err)
	result := x.stats.result(began)
	if err != nil {
		return result, x.verdict(err)
	}
	t.mu.Lock()
	t.before = seen
	t.mu.Unlock()
	return result, nil
}

// verdict turns whatever ended a transfer into an Error.
func (x *session) verdict(err error) *Error {
	var v *Error
	if !errors.As(err, &v) {
		v = broken(x.code, "STARTER cannot transfer files", err)
	}
	if x.ctx.Err() != nil {
		v.TryAgain, v.Err = true, context.Cause(x.ctx)
	}
	v.Text = oneLine(v.Text)
	x.Log.Warn(x.way()+": "+v.Text, "code", v.Code, "subcode", v.Subcode, "try_again", v.TryAgain)
	return v
}

// way is what stock's log calls a transfer in this direction, as its functions are named.
func (x *session) way() string {
	if x.code == CodeUpload {
		return "DoUpload"
	}
	return "DoDownload"
}

// download is the receiving side of a transfer (DoDownload). Its methods act
// as the identity of the calling thread.
type download struct {
	*session
	remap    jobfiles.Remaps
	urls     []urlItem
	urlBytes int
	failures int
	failed   *Error // the first error; later ones do not matter
	proxy    string // where the delegated proxy is

	contents  int64 // bytes of the present item's contents
	unwritten bool  // a file could not be written; stock then looks for no plugin any more
}

// fail records the first error of an item.
func (d *download) fail(e *Error) {
	if d.failures++; d.failures <= maxTold {
		d.Log.Warn("DoDownload: consuming rest of transfer and failing after encountering the following error: "+oneLine(e.Text), "code", e.Code, "subcode", e.Subcode)
	}
	if d.failed == nil {
		d.failed = e
	}
}

func (d *download) run() error {
	if err := d.preamble(); err != nil {
		return err
	}
	for {
		more, err := d.item()
		if err != nil {
			// The stream is out of step. Try to tell the peer.
			v := &Error{}
			if !errors.As(err, &v) {
				v = d.brokenItem("", err)
			}
			if d.ctx.Err() == nil {
				_ = d.putAck(v)
			}
			return v
		}
		if !more {
			break
		}
		d.s.SetPatient(d.stats.files >= manyItems && d.ready && d.peerReady)
	}
	d.s.SetPatient(false)
	if d.failed == nil {
		d.dog.sleep()
		if err := d.fetch(); err != nil {
			return broken(d.code, "STARTER at "+d.local()+" - |Error: receiving files by plugins", err)
		}
		d.dog.stroke()
	}
	peer := d.getAck()
	if peer != nil {
		own := "STARTER failed to receive file(s) from " + d.peer()
		if peer.Err == nil { // the peer itself reported a failure
			_ = d.putAck(&Error{Code: peer.Code, Subcode: peer.Subcode, TryAgain: peer.TryAgain, Text: own})
			peer.Text += "; " + own
			if peer.Code == 0 {
				peer.Code = d.code
			}
		}
		return peer
	}
	if err := d.putAck(d.failed); err != nil && d.failed == nil {
		return broken(d.code, "STARTER cannot acknowledge the files received from "+d.peer(), err)
	}
	if d.failed != nil {
		return d.failed
	}
	return nil
}

// manyItems is how many items make it likely that more of them follow.
const manyItems = 32

// preamble reads what comes before the first item. It ignores the flag for the final
// destination: a starter has only one.
func (d *download) preamble() error {
	_, err := d.s.GetInt()
	if err == nil {
		_, err = d.getAd()
	}
	if err != nil {
		return broken(d.code, "the shadow did not begin to send files; it may not know the transfer key any more", err)
	}
	return nil
}

// item receives one item; false after the last one. After an error the stream is
// unusable.
func (d *download) item() (more bool, err error) {
	command, err := d.s.GetInt()
	if err == nil {
		err = d.s.EndOfMessage()
	}
	if err != nil || command == cmdFinished {
		return false, err
	}
	name, err := d.s.GetString()
	if err == nil {
		err = d.s.EndOfMessage()
	}
	if err != nil {
		return false, err
	}
	target := d.target(command, name)
	if err := d.handshake(true); err != nil {
		return false, err
	}
	began := time.Now()
	d.contents = 0
	switch command {
	case cmdOther:
		err = d.other()
	case cmdURL:
		err = d.url(name, target)
	case cmdProxy:
		err = d.receiveProxy(target)
	case cmdMkdir:
		err = d.mkdir(target)
	default:
		err = d.file(command, target)
	}
	if err != nil {
		return false, d.brokenItem(target, err)
	}
	d.stats.files++
	d.dog.stroke()
	if command != cmdURL && command != cmdOther {
		d.recordItem(name, began, d.contents, nil)
	}
	if command != cmdURL && name != "" && name == d.job.ContainerImage {
		d.stats.image, d.stats.container = true, time.Since(began)
	}
	d.Progress(Progress{Files: d.stats.files, Bytes: d.stats.bytes})
	return true, nil
}

func (d *download) brokenItem(target string, err error) *Error {
	var v *Error
	if errors.As(err, &v) {
		return v
	}
	text := "STARTER at " + d.local() + " - |Error: receiving file"
	if target != "" {
		text += " " + d.shown(target)
	}
	return broken(d.code, text, err)
}

// shown is the name of a file as messages give it.
func (d *download) shown(name string) string {
	return jobfiles.View{Root: d.Sandbox.Root()}.Shown(name)
}

// target decides where an item goes: a name in the sandbox, empty for nowhere. What the
// peer sends is received in any case.
func (d *download) target(command int64, name string) string {
	// Shadows send the ads of command 999 with an empty name; nothing is
	// written for them.
	if command == cmdOther {
		return ""
	}
	if !jobfiles.LegalName(name) {
		d.fail(&Error{Code: CodeDownload, Subcode: 1,
			Text: "Attempt to write to illegal sandbox path: " + name})
		return ""
	}
	if name == historicExec && d.job.Executable != "" {
		name = d.job.Executable
	}
	to, ok, err := d.remap.Find(name)
	switch {
	case err != nil:
		d.fail(&Error{Code: CodeDownload, Subcode: 1, Text: err.Error()})
		return ""
	case !ok:
		return name
	case jobfiles.URLScheme(to) != "":
		d.fail(&Error{Code: CodeDownload, Subcode: 1,
			Text: fmt.Sprintf("Remap of input file %s resulted in a URL: %s", name, jobfiles.SafeURL(to))})
		return ""
	}
	return to
}
