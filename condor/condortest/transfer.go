package condortest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// Item is one thing that a shadow sends as input.
type Item struct {
	Command int64 // one of those below
	Name    string
	Mode    int64 // permissions of files and directories
	Data    string
	URL     string
	Ad      *classads.Ad                // of ItemOther
	Send    func(s *cedar.Stream) error // says something else after the name
}

// TransferOptions are what a test wants of a shadow's transfers.
type TransferOptions struct {
	// Items are sent in the place of the job's input files.
	Items []Item
	// Key is what transfers have to begin with; one is made up if it is empty.
	Key string
	// Alive is how many seconds the shadow says that it waits for a go-ahead; 300 if 0.
	Alive int64
	// Discard keeps nothing of what the starter brings, for benchmarks.
	Discard bool
}

// SetTransfer changes what transfers are like from now on.
func (s *Shadow) SetTransfer(o TransferOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Transfer = o; o.Key != "" {
		s.key = o.Key
	}
}

func (s *Shadow) transferOptions() TransferOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.Transfer
}

// Transfer plays the shadow's part of a transfer on a connection of the test: command is
// cedar.FileTransUpload, for input, or cedar.FileTransDownload. The error is why it did not
// come to its end.
func (s *Shadow) Transfer(st *cedar.Stream, command int) error {
	if command == cedar.FileTransUpload {
		return s.serveInput(context.Background(), &cedar.Call{Stream: st})
	}
	return s.serveOutput(context.Background(), &cedar.Call{Stream: st})
}

// Commands of items (condor_utils/file_transfer.cpp: TransferCommand).
const (
	ItemFile      = itemFile
	ItemProxy     = 4 // an X.509 proxy by delegation
	ItemURL       = 5
	ItemDirectory = itemDirectory
	ItemOther     = 999

	itemEnd       = 0
	itemFile      = 1
	itemDirectory = 6
)

// Answers of a go-ahead.
const (
	goAheadOnce   = 1
	goAheadAlways = 2
	leastAlive    = 300 // seconds that either side must at least be ready to wait
)

// Transfer is what came of a transfer, on the shadow's side.
type Transfer struct {
	Output bool // from the starter; otherwise input
	Key    string
	Err    error // why it did not come to its end; nil if it did
}

// Transfers are those that are over.
func (s *Shadow) Transfers() []Transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Transfer(nil), s.sent...)
}

// Outputs are the contents of files that the starter has brought, by name. Of those that came
// several times it is the last.
func (s *Shadow) Outputs() map[string]string {
	files := map[string]string{}
	for _, h := range s.Heard() {
		if h.Call == OutputItem && h.Ints[0] == ItemFile {
			files[h.Texts[0]] = h.Body
		}
	}
	return files
}

// Failure is the report of a transfer that failed, for [Answer] at [InputAck] and [OutputAck].
// Again wants it to be tried again.
func Failure(code, subcode int, reason string, again bool) *classads.Ad {
	ad := classads.NewAd()
	ad.SetInt("Result", -1)
	if again {
		ad.SetInt("Result", 1)
	}
	ad.SetInt("HoldReasonCode", int64(code))
	ad.SetInt("HoldReasonSubCode", int64(subcode))
	ad.SetString("HoldReason", reason)
	return ad
}

// Refusal is a go-ahead that is refused, for [Answer] at [GoAhead].
func Refusal(code, subcode int, reason string, again bool) *classads.Ad {
	ad := Failure(code, subcode, reason, false)
	ad.SetBool("TryAgain", again)
	return ad
}

// Wait is a go-ahead that is yet to come, for [AnswerText] at [GoAhead]: the n-th and the
// next answer to one question are the n-th and the next time of the plan.
const Wait = "Result = 0"

// session is one transfer.
type session struct {
	*Shadow
	s        *cedar.Stream
	options  TransferOptions
	receives bool
	mine     bool // the starter has said yes to all that is to come
	theirs   bool // this side has
	files    int64
	bytes    int64
	failure  *classads.Ad // why this side cannot do its part
}

func (s *Shadow) serveInput(_ context.Context, c *cedar.Call) error {
	return s.serveTransfer(c, Input, (*session).send)
}

func (s *Shadow) serveOutput(_ context.Context, c *cedar.Call) error {
	return s.serveTransfer(c, Output, (*session).receive)
}

func (s *Shadow) serveTransfer(c *cedar.Call, name string, role func(*session) error) error {
	key, err := c.Stream.GetString()
	if err == nil {
		err = c.Stream.EndOfMessage()
	}
	if err == nil {
		x := &session{Shadow: s, s: c.Stream, options: s.transferOptions(), receives: name == Output}
		c.Stream.SetCoalesce(!x.options.Discard)
		var done bool
		if done, err = x.event(Heard{Call: name, Texts: []string{key}}); err == nil && !done {
			err = x.keyed(key, role)
		}
		if err == nil {
			err = c.Stream.Flush()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, Transfer{Output: name == Output, Key: key, Err: err})
	return err
}

func (x *session) keyed(key string, role func(*session) error) error {
	if key == x.Key() {
		err := role(x)
		if errors.Is(err, errRefused) {
			return nil // that is its end
		}
		return err
	}
	err := fmt.Errorf("%q is not the key of this shadow's transfers", key)
	return errors.Join(err, result(x.s, 0), x.s.Flush()) // as to a starter that does not know the key
}

// event writes something down and does what the plan has for it. Done says that
// this was the answer, or that there will be none.
func (x *session) event(h Heard) (done bool, err error) {
	done, _, err = x.eventWith(h)
	return done, err
}

func (x *session) eventWith(h Heard) (done bool, r *reaction, err error) {
	r = x.at(h.Call)
	x.add(h)
	if len(r.hooks)+len(r.until) > 0 || r.unread || r.hangUp || r.cond != nil || r.raw != nil {
		if err := x.s.Flush(); err != nil { // what was said before has arrived
			return true, r, err
		}
	}
	x.begin(r, h)
	if r.by != nil {
		r.ad = r.by(h)
	}
	switch {
	case r.unread || r.hangUp:
		x.s.Close()
		return true, r, errHungUp
	case r.raw != nil:
		_, err := x.s.Conn().Write(r.raw)
		return true, r, errors.Join(err, errHungUp)
	case r.say != nil:
		return true, r, r.say(x.s)
	case r.errno != 0 && (h.Call == Input || h.Call == Output):
		return true, r, result(x.s, 0)
	}
	return false, r, nil
}

func (x *session) getInt() (int64, error) {
	n, err := x.s.GetInt()
	return n, end(x.s, err)
}

func (x *session) getText() (string, error) {
	text, err := x.s.GetString()
	return text, end(x.s, err)
}

func (x *session) getAd() (*classads.Ad, error) {
	ad, err := x.s.GetAd()
	return ad, end(x.s, err)
}

func end(s *cedar.Stream, err error) error {
	if err != nil {
		return err
	}
	return s.EndOfMessage()
}

func (x *session) putAd(ad *classads.Ad) error {
	x.s.PutAd(ad)
	return x.s.EndMessage()
}

// grant answers the starter's question for a go-ahead.
func (x *session) grant() error {
	if x.theirs {
		return nil
	}
	wait, err := x.getInt()
	if err != nil {
		return err
	}
	done, r, err := x.eventWith(Heard{Call: GoAhead, Ints: []int64{wait}})
	if err != nil || done {
		return err
	}
	ad := r.ad
	if ad == nil {
		ad = x.goAhead()
	}
	if err := x.putAd(ad); err != nil {
		return err
	}
	switch answer := ad.IntOr("Result", -1); {
	case answer < 0:
		if err := x.s.Flush(); err != nil {
			return err
		}
		return errRefused
	case answer == 0:
		// Not yet; the answer comes with the next round of the plan.
		return x.again(wait)
	default:
		x.theirs = answer == goAheadAlways
	}
	return nil
}

// goAhead is the answer of a shadow that has nothing against a transfer.
func (x *session) goAhead() *classads.Ad {
	ad := classads.NewAd()
	ad.SetInt("Result", goAheadAlways)
	if x.receives {
		ad.SetInt("MaxTransferBytes", -1)
	}
	return ad
}

// again answers once more to a starter that was told to wait.
func (x *session) again(wait int64) error {
	for {
		done, r, err := x.eventWith(Heard{Call: GoAhead, Ints: []int64{wait}})
		if err != nil || done {
			return err
		}
		ad := r.ad
		if ad == nil {
			ad = x.goAhead()
		}
		if err := x.putAd(ad); err != nil {
			return err
		}
		if err := x.s.Flush(); err != nil {
			return err
		}
		if ad.IntOr("Result", -1) != 0 {
			x.theirs = ad.IntOr("Result", -1) == goAheadAlways
			return nil
		}
	}
}

// errRefused ends a transfer that the plan has refused.
var errRefused = errors.New("refused, as the test wants it")

// ask asks the starter for its go-ahead.
func (x *session) ask() error {
	if x.mine {
		return nil
	}
	alive := x.options.Alive
	if alive == 0 {
		alive = leastAlive
	}
	if err := result(x.s, alive); err != nil {
		return err
	}
	for {
		ad, err := x.getAd()
		if err != nil {
			return err
		}
		switch answer := ad.IntOr("Result", -1); {
		case answer < 0:
			return fmt.Errorf("the starter refuses a transfer: %s", ad.FormatNew())
		case answer == 0 && alive < leastAlive && ad.IntOr("Timeout", 0) != leastAlive:
			return fmt.Errorf("the starter does not say how long it needs: %s", ad.FormatNew())
		case answer > 0:
			x.mine = answer == goAheadAlways
			return nil
		}
	}
}

// report is this side's report of a transfer. What is transferred without failure counts.
func (x *session) report(name string) error {
	ad := x.failure
	if ad == nil {
		ad = classads.NewAd()
		ad.SetInt("Result", 0)
	}
	stats := classads.NewAd()
	if x.receives || version.Of(x.version).AtLeast(24, 0, 0) {
		stats.SetString("Protocols", "")
		if x.bytes > 0 {
			stats.SetString("Protocols", "cedar")
			stats.SetInt("CedarSizeBytes", x.bytes)
		}
	}
	if x.files > 0 {
		stats.SetInt("CedarFilesCount", x.files)
	}
	ad.SetAd("TransferStats", stats)
	r := x.at(name)
	if r.ad != nil {
		ad = r.ad
	}
	if len(r.hooks)+len(r.until) > 0 || r.hangUp || r.cond != nil || r.unread || r.raw != nil {
		if err := x.s.Flush(); err != nil {
			return err
		}
	}
	x.begin(r, Heard{Call: name})
	if r.by != nil {
		ad = r.by(Heard{Call: name})
	}
	switch {
	case r.hangUp || r.unread:
		x.s.Close()
		return errHungUp
	case r.raw != nil:
		_, err := x.s.Conn().Write(r.raw)
		return errors.Join(err, errHungUp)
	case r.say != nil:
		return r.say(x.s)
	}
	return x.putAd(ad)
}

// serveKerberos is CREDD_GET_CRED.
func (s *Shadow) serveKerberos(_ context.Context, c *cedar.Call) error {
	user, err := c.Stream.GetString()
	domain, err2 := c.Stream.GetString()
	kind, err3 := c.Stream.GetInt()
	if err := errors.Join(err, err2, err3, c.Stream.EndOfMessage()); err != nil {
		return err
	}
	x := &session{Shadow: s, s: c.Stream}
	if done, err := x.event(Heard{Call: Kerberos, Texts: []string{user, domain}, Ints: []int64{kind}}); done || err != nil {
		return err
	}
	if s.options.Kerberos == nil {
		return net.ErrClosed // it just hangs up
	}
	c.Stream.PutInt(int64(len(s.options.Kerberos)))
	c.Stream.PutBytes(s.options.Kerberos)
	return c.Stream.EndMessage()
}

// input is what the job's ad has as input, as a shadow would find it.
func (s *Shadow) input() (items []Item, err error) {
	if o := s.transferOptions(); o.Items != nil {
		return o.Items, nil
	}
	job := s.Job()
	var names []string
	proxy := job.StringOr("x509userproxy", "")
	if proxy != "" {
		it := Item{Command: ItemProxy, Name: filepath.Base(proxy)}
		if path, err := s.path(proxy); err == nil {
			data, _ := os.ReadFile(path) // it counts for the size of the input
			it.Data = string(data)
		}
		items = append(items, it)
	}
	for name := range strings.SplitSeq(job.StringOr("TransferInput", ""), ",") {
		if name = strings.TrimSpace(name); name != "" && name != proxy {
			names = append(names, name)
		}
	}
	if in := job.StringOr("In", "/dev/null"); in != "/dev/null" && job.BoolOr("TransferIn", true) {
		names = append(names, in)
	}
	if job.BoolOr("TransferExecutable", true) {
		names = append(names, job.StringOr("Cmd", ""))
	}
	for _, name := range names {
		if strings.Contains(name, "://") {
			items = append(items, Item{Command: ItemURL, Name: filepath.Base(name), URL: name})
			continue
		}
		more, err := s.file(name)
		if items = append(items, more...); err != nil {
			return items, err
		}
	}
	return items, nil
}

// file makes items of a file, or of a directory and all that is in it.
func (s *Shadow) file(name string) (items []Item, err error) {
	path, err := s.path(name)
	if err != nil {
		return []Item{missing(name)}, &os.PathError{Op: "open", Path: s.submitName(name), Err: err}
	}
	base := filepath.Base(name)
	err = filepath.Walk(path, func(at string, st os.FileInfo, err error) error {
		if err != nil {
			items = append(items, missing(name))
			return &os.PathError{Op: "open", Path: s.submitName(name), Err: errnoOf(err)}
		}
		to := filepath.Join(base, strings.TrimPrefix(at, path))
		if st.IsDir() {
			items = append(items, Item{Command: ItemDirectory, Name: to, Mode: int64(st.Mode()&0o777) | 0o40000})
			return nil
		}
		data, err := os.ReadFile(at)
		items = append(items, Item{Command: ItemFile, Name: to, Mode: int64(st.Mode() & 0o777), Data: string(data)})
		return err
	})
	return items, err
}

// submitName is the whole name of a file at the access point.
func (s *Shadow) submitName(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.iwd, name)
}

// missing is a file that cannot be read: it has no permissions, and no contents.
func missing(name string) Item {
	return Item{Command: ItemFile, Name: filepath.Base(name), Send: func(s *cedar.Stream) error {
		const end = 666 // reli_sock.h: PUT_FILE_EOM_NUM
		for _, numbers := range [][]int64{{cedar.MissingPermissions}, {0, 1}, {end}} {
			for _, n := range numbers {
				s.PutInt(n)
			}
			if err := s.EndMessage(); err != nil {
				return err
			}
		}
		return nil
	}}
}
