package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"podstarter/internal/cedar"
	"podstarter/sandbox/beneath"
	"podstarter/sandbox/jobfiles"
)

// mkdirBytes is what a directory counts for in the bytes of a transfer
// (uploadFileList: sizeof(condor_mode_t)).
const mkdirBytes = 4

// send sends one item. After an error the stream is unusable; a failure of only this
// item is recorded.
func (u *upload) send(it jobfiles.Item) error {
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	if it.URL != "" {
		return u.store(it)
	}
	if err := u.flush(); err != nil {
		return err
	}
	name := it.WireName()
	var err error
	switch {
	case it.Kind == jobfiles.SourceURL:
		err = u.sendURL(&it, name)
	case it.Kind == jobfiles.Directory && it.Err == nil:
		err = u.sendDirectory(&it, name)
	default:
		err = u.sendFile(&it, name)
	}
	if err != nil {
		return err
	}
	u.stats.files++
	if it.Kind != jobfiles.SourceURL {
		u.stats.cedar++
		u.spooled(name)
	}
	u.Progress(Progress{Files: u.stats.files, Bytes: u.stats.bytes})
	return nil
}

// head sends what every item begins with.
func (u *upload) head(command int64, name string) error {
	u.s.PutInt(command)
	if err := u.s.EndMessage(); err != nil {
		return err
	}
	u.s.PutString(name)
	if err := u.s.EndMessage(); err != nil {
		return err
	}
	if err := u.handshake(false); err != nil {
		return err
	}
	u.limit = u.peerLimit
	return nil
}

func (u *upload) sendDirectory(it *jobfiles.Item, name string) error {
	if err := u.head(cmdMkdir, name); err != nil {
		return err
	}
	u.s.PutInt(int64(it.Mode))
	u.stats.bytes += mkdirBytes
	return u.s.EndMessage()
}

// sendFile sends a file. For one that cannot be sent it sends a mode that makes the
// receiver create nothing. (HTCondor announces the real mode of a file that it cannot
// open, and an empty file arrives in its place.)
func (u *upload) sendFile(it *jobfiles.Item, name string) error {
	var f *beneath.File
	var size int64
	mode, failure := it.Mode, it.Err
	if it.Kind == jobfiles.LinkToDirectory {
		failure = syscall.EISDIR
	}
	if failure == nil {
		file, st, err := u.plan.View.OpenRead(it.Source)
		if f, failure = file, err; err == nil {
			defer func() { _ = f.Close() }()
			mode, size = st.Mode&0o777, st.Size
		}
	}
	if err := u.head(u.fileCommand(it), name); err != nil {
		return err
	}
	if failure != nil {
		return u.sendMissing(it, failure)
	}
	n := size
	if u.limit >= 0 {
		n = min(n, max(u.limit-u.stats.bytes, 0))
	}
	u.s.PutInt(int64(mode))
	if err := u.s.EndMessage(); err != nil {
		return err
	}
	err := u.bulk(n, func() error {
		if n > 1<<20 {
			f.Sequential()
		}
		return u.s.PutFile(f, n)
	})
	if err == nil {
		err = u.s.EndMessage()
	}
	if err != nil {
		var read *cedar.FileReadError
		if errors.As(err, &read) {
			text := fmt.Sprintf("|Error: sending file %s", u.plan.View.Shown(it.Source))
			return broken(u.code, text, err)
		}
		return err
	}
	u.stats.bytes += n
	if n < size {
		const mb = 1 << 20
		u.fail(&Error{Code: CodeOutputTooLarge, Text: fmt.Sprintf(
			"|Error: sending file %s: max total download bytes exceeded (max=%d MB, this file=%d MB)",
			u.plan.View.Shown(it.Source), u.limit/mb, size/mb)})
	}
	return nil
}

// fileCommand says whether the user wants the file encrypted. A connection with a key encrypts
// everything, and one without is refused where the user wants that; see inTheClear.
func (u *upload) fileCommand(it *jobfiles.Item) int64 {
	switch {
	case !u.plan.Pick.Encrypt:
	case jobfiles.MatchesAny(u.job.Encrypt, it.Source):
		return cmdEncrypted
	case jobfiles.MatchesAny(u.job.DontEncrypt, it.Source):
		return cmdUnencrypted
	}
	return cmdFile
}

func (u *upload) sendMissing(it *jobfiles.Item, why error) error {
	u.s.PutInt(modeMissing)
	if err := u.s.EndMessage(); err != nil {
		return err
	}
	if err := u.s.PutEmptyFile(); err != nil {
		return err
	}
	if err := u.s.EndMessage(); err != nil {
		return err
	}
	u.unread(it, why)
	return nil
}

// unread records that a file cannot be read.
func (u *upload) unread(it *jobfiles.Item, why error) {
	text := fileText(why)
	if it.Kind == jobfiles.LinkToDirectory {
		text += "- Transfer of symlinks to directories is not supported."
	}
	u.fail(&Error{Code: CodeUpload, Subcode: int(errno(why)), Err: why,
		Text: fmt.Sprintf("|Error: reading from file %s: %s", u.plan.View.Shown(it.Source), text)})
}

// sendURL sends a URL for the receiver to fetch.
func (u *upload) sendURL(it *jobfiles.Item, name string) error {
	if err := u.head(cmdURL, name); err != nil {
		return err
	}
	u.fetches = true
	u.s.PutString(it.Source)
	u.stats.bytes += int64(len(it.Source))
	return u.s.EndMessage()
}
