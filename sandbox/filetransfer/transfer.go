package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/rescue"
	"podstarter/sandbox/beneath"
	"podstarter/sandbox/jobfiles"
)

// Dial connects to the shadow (the job's TransferSocket), starts a command on the file
// transfer session, and returns the stream before anything else is sent on it. The
// command is cedar.FileTransUpload (the shadow sends) or cedar.FileTransDownload (the
// shadow receives).
type Dial func(ctx context.Context, command int) (*cedar.Stream, error)

// Sandbox is the directory that files are moved into and out of; a sandbox.Sandbox is one.
type Sandbox interface {
	Scratch() string        // path of the directory
	Root() *beneath.Root    // the directory itself, open for as long as there are transfers
	Payload() beneath.Owner // owner of the files in it, and the identity that reaches them
}

// Config is what a Transfer works with.
type Config struct {
	Sandbox Sandbox
	Job     *classads.Ad // as it runs in the sandbox (condor/job.Localize); later changes have no effect
	Dial    Dial
	Key     string // the job's TransferKey

	// InputTimeout and OutputTimeout bound how long the peer may be silent
	// where it should speak. 0 means 300 s, STARTER_UPLOAD_TIMEOUT's default;
	// HTCondor waits 30 s for input, which a busy access point's disk exceeds.
	InputTimeout, OutputTimeout time.Duration

	// Stall bounds how long input may make no progress at all, even if the peer sends
	// messages meanwhile: STARTER_FILE_XFER_STALL_TIMEOUT. 0 means no bound.
	Stall time.Duration

	// MaxOutput is the greatest number of files and directories that one upload may
	// return; 0 means no bound.
	MaxOutput int64

	// Outside lets names of output and links lead out of the sandbox; files there are
	// read with the payload's rights. It is for jobs that run in the starter's own file
	// system: in a container those names mean other files.
	Outside bool

	Plugins Plugins // move what URLs name; nil for none

	// Record gets a record of each file of an input, and of each report of a plugin that
	// takes lists, for FILE_TRANSFER_STATS_LOG (file_transfer.cpp:LogThisTransferStats);
	// it is called from one goroutine at a time. It may be nil.
	Record func(*classads.Ad)

	SignURLs bool // ask the shadow for signed URLs where output goes to S3 (SIGN_S3_URLS)

	Progress func(Progress) // called on the way, from one goroutine at a time; may be nil
	Log      *slog.Logger
}

// Progress is how far a transfer has come.
type Progress struct {
	Waiting bool  // for the access point's transfer queue
	Files   int   // items finished
	Bytes   int64 // of contents
}

// Result is what a transfer has done; with an error, how far it came.
type Result struct {
	Bytes   int64         // of contents, BytesSent or BytesRecvd of the job
	Files   int           // items, directories included
	Spooled []string      // for SpooledOutputFiles, of an upload that succeeded
	LeftOut string        // what an upload left out although the job made it, and why: one line of at most 1000 bytes for the job's event log; empty if nothing
	Unnamed bool          // Spooled is empty because it would have too many names: leave the attribute out
	Stats   *classads.Ad  // TransferStats as sent to the shadow
	Took    time.Duration // from dialling to the last acknowledgement
	Met     bool          // the shadow was reached, and so runs its half of the transfer

	// Plugins is the list of results for InputPluginResultList and so on;
	// empty if no plugin ran.
	Plugins []*classads.Ad
}

// Transfer moves the files of one activation. One transfer runs at a time:
// the shadow dies of a second one (file_transfer.cpp: ActiveTransferTid). For
// the same reason a transfer ends only when the shadow has closed its side,
// so that the next one, or the question for guidance, finds it ready.
type Transfer struct {
	busy sync.Mutex

	mu     sync.Mutex // guards what follows
	config Config
	before jobfiles.Catalog // of the sandbox right after input arrived; nil before
}

// New returns a Transfer that has not done anything yet.
func New(c Config) *Transfer {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	const usual = 300 * time.Second
	if c.InputTimeout <= 0 {
		c.InputTimeout = usual
	}
	if c.OutputTimeout <= 0 {
		c.OutputTimeout = usual
	}
	c.Job = c.Job.Clone()
	return &Transfer{config: c}
}

// SetPeer replaces how the shadow is reached, after a reconnect.
func (t *Transfer) SetPeer(dial Dial, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.config.Dial, t.config.Key = dial, key
}

// Recatalog records what is in the sandbox now as untouched by the job, after the
// starter has put files there that must not be returned.
func (t *Transfer) Recatalog(ctx context.Context) error {
	t.mu.Lock()
	c := t.config
	t.mu.Unlock()
	var seen jobfiles.Catalog
	err := c.Sandbox.Payload().Do(func() (err error) {
		seen, err = jobfiles.TakeCatalog(ctx, c.Sandbox.Root())
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the files that the job begins with: %w", err)
	}
	t.mu.Lock()
	t.before = seen
	t.mu.Unlock()
	return nil
}

// session is one connection of a transfer, and what both directions share.
type session struct {
	Config
	ctx   context.Context
	s     *cedar.Stream
	job   jobfiles.Files
	code  int           // CodeDownload or CodeUpload
	wait  time.Duration // InputTimeout or OutputTimeout
	stats stats
	dog   watchdog
	calm  func() // ends the watch

	ready     bool // this side's go-ahead was given, for all files
	peerReady bool // the peer's was
	peerLimit int64
}

// begin connects and sends the beginning of a transfer.
func (t *Transfer) begin(ctx context.Context, command int) (*session, error) {
	t.mu.Lock()
	x := &session{Config: t.config, ctx: ctx, peerLimit: -1, calm: func() {}}
	t.mu.Unlock()
	x.job = jobfiles.Read(x.Job)
	x.code, x.wait = CodeDownload, x.InputTimeout
	if command == cedar.FileTransDownload {
		x.code, x.wait = CodeUpload, x.OutputTimeout
	} else {
		x.ctx, x.dog, x.calm = watchProgress(ctx, x.Stall)
	}
	if x.job.TooMany != "" {
		return x, listError(x.job.TooMany, x.code)
	}
	s, err := x.Dial(x.ctx, command)
	if err != nil {
		return x, broken(x.code, "STARTER cannot connect to the shadow for a file transfer", err)
	}
	if err := inTheClear(s, x.Job); err != nil {
		s.Close()
		return x, broken(x.code, "STARTER does not transfer the job's files", err)
	}
	x.s = s
	s.SetTimeout(x.wait)
	s.SetCoalesce(true)
	s.PutSecret(x.Key)
	if err := s.EndMessage(); err != nil {
		s.Close()
		return x, broken(x.code, "STARTER cannot begin a file transfer", err)
	}
	x.stats.met = true
	return x, nil
}

// lingerTime is how long the end of a transfer waits for the shadow to close
// its side. It does so within a millisecond of the last acknowledgement.
const lingerTime = 2 * time.Second

// maxAd bounds an ad that a peer sends in a transfer. The longest in practice list
// files that may be reused, with some hundred bytes for each.
const maxAd = 8 << 20

// getAd takes a message that holds one ad.
func (x *session) getAd() (*classads.Ad, error) {
	x.s.SetMessageLimit(maxAd)
	defer x.s.SetMessageLimit(0)
	ad, err := x.s.GetAd()
	if err == nil {
		err = x.s.EndOfMessage()
	}
	return ad, err
}

// finish waits until the shadow's child has gone, then closes. A peer that was silent for too long is not waited for again.
func (x *session) finish(how error) {
	if n := x.stats.untold; n > 0 {
		x.Log.Warn("the shadow gets only some of the plugins' results, all of them are too long", "untold", n, "bytes", x.stats.told)
	}
	x.dog.stroke()
	if !errors.Is(how, os.ErrDeadlineExceeded) && x.s.Flush() == nil && x.ctx.Err() == nil {
		x.s.SetPatient(false)
		x.s.SetTimeout(lingerTime)
		if err := x.s.Wait(); err != nil && !errors.Is(err, io.EOF) {
			x.Log.Debug("the shadow did not close the file transfer connection in time", "error", err)
		}
	}
	x.s.Close()
}

// local is this side's address, as messages to users show it.
func (x *session) local() string {
	if a, ok := x.s.Conn().LocalAddr().(*net.TCPAddr); ok {
		return a.IP.String()
	}
	return "unknown address"
}

// peer is the other side's address, without the parameters that nobody reads.
func (x *session) peer() string {
	p := x.s.Peer()
	if p == "" {
		return "disconnected socket"
	}
	if short, _, ok := strings.Cut(p, "?"); ok {
		p = short + ">"
	}
	return p
}

// bulk runs the copying of a large file on an ordinary thread: parking a
// goroutine that is locked to its thread costs two thread switches, and
// copying parks often. The descriptor is open already, so the identity of the
// thread does not matter.
func (x *session) bulk(size int64, copy func() error) error {
	const large = 512 << 10
	if size < large || !x.Sandbox.Payload().Switches() {
		return copy()
	}
	done := make(chan error, 1)
	rescue.Go(func() { done <- rescue.Do(copy) })
	return <-done
}

// view returns where names are looked up.
func (x *session) view() (jobfiles.View, func(), error) {
	v := jobfiles.View{Root: x.Sandbox.Root()}
	if !x.Outside {
		return v, func() {}, nil
	}
	var err error
	if v.Outside, err = beneath.OpenRoot("/"); err != nil {
		return v, nil, err
	}
	return v, func() { v.Outside.Close() }, nil
}

// peerText makes the peer's text fit into a message of one line.
func peerText(text string) string { return strings.TrimSpace(oneLine(text)) }
