package condortest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/startd"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// handedTimeout is the timeout of a connection that a startd hands down.
const handedTimeout = 20 * time.Second

// Activation is one starter's part of a [Startd]: what it inherits, and orders to it.
type Activation struct {
	startd         *Startd
	parent, family *cedar.Session
	private        string
	address        string // of the starter
	listener       *net.TCPListener
	syscall        *cedar.Stream // nil for a job without a shadow
	update         net.Conn      // the starter's end
	peer           net.Conn      // the startd's

	mu     sync.Mutex
	handed bool
}

// Activate has a shadow activate a claim, and makes what a starter inherits then.
func (d *Startd) Activate(t testing.TB, s *Shadow) *Activation {
	t.Helper()
	a, err := d.activation(t.Context(), s)
	must(t, err)
	return a
}

// Fetch makes what a starter inherits whose job the startd has fetched itself: there is no shadow. The job's ad is the test's.
func (d *Startd) Fetch(t testing.TB) *Activation {
	t.Helper()
	a, err := d.activation(t.Context(), nil)
	must(t, err)
	return a
}

func (d *Startd) activation(ctx context.Context, s *Shadow) (*Activation, error) {
	a := &Activation{startd: d}
	var err error
	if s != nil {
		if a.syscall, err = d.admit(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := a.makeSessions(); err != nil {
		return nil, err
	}
	if a.update, a.peer, err = connected(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a.listener = l.(*net.TCPListener)
	a.address = "<" + l.Addr().String() + "?alias=localhost&noUDP>"
	st := cedar.NewStream(a.peer)
	if err := d.introduce(st, s); err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.active = append(d.active, a)
	d.mu.Unlock()
	d.served.Go(func() { d.hearUpdates(st) })
	return a, nil
}

// makeSessions makes the starter's sessions with the startd and with all of its family.
func (a *Activation) makeSessions() error {
	d := a.startd
	parent := random(24) + "#" + d.policy() + random(32)
	family := "family:" + random(24) + "#" + d.policy() + random(32)
	a.private = privateInherit(parent, family)
	for _, id := range []string{parent, family} {
		if err := d.know(id, "condor@child"); err != nil {
			return err
		}
	}
	var err, err2 error
	a.parent, err = cedar.ImportSession(parent, "condor@child", cedar.Daemon)
	a.family, err2 = cedar.ImportSession(family, "condor@family", cedar.Daemon)
	return errors.Join(err, err2)
}

// connected are the two ends of a connection.
func connected() (mine, theirs net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if theirs, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	mine, err = l.Accept()
	return mine, theirs, err
}

// SplitClaim is the secret by which a shadow gets what is left of a slot.
const SplitClaim = "<127.0.0.1:1>#1#2#split"

// introduce writes what a startd writes before it spawns the starter: the slot's ad, the
// overlay, and since 24.9.2 what is secret.
func (d *Startd) introduce(st *cedar.Stream, s *Shadow) error {
	machine := d.Machine()
	claim := cedar.ClaimID{SessionID: "<127.0.0.1:1>#1#1", Public: "<127.0.0.1:1>#1#1", Key: "fetched"}
	if s != nil {
		s.mu.Lock()
		claim = s.claim
		s.mu.Unlock()
	}
	if machine.Has("PublicClaimId") {
		machine.SetString("PublicClaimId", claim.Public+"#...")
	}
	st.PutAdWith(machine, cedar.AdOptions{OmitPrivate: true})
	st.PutAdWith(d.overlay, cedar.AdOptions{})
	if err := st.EndMessage(); err != nil {
		return err
	}
	if version.Of(d.version).AtLeast(24, 9, 2) {
		secrets := mustParse("")
		secrets.SetString("ClaimId", claim.Secret())
		if d.options.Split {
			secrets.SetString("SplitClaimId", SplitClaim)
		}
		st.PutAd(secrets)
		if err := st.EndMessage(); err != nil {
			return err
		}
	}
	return st.Flush()
}

// hearUpdates reads the update socket to its end.
func (d *Startd) hearUpdates(st *cedar.Stream) {
	defer st.Close()
	defer d.add(Heard{Call: Closed})
	for {
		kind, err := st.GetInt()
		if err != nil {
			return
		}
		ad, err := st.GetAd()
		if err := end(st, err); err != nil {
			return
		}
		h := Heard{Call: Update, Ad: adOf(ad)}
		switch kind {
		case 1:
			h.Call = Final
		case 2:
			h.Call = Color
		case 3:
			h.Call = Announce
		}
		r, err := d.hear(h)
		if err == nil && kind > 1 {
			err = answerUpdate(st, r)
		}
		if err != nil {
			return
		}
	}
}

// answerUpdate answers an update with the plan's ad.
func answerUpdate(st *cedar.Stream, r *reaction) error {
	ad := r.ad
	if ad == nil {
		ad = mustParse("Result = true")
	}
	st.PutAd(ad)
	return st.EndMessage()
}

// Env are the variables that the starter inherits, for startd.Inherit; the sockets in them
// are descriptors of this process, and belong to whoever reads them. Of Env and Give one may
// be called, once.
func (a *Activation) Env(t testing.TB) []string {
	t.Helper()
	return a.hand(t, func(fd int) int { return fd })
}

// Give makes a command, which has neither environment nor files yet, a starter of this
// activation: it adds what the starter inherits.
func (a *Activation) Give(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	const firstExtra = 3 // os/exec.Cmd.ExtraFiles
	cmd.Env = append(cmd.Env, a.hand(t, func(fd int) int {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "inherited socket"))
		return firstExtra + len(cmd.ExtraFiles) - 1
	})...)
}

// hand gives the starter's ends away. number is what the starter knows a descriptor by.
func (a *Activation) hand(t testing.TB, number func(fd int) int) []string {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.handed {
		t.Fatal("an activation is for one starter")
	}
	a.handed = true
	update, err := descriptor(a.update)
	must(t, err)
	port, err := descriptor(a.listener)
	must(t, err)
	updateText, err := cedar.NewStream(a.update).Serialize(number(update))
	must(t, err)
	connections := "1 " + updateText
	if a.syscall != nil {
		calls, err := descriptor(a.syscall.Conn())
		must(t, err)
		callsText, err := a.syscall.Serialize(number(calls))
		must(t, err)
		connections += " 1 " + callsText
	}
	a.drop()
	env := []string{
		fmt.Sprintf("CONDOR_INHERIT=%d %s %s 0 1 %d*2*0*0*0*0***1**0*0*0*0*0*0*0* 0", a.startd.pid, a.startd.address, connections, number(port)),
		fmt.Sprintf("CONDOR_PARENT_ID=localhost:%d:1795253046", a.startd.pid),
	}
	if !a.startd.options.NoSessions {
		env = append(env, "CONDOR_PRIVATE_INHERIT="+a.private)
	}
	return env
}

// descriptor duplicates the descriptor of a socket.
func descriptor(s any) (int, error) {
	file, ok := s.(interface{ File() (*os.File, error) })
	if !ok {
		return -1, fmt.Errorf("a %T has no descriptor", s)
	}
	f, err := file.File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
}

// drop closes the starter's ends in the startd, as a startd does that has spawned it.
func (a *Activation) drop() {
	a.update.Close()
	if a.syscall != nil {
		a.syscall.Conn().Close()
	}
	a.listener.Close()
}

// close closes what the startd has of it.
func (a *Activation) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peer.Close()
	if !a.handed {
		a.drop()
	}
}

// Address is the starter's address.
func (a *Activation) Address() string { return a.address }

// CloseUpdates ends the update socket from the startd's side.
func (a *Activation) CloseUpdates() { a.peer.Close() }

// Orders that startds give.
var (
	// Deactivated is the order when the shadow gives a claim up, for whatever reason.
	Deactivated = startd.Vacate{Reason: "Claim deactivated", Code: 1009, Soft: true}
	// DeactivatedFast is the same, without mercy.
	DeactivatedFast = startd.Vacate{Reason: "Claim deactivated forcibly", Code: 1009}
	// Preempted makes room for another job.
	Preempted = startd.Vacate{Reason: "Claim preempted", Code: 1011, Soft: true}
)

// Vacate orders the starter to end its job; the test fails if that is not heard. It may be
// called from any goroutine.
func (a *Activation) Vacate(t testing.TB, v startd.Vacate) {
	t.Helper()
	if err := a.TryVacate(t.Context(), v); err != nil {
		t.Errorf("order the starter to vacate: %v", err)
	}
}

// TryVacate is Vacate for a starter that may not listen.
func (a *Activation) TryVacate(ctx context.Context, v startd.Vacate) error {
	st, err := a.startd.client.Command(ctx, a.address, cedar.StarterVacateJob, a.family)
	if err != nil {
		return err
	}
	defer st.Close()
	st.PutString(v.Reason)
	st.PutInt(int64(v.Code))
	st.PutInt(int64(v.Subcode))
	st.PutBool(v.Soft)
	if err := st.EndMessage(); err != nil {
		return err
	}
	n, err := st.GetInt()
	if err := end(st, err); err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("the starter answers %d to an order to vacate", n)
	}
	return nil
}

// Signal sends DC_RAISESIGNAL: one of cedar.DCSigSuspend and the like, or a signal of
// the operating system. It returns when the signal is on its way; there is no answer.
func (a *Activation) Signal(ctx context.Context, number int) error {
	st, err := a.startd.client.Start(ctx, cedar.Command{Addr: a.address, Number: cedar.DCRaiseSignal, Session: a.parent, NoResponse: true})
	if err != nil {
		return err
	}
	defer st.Close()
	st.PutInt(int64(number))
	return st.EndMessage()
}

// Command sends another command, such as cedar.DCOffGraceful, as a daemon of the same family.
// Daemons send those without fields, and then nothing but the command's name: no message that
// is made with the session's key.
func (a *Activation) Command(ctx context.Context, number int, fields ...int64) error {
	st, err := a.startd.client.Command(ctx, a.address, number, a.family)
	if err != nil {
		return err
	}
	defer st.Close()
	for _, n := range fields {
		st.PutInt(n)
	}
	return st.EndMessage()
}
