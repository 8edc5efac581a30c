package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"podstarter/sandbox/beneath"
	"podstarter/sandbox/jobfiles"
)

// Hold codes that a transfer ends with (src/condor_utils/condor_holdcodes.h).
// The shadow replaces the first two by the phase the job was in.
const (
	CodeDownload       = 12 // receiving or writing failed (DownloadFileError)
	CodeUpload         = 13 // reading or sending failed (UploadFileError)
	CodeBadAck         = 11 // InvalidTransferAck
	CodeBadGoAhead     = 18 // InvalidTransferGoAhead
	CodeOutputTooLarge = 33 // MaxTransferOutputSizeExceeded
)

// Subcodes of CodeDownload and CodeUpload about plugins, beside their wait status.
const (
	SubcodeNoPlugin = -1001 // FileTransferPluginNotFound: the job goes back to the queue, as with all up to -1000
	// SubcodeNoReport is an output file that its plugin did not report. HTCondor's
	// -1004 would send the job back to the queue, to do the same again.
	SubcodeNoReport = int(syscall.ENODATA)
)

// Error says how a transfer failed, in HTCondor's terms.
type Error struct {
	Code     int    // hold code
	Subcode  int    // errno, or one of the Subcode constants
	TryAgain bool   // the reason may pass: transfer again instead of holding the job
	Text     string // hold reason, without newlines
	Err      error  // the cause, if that is an error of this process
}

func (e *Error) Error() string {
	return fmt.Sprintf("file transfer failed (code %d, subcode %d): %s", e.Code, e.Subcode, e.Text)
}

// Unwrap returns the error behind it, or nil.
func (e *Error) Unwrap() error { return e.Err }

// PeerDone says that the peer knows of the failure: it has sent its verdict, or its end
// of the connection is gone. After any other failure, above all silence, its half of
// the transfer may still be running.
func (e *Error) PeerDone() bool {
	if e.Err == nil {
		return true
	}
	for _, gone := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE} {
		if errors.Is(e.Err, gone) {
			return true
		}
	}
	return false
}

// broken makes the error of an unusable stream.
func broken(code int, doing string, err error) *Error {
	return &Error{
		Code: code, Subcode: int(errno(err)), TryAgain: true,
		Text: doing + ": " + err.Error(), Err: err,
	}
}

// errno finds the errno that C code would have had for an error; EIO if none fits.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	var n net.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, beneath.ErrOutside):
		return syscall.EPERM
	case errors.Is(err, jobfiles.ErrTooMany):
		return syscall.E2BIG
	case errors.Is(err, beneath.ErrNotRegular):
		return syscall.EINVAL
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &n) && n.Timeout():
		return syscall.ETIMEDOUT
	case errors.Is(err, context.Canceled):
		return syscall.EINTR
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return syscall.ECONNRESET
	}
	return syscall.EIO
}

// fileText renders the error of a file as put and get of a file do: "(errno 2) No such
// file or directory", with a remark where the errno does not explain the failure.
func fileText(err error) string {
	text := fmt.Sprintf("(errno %d) %s", int(errno(err)), strerror(errno(err)))
	switch {
	case errors.Is(err, beneath.ErrOutside):
		text += "- The path or a symbolic link in it leads out of the job's sandbox, where only files inside may be transferred."
	case errors.Is(err, beneath.ErrNotRegular):
		text += "- Only regular files and directories can be transferred."
	}
	return text
}

// barred is the error of a file that cannot be written, with EACCES for a name that leads
// out of the sandbox, where the job's user has no right to write under HTCondor.
func barred(err error) error {
	if errors.Is(err, beneath.ErrOutside) {
		return fmt.Errorf("%w: %w", syscall.EACCES, err)
	}
	return err
}

// strerror spells an errno as the C library does; Go's texts are the same but
// begin in lower case.
func strerror(e syscall.Errno) string {
	text := e.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// maxTold is how many failures of single files one transfer logs: a job can make
// millions of files that cannot be read.
const maxTold = 100

// oneLine makes a text fit for a hold reason: the schedd drops updates whose reason has
// a newline (SendTransferAck). File names may contain control sequences for the
// reader's terminal.
func oneLine(text string) string {
	if strings.ContainsFunc(text, isControl) {
		var b strings.Builder
		for _, c := range []byte(text) {
			switch {
			case c == '\n':
				b.WriteString(`\n`)
			case c == 0:
			case isControl(rune(c)):
				fmt.Fprintf(&b, `\x%02x`, c)
			default:
				b.WriteByte(c)
			}
		}
		text = b.String()
	}
	const most = 16 << 10 // of a reason that somebody is to read
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
