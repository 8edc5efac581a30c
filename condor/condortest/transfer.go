package condortest

import (
	"context"
	"errors"
	"fmt"

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

// NotYet is a go-ahead that is yet to come, for [AnswerText] at [GoAhead]: the n-th and the
// next answer to one question are the n-th and the next time of the plan.
const NotYet = "Result = 0"

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
		defer s.transferring(name)()
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

// transferring has the job's ad say that files are on their way, as long as they are
// (baseshadow.cpp:updateJobInQueue).
func (s *Shadow) transferring(name string) (over func()) {
	attribute := map[string]string{Input: "TransferringInput", Output: "TransferringOutput"}[name]
	set := func(busy bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.job.SetBool(attribute, busy)
	}
	set(true)
	return func() { set(false) }
}

func (x *session) keyed(key string, role func(*session) error) error {
	if key == x.Key() {
		err := role(x)
		if errors.Is(err, errRefused) { // that is its end, and to guidance a failure
			x.mu.Lock()
			x.failed = x.failed || !x.receives
			x.mu.Unlock()
			return nil
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
	if r.unread || r.hangUp || r.raw != nil || r.ad != nil && r.ad.IntOr("Result", 0) < 0 {
		x.fails()
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

// fails notes that the input has failed, before the starter can ask what to do about it.
func (x *session) fails() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = x.failed || !x.receives
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
	if r.hangUp || r.unread || r.raw != nil || r.say != nil || ad.IntOr("Result", 0) != 0 {
		x.fails()
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
