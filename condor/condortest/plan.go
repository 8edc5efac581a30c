package condortest

import (
	"errors"
	"sync"
	"syscall"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Plan is what a peer does at some calls in the place of what it does by default.
type Plan struct {
	mu    sync.Mutex
	rules map[string][]rule
	count map[string]int
	over  chan struct{} // closed when the test ends
}

type rule struct {
	nth     int
	actions []Action
}

// On says what to do at the n-th time that something is heard, counted from 1, or
// with 0 at every time. Call is the name that [Heard] has. Several actions are done
// together, later ones winning over earlier ones.
func (p *Plan) On(call string, nth int, actions ...Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rules == nil {
		p.rules = map[string][]rule{}
	}
	p.rules[call] = append(p.rules[call], rule{nth, actions})
}

// Replan forgets what was planned, and counts from the beginning again.
func (p *Plan) Replan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.count = nil, nil
}

// reaction is what became of the plan for one call.
type reaction struct {
	unread bool // hang up before the fields of the call are read
	hooks  []func(Heard)
	until  []<-chan struct{}
	hangUp bool // after the call was read
	cond   func() bool
	half   int // bytes of the answer after which to hang up; 0: none
	raw    []byte
	errno  syscall.Errno
	ad     *classads.Ad
	by     func(Heard) *classads.Ad
	say    func(*cedar.Stream) error
	after  int64 // bytes of contents after which to hang up; 0: none
}

// at counts a call and says what to do about it.
func (p *Plan) at(call string) *reaction {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == nil {
		p.count = map[string]int{}
	}
	p.count[call]++
	r := &reaction{}
	for _, rule := range p.rules[call] {
		if rule.nth == 0 || rule.nth == p.count[call] {
			for _, a := range rule.actions {
				a(r)
			}
		}
	}
	return r
}

// begin runs what comes before the answer: hooks, and waiting.
func (p *Plan) begin(r *reaction, h Heard) {
	for _, hook := range r.hooks {
		hook(h)
	}
	for _, until := range r.until {
		select {
		case <-until:
		case <-p.over:
		}
	}
	r.hangUp = r.hangUp || r.cond != nil && r.cond()
}

// Action is what a peer does about one call.
type Action func(*reaction)

// Do runs a function of the test when the call was read, before it is answered. The
// peer is not locked: f may give orders and wait for what they do, as long as that
// does not need the answer.
func Do(f func(Heard)) Action { return func(r *reaction) { r.hooks = append(r.hooks, f) } }

// Stall holds the answer back until the channel is closed, or the test ends.
func Stall(until <-chan struct{}) Action {
	return func(r *reaction) { r.until = append(r.until, until) }
}

// Refuse answers with an errno. Calls that know none get a negative result: getcreds
// is answered by -1, guidance and events by -3, a delegation by none, a transfer's key
// by "unknown".
func Refuse(errno syscall.Errno) Action {
	return func(r *reaction) { r.errno, r.say = errno, nil }
}

// Answer answers with another ad: that of get_job_info, guidance or the like, the
// go-ahead of a transfer, or the shadow's report of it.
func Answer(ad *classads.Ad) Action { return func(r *reaction) { r.ad = ad } }

// AnswerBy is Answer, in a transfer, with what f makes of what was heard; nil is the usual.
func AnswerBy(f func(Heard) *classads.Ad) Action { return func(r *reaction) { r.by = f } }

// AnswerText is Answer with an ad in the old syntax, an attribute on each line.
func AnswerText(text string) Action { return Answer(mustParse(text)) }

// HangUpUnread ends the connection when no more of the call than its number was read.
func HangUpUnread() Action { return func(r *reaction) { r.unread = true } }

// HangUp ends the connection when the call was read, without an answer.
func HangUp() Action { return func(r *reaction) { r.hangUp = true } }

// HangUpIf is HangUp if cond says so when the call was read.
func HangUpIf(cond func() bool) Action { return func(r *reaction) { r.cond = cond } }

// HangUpWithin ends the connection after so many bytes of the answer as it travels
// (a packet's head has 5 bytes, encryption adds 16 or 32).
func HangUpWithin(bytes int) Action { return func(r *reaction) { r.half = bytes } }

// HangUpAfter ends the connection after so many bytes of the contents of a file: of
// the one that is about to be sent ([InputItem]) or received ([OutputItem]).
func HangUpAfter(bytes int64) Action { return func(r *reaction) { r.after = bytes } }

// Garbage puts bytes on the wire in the place of the answer, neither framed nor
// encrypted.
func Garbage(raw []byte) Action { return func(r *reaction) { r.raw = raw } }

// Say puts something else into the answer's message, which is well framed and
// encrypted: a lie, or one that is too long.
func Say(put func(*cedar.Stream)) Action {
	return func(r *reaction) {
		r.errno = 0
		r.say = func(s *cedar.Stream) error {
			put(s)
			return s.EndMessage()
		}
	}
}

// Instead has put say something in the place of the answer, messages or less than one. In the
// end everything that was put is sent.
func Instead(put func(*cedar.Stream)) Action {
	return func(r *reaction) {
		r.errno = 0
		r.say = func(s *cedar.Stream) error {
			put(s)
			return s.Flush()
		}
	}
}

// errHungUp ends a connection as the test wants it.
var errHungUp = errors.New("hung up, as the test wants it")

// mustParse reads an ad of a test.
func mustParse(text string) *classads.Ad {
	ad, err := classads.ParseOld(text)
	if err != nil {
		panic("an ad of a test: " + err.Error())
	}
	return ad
}
