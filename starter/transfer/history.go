package transfer

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/sandbox"
	"podstarter/starter/settings"
)

// history is the log of single transfers of this execution point
// (FILE_TRANSFER_STATS_LOG; file_transfer.cpp:LogThisTransferStats). It belongs to
// HTCondor's account, with whose rights it is written: root must not follow what is
// in its directory.
type history struct {
	path  string
	owner sandbox.Owner
	job   func(*classads.Ad) // says whose files they are
	text  bytes.Buffer
	err   error // the first; others are not worth a line
}

const (
	// mostHistory is the size in bytes from which the file is set aside.
	mostHistory = 5_000_000
	// historyPart is how much is written at once.
	historyPart = 256 << 10
)

// openHistory returns nil where no such log is wanted.
func (f *Files) openHistory() *history {
	log := f.Settings.Condor.Transfer.HistoryLog
	if !log.Set {
		return nil
	}
	owner, err := settings.CondorOwner(f.Settings.Config)
	if err != nil {
		f.Log.Warn("There is no log of transfers", "error", err)
		return nil
	}
	user := f.Job.StringOr("Owner", "")
	return &history{path: log.Value, owner: owner, job: func(ad *classads.Ad) {
		ad.SetInt("JobClusterId", int64(f.Info.Cluster))
		ad.SetInt("JobProcId", int64(f.Info.Proc))
		ad.SetString("JobOwner", user)
	}}
}

// writeHistory writes what a transfer has recorded.
func (f *Files) writeHistory() {
	f.history.flush()
	if h := f.history; h != nil && h.err != nil {
		f.Log.Warn("The log of transfers is not complete", "error", h.err)
		h.err = nil
	}
}

// add takes a record.
func (h *history) add(ad *classads.Ad) {
	ad = ad.Public()
	keepLines(ad)
	h.job(ad)
	h.text.WriteString("***\n")
	h.text.WriteString(ad.FormatSorted())
	if h.text.Len() >= historyPart {
		h.flush()
	}
}

// keepLines makes one line of each attribute, and removes what cannot be one: a reader of the log could take it for more than one
// attribute, or for another record. The log is the site's, the plugin perhaps the job's. HTCondor writes it all.
func keepLines(ad *classads.Ad) {
	const ends = "\r\n"
	var line []byte
	for name, e := range ad.Clone().All() {
		line = classads.AppendOldLine(line[:0], name, e)
		if isWord(name) && !bytes.ContainsAny(line, ends) {
			continue
		}
		value, _ := e.Literal()
		text, isText := value.Str()
		if ad.Delete(name); isText && isWord(name) {
			ad.SetString(name, strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(ends, r) }), " "))
		}
	}
}

// isWord tells whether a name has only letters, digits and underscores.
func isWord(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// flush writes what there is. Each record is whole: starters share the file.
func (h *history) flush() {
	if h == nil || h.text.Len() == 0 {
		return
	}
	err := h.owner.Do(func() error { return appendHistory(h.path, h.text.Bytes()) })
	h.text.Reset()
	if h.err == nil {
		h.err = err
	}
}

func appendHistory(path string, text []byte) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err == nil && st.Size > mostHistory {
		_ = unix.Rename(path, path+".old")
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("log transfers: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Write(fd, text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("log transfers in %s: %d of %d bytes were written: %w", path, max(n, 0), len(text), err)
	}
	return nil
}
