package condortest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"podstarter/classads"
)

// Heard is one thing that a peer heard. It is comparable with go-cmp.
type Heard struct {
	// Call is its name, as HTCondor calls it ("job_exit"), or one of the names
	// below for what is not a call.
	Call  string
	Ints  []int64  // the numbers in it, in order
	Texts []string // the strings in it, in order
	Body  string   // bytes: those of a write, or of a file
	Ad    Ad       // the ad in it; nil if there is none
}

// Names of what a [Shadow] hears besides calls.
const (
	Input     = "input"      // the starter wants the input files; Texts: the key
	InputItem = "input_item" // one of them is about to be sent; Texts: its name. Ints: command
	// InputAnswer is the starter's answer to an item about other items; Texts: name. Ad
	InputAnswer = "input_answer"
	InputAck    = "input_ack" // the starter's report of the input; Ad. A [Plan] is for the shadow's, which comes before

	Output     = "output"      // the starter brings files; Texts: the key
	OutputInfo = "output_info" // Ints: 1 for the last time, 0 for a checkpoint; Ad
	OutputItem = "output_item" // Texts: name. Ints: command and, for files and directories, mode. Body or Ad: contents
	OutputAck  = "output_ack"  // the starter's report of the output; Ad

	GoAhead  = "go_ahead"   // the starter asks whether a transfer may begin; Ints: seconds that it waits for an answer
	Kerberos = "kerberos"   // the starter wants the Kerberos credential; Texts: user and domain
	Closed   = "closed"     // the connection has ended
	Replied  = "reconnect"  // the starter's reply to a shadow that comes back; Ad
	Alive    = "alive"      // keep-alive to a [Startd]; Ints: process id and seconds
	Update   = "update"     // an update on the update socket of a [Startd]; Ad
	Final    = "final"      // the last update; Ad
	Color    = "color"      // a data slot's common files in the older form; Ad. The answer is an ad, usually Result = true
	Announce = "announce"   // a catalog of common files; the same
	Again    = "reactivate" // the starter asks whether the claim may go on
	Slot     = "slot"       // the starter asks for the state of its slot
)

// Ad are the attributes of an ad: expressions as text, as HTCondor writes them.
type Ad map[string]string

// adOf makes an Ad; nil stays nil.
func adOf(ad *classads.Ad) Ad {
	if ad == nil {
		return nil
	}
	all := Ad{}
	for name, e := range ad.All() {
		all[name] = e.OldString()
	}
	return all
}

// Text is an attribute without the quotes of a string; empty if it is not there.
func (a Ad) Text(name string) string {
	for n, expr := range a {
		if !strings.EqualFold(n, name) {
			continue
		}
		if e, err := classads.ParseOldExpr(expr); err == nil {
			if s, ok := e.Eval(classads.Env{}).Str(); ok {
				return s
			}
		}
		return expr
	}
	return ""
}

// String is what was heard in one line, for lists of what happened: the name, what an
// ad is about (JobState, EventType, RequestType or an error), strings and numbers.
func (h Heard) String() string {
	words := []string{h.Call}
	for _, name := range []string{"JobState", "EventType", "RequestType", "ErrorMsg", "Info"} {
		if s := h.Ad.Text(name); s != "" {
			words = append(words, s)
		}
	}
	for _, s := range h.Texts {
		words = append(words, fmt.Sprintf("%q", s))
	}
	for _, n := range h.Ints {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, " ")
}

// Match says whether something is what a test waits for.
type Match func(Heard) bool

// Call matches by name.
func Call(name string) Match { return func(h Heard) bool { return h.Call == name } }

// With matches only what has this value of an attribute, without quotes.
func (m Match) With(attribute, value string) Match {
	return func(h Heard) bool { return m(h) && h.Ad.Text(attribute) == value }
}

// About matches only what has this string.
func (m Match) About(text string) Match {
	return func(h Heard) bool { return m(h) && slices.Contains(h.Texts, text) }
}

// Recorder keeps what a peer heard. It may be used by several goroutines.
type Recorder struct {
	mu    sync.Mutex
	heard []Heard
	more  chan struct{} // closed when something is added; nil while nobody waits
}

func (r *Recorder) add(h Heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, h)
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// Heard is everything so far, in the order in which it was heard.
func (r *Recorder) Heard() []Heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heard)
}

// Forget forgets everything so far.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = nil
}

// Story is everything so far, as [Heard.String] has it. With names, only what is called so.
func (r *Recorder) Story(names ...string) (lines []string) {
	for _, h := range r.Heard() {
		if len(names) == 0 || slices.Contains(names, h.Call) {
			lines = append(lines, h.String())
		}
	}
	return lines
}

// Count is how often something was heard.
func (r *Recorder) Count(m Match) (n int) {
	for _, h := range r.Heard() {
		if m(h) {
			n++
		}
	}
	return n
}

// patience is how long a test waits for what does not come. It does not decide
// about success: what is waited for is expected at once.
const patience = time.Minute

// Wait returns the first thing heard that matches, waiting for it if need be.
func (r *Recorder) Wait(t testing.TB, m Match) Heard {
	t.Helper()
	return r.WaitN(t, m, 1)
}

// WaitN returns the n-th thing heard that matches, waiting for it if need be. It must
// be called by the goroutine of the test.
func (r *Recorder) WaitN(t testing.TB, m Match, n int) Heard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h, err := r.Await(ctx, m, n)
	if err != nil {
		t.Fatalf("what was waited for was not heard, only\n%s", strings.Join(r.Story(), "\n"))
	}
	return h
}

// Await is WaitN for any goroutine; the error is ctx's.
func (r *Recorder) Await(ctx context.Context, m Match, n int) (Heard, error) {
	for {
		r.mu.Lock()
		left := n
		for _, h := range r.heard {
			if m(h) {
				if left--; left == 0 {
					r.mu.Unlock()
					return h, nil
				}
			}
		}
		if r.more == nil {
			r.more = make(chan struct{})
		}
		more := r.more
		r.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return Heard{}, context.Cause(ctx)
		}
	}
}
