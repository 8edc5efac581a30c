package condortest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// StartdOptions are what a test wants of its startd. The zero value is the startd of the
// recording "25.14/plain".
type StartdOptions struct {
	// Recording is what it goes by: a version and a case of testdata/streams.
	Recording string
	// Machine are attributes in the old syntax, one on each line, that replace those of the
	// recorded slot; Without are those that it does not have.
	Machine string
	Without []string
	// Overlay replaces attributes of the job's ad, in the old syntax.
	Overlay string
	// Split gives starters the secret [SplitClaim], as for a data slot.
	Split bool
	// Mortal gives the startd a process of its own, which [Startd.Die] ends. Otherwise
	// the process of the test is taken for the startd.
	Mortal bool
	// NoSessions hands down no sessions, as a startd without them.
	NoSessions bool
}

// Startd is a startd: it hands starters their sockets, hears their updates and keep-alives,
// and gives them orders.
type Startd struct {
	Recorder
	Plan

	options StartdOptions
	version string // $CondorVersion$ of the recording
	machine *classads.Ad
	overlay *classads.Ad
	address string
	server  *cedar.Server
	client  *cedar.Client
	served  sync.WaitGroup
	cancel  context.CancelFunc
	streams chan *cedar.Stream // of claims that are being activated

	pid     int
	process *exec.Cmd

	mu     sync.Mutex
	claims int
	active []*Activation
}

// NewStartd starts a startd, which ends with the test.
func NewStartd(t testing.TB, o StartdOptions) *Startd {
	t.Helper()
	if o.Recording == "" {
		o.Recording = usual
	}
	d := &Startd{options: o, machine: recordedMachine(t, o.Recording), pid: os.Getpid(), streams: make(chan *cedar.Stream, 1)}
	d.version = d.machine.StringOr("CondorVersion", "")
	changes, err := classads.ParseOld(o.Machine)
	must(t, err)
	d.machine.Update(changes)
	for _, name := range o.Without {
		d.machine.Delete(name)
	}
	d.overlay, err = classads.ParseOld(o.Overlay)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d.address = "<" + l.Addr().String() + "?alias=localhost&noUDP>"
	d.client = &cedar.Client{Version: d.version, Own: d.address, Name: "STARTD", Timeout: patience}
	d.server = &cedar.Server{Sessions: cedar.NewSessions(), Version: d.version, PayloadTimeout: patience}
	d.server.Handle(activateClaim, cedar.Daemon, d.serveActivation)
	d.server.Handle(cedar.DCChildAlive, cedar.Daemon, d.serveAlive)
	d.server.Handle(cedar.ReactivateClaimCheck, cedar.Daemon, d.serveAgain)
	d.server.Handle(cedar.QueryStartdAds, cedar.Read, d.serveSlot)
	if o.Mortal {
		d.embody(t)
	}
	over := make(chan struct{})
	d.over = over
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.served.Go(func() {
		if err := d.server.Serve(ctx, l); err != nil {
			t.Errorf("the startd's port: %v", err)
		}
	})
	t.Cleanup(func() {
		close(over)
		d.end()
		d.served.Wait()
	})
	return d
}

// embody gives the startd a process, which ends with the test at the latest.
func (d *Startd) embody(t testing.TB) {
	t.Helper()
	d.process = exec.Command("cat")
	stdin, err := d.process.StdinPipe()
	must(t, err)
	must(t, d.process.Start())
	d.pid = d.process.Process.Pid
	t.Cleanup(func() {
		stdin.Close()
		_ = d.process.Wait()
	})
}

// Address is where it takes commands, in angle brackets.
func (d *Startd) Address() string { return d.address }

// Machine is the slot's ad as starters get it.
func (d *Startd) Machine() *classads.Ad { return d.machine.Clone() }

// end closes all that leads to the startd.
func (d *Startd) end() {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.active {
		a.close()
	}
}

// Die ends the startd: its process, its port and its ends of all sockets.
func (d *Startd) Die(t testing.TB) {
	t.Helper()
	if d.process == nil {
		t.Fatal("a startd that shall die must be Mortal")
	}
	d.end()
	must(t, d.process.Process.Kill())
}

// policy is what sessions of this startd carry.
func (d *Startd) policy() string {
	return fmt.Sprintf(`[Integrity="YES";Encryption="YES";ShortVersion=%q;CryptoMethods="BLOWFISH";CryptoMethodsList="AES.BLOWFISH.3DES";]`, version.Of(d.version).String())
}

// newClaim makes a claim and knows its session.
func (d *Startd) newClaim() (string, error) {
	d.mu.Lock()
	d.claims++
	n := d.claims
	d.mu.Unlock()
	id := fmt.Sprintf("%s#1795253046#%d#%s%s", d.address, n, d.policy(), random(32))
	return id, d.know(id, "submit-side@matchsession")
}

// know takes the holder of a session for a user who may do all.
func (d *Startd) know(id, user string) error {
	s, err := cedar.ImportSession(id, user, cedar.Administrator, cedar.Daemon)
	if err == nil {
		err = d.server.Sessions.Add(s)
	}
	return err
}

// admit has a shadow activate a claim. The result is the starter's end of their connection.
func (d *Startd) admit(ctx context.Context, s *Shadow) (*cedar.Stream, error) {
	claim, err := d.newClaim()
	if err != nil {
		return nil, err
	}
	if err := s.activate(ctx, d.address, claim); err != nil {
		return nil, err
	}
	st := <-d.streams
	st.SetTimeout(handedTimeout)
	return st, nil
}

// serveActivation is ACTIVATE_CLAIM: the connection is kept for the starter.
func (d *Startd) serveActivation(_ context.Context, c *cedar.Call) error {
	_, err := c.Stream.GetSecret()
	_, err2 := c.Stream.GetInt()
	_, err3 := c.Stream.GetAd()
	if err := errors.Join(err, err2, err3, c.Stream.EndOfMessage()); err != nil {
		return err
	}
	if err := result(c.Stream, 1); err != nil {
		return err
	}
	d.streams <- c.Keep()
	return nil
}

// serveAlive is DC_CHILDALIVE.
func (d *Startd) serveAlive(_ context.Context, c *cedar.Call) error {
	pid, err := c.Stream.GetInt()
	hang, err2 := c.Stream.GetInt()
	_, err3 := c.Stream.GetDouble()
	if err := errors.Join(err, err2, err3, c.Stream.EndOfMessage()); err != nil {
		return err
	}
	_, err = d.hear(Heard{Call: Alive, Ints: []int64{pid, hang}})
	return err
}

// serveAgain is REACTIVATE_CLAIM_CHECK. It says yes, unless the plan has another answer:
// AnswerText("Start = false").
func (d *Startd) serveAgain(_ context.Context, c *cedar.Call) error {
	_, err := c.Stream.GetSecret()
	if err := end(c.Stream, err); err != nil {
		return err
	}
	r, err := d.hear(Heard{Call: Again})
	if err != nil {
		return err
	}
	ad := r.ad
	if ad == nil {
		ad = mustParse("Start = true")
	}
	if r.say != nil {
		return r.say(c.Stream)
	}
	c.Stream.PutAd(ad)
	return c.Stream.EndMessage()
}

// serveSlot is QUERY_STARTD_ADS. It says that the slot is claimed, unless the plan has another
// answer.
func (d *Startd) serveSlot(_ context.Context, c *cedar.Call) error {
	_, err := c.Stream.GetAd()
	if err := end(c.Stream, err); err != nil {
		return err
	}
	r, err := d.hear(Heard{Call: Slot})
	if err != nil {
		return err
	}
	ad := r.ad
	if ad == nil {
		ad = mustParse(`State = "Claimed"`)
	}
	c.Stream.PutInt(1)
	c.Stream.PutAd(ad)
	c.Stream.PutInt(0)
	return c.Stream.EndMessage()
}

// hear writes something down and does what the plan has for it; an error ends the connection.
func (d *Startd) hear(h Heard) (*reaction, error) {
	r := d.at(h.Call)
	d.add(h)
	d.begin(r, h)
	if r.hangUp || r.unread {
		return r, errHungUp
	}
	return r, nil
}

// privateInherit is CONDOR_PRIVATE_INHERIT with these sessions.
func privateInherit(parent, family string) string {
	return strings.TrimSpace("SessionKey:" + parent + " FamilySessionKey:" + family)
}
