package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/sandbox/filetransfer"
	"podstarter/starter/orders"
)

// submitSide is where the shadow is: it moves when one takes the place of
// another. Calls are the client's matter; this is about files, for which the
// starter calls the shadow.
type submitSide struct {
	mu       sync.Mutex
	client   *cedar.Client
	session  *cedar.Session // for files; nil if the shadow gave none
	socket   string
	key      string
	transfer *filetransfer.Transfer // nil until there is one

	starter *classads.Ad  // what those that come back are told of this starter
	entry   sync.Mutex    // one comes back at a time
	back    chan struct{} // buffered(1): one has
}

// dial connects to whichever shadow is there now.
func (s *submitSide) dial(ctx context.Context, command int) (*cedar.Stream, error) {
	s.mu.Lock()
	client, socket, session := s.client, s.socket, s.session
	s.mu.Unlock()
	return client.Command(ctx, socket, command, session)
}

// use makes a transfer go to the shadow, now and when it has moved.
func (s *submitSide) use(t *filetransfer.Transfer, client *cedar.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return errors.New("the shadow gave no session for file transfer; is SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION off?")
	}
	s.client, s.transfer = client, t
	t.SetPeer(s.dial, s.key)
	return nil
}

// meet takes the session for files of a shadow.
func (s *submitSide) meet(info shadow.SecSessionInfo) error {
	if !info.FileTransfer.Given() {
		return nil
	}
	session, err := info.FileTransfer.Import(cedar.Daemon)
	if err != nil {
		return fmt.Errorf("take over the shadow's session for files: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
	return nil
}

// move takes what a shadow that came back says about files. What it does not
// say stays.
func (s *submitSide) move(r shadow.Reconnect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.TransferSocket != "" {
		s.socket = r.TransferSocket
	}
	if key := r.TransferKey(); key != "" {
		s.key = key
	}
	if s.transfer != nil {
		s.transfer.SetPeer(s.dial, s.key)
	}
}

// keepShadow goes along with the connection to the shadow until ctx ends. When
// it is lost, the job goes on until a shadow has come back or the job's lease
// has run out; the lease counts from the last call, as the shadow's own does,
// so that the job is not begun elsewhere while it runs here
// (jic_shadow.cpp:JICShadow::syscall_sock_disconnect, job_lease_expired).
func (a *activation) keepShadow(ctx context.Context) {
	for {
		select {
		case <-a.shadow.Lost():
		case <-ctx.Done():
			return
		}
		lost := time.Now()
		age := lost.Sub(a.shadow.LastCall())
		left := max(0, a.jobLease()-age)
		a.log.Warn(fmt.Sprintf("Lost connection to shadow, last activity was %d secs ago, waiting %d secs for reconnect",
			int(age.Seconds()), int(left.Seconds())))
		wait, cancel := context.WithTimeout(ctx, left)
		err := a.shadow.Await(wait)
		cancel()
		away := int(time.Since(lost).Seconds())
		switch {
		case err == nil:
			a.log.Info(fmt.Sprintf("Recovered connection to shadow after %d seconds", away))
		case ctx.Err() != nil:
			return
		case !a.shadow.Abandon(errLeaseOver):
			// It came back in the last moment.
		default:
			a.log.Error(fmt.Sprintf("No reconnect from shadow for %d seconds, aborting job execution!", away))
			a.orders.End(orders.Demand{Reason: "the connection to the shadow is lost", Lost: true})
			return
		}
	}
}

var errLeaseOver = errors.New("the job's lease has run out")

// jobLease is the job's lease, 0 as long as the job is not known.
func (a *activation) jobLease() time.Duration { return time.Duration(a.leaseTime.Load()) }

// awaitShadow waits until there is a shadow to talk to. What it is to be told
// is what is left of the job, so only an order that allows no delay, as is the
// end of the lease, cuts the waiting short.
func (a *activation) awaitShadow(ctx context.Context) error {
	ctx, release := a.orders.UntilHard(ctx)
	defer release()
	return a.shadow.Await(ctx)
}

// introduce says who this starter is, for a shadow that begins and for those
// that come back.
func (a *activation) introduce(withSlot bool) *classads.Ad {
	ad := job.Registration(job.Starter{
		Address: a.address, Scratch: a.scratchPath(),
		Version: a.version(), Platform: a.machine.StringOr("CondorPlatform", ""),
		Machine:          a.machine.StringOr("Machine", ""),
		UIDDomain:        a.set.Condor.UIDDomain,
		FilesystemDomain: a.set.Condor.FilesystemDomain,
		Now:              now().Unix(),
	}, a.ad, a.machine, withSlot)
	// A shadow that comes back proves that it may by the claim's key.
	ad.SetBool("HasReconnect", a.shadow.Encrypted())
	return ad
}

// commandReconnect is CA_CMD: a shadow, the same or another, wants its job
// back. The connection that it asks on becomes the one for calls
// (jic_shadow.cpp:JICShadow::reconnect).
func (a *activation) commandReconnect(ctx context.Context, c *cedar.Call) error {
	r, err := shadow.ReadReconnect(c.Stream)
	if err != nil {
		return err
	}
	if c.User != shadow.SubmitSide {
		why := fmt.Sprintf("%s is not the job's shadow", c.User)
		return errors.Join(errors.New(why), shadow.Refuse(c.Stream, shadow.ResultNotAuthorized, why))
	}
	a.submit.entry.Lock()
	defer a.submit.entry.Unlock()
	if over := a.shadow.Over(); over != nil {
		why := fmt.Errorf("the job is being ended: %w", over)
		return errors.Join(why, shadow.Refuse(c.Stream, shadow.ResultInvalidState, why.Error()))
	}
	info := a.submit.starter.Clone()
	info.SetInt("MyCurrentTime", now().Unix())
	if err := shadow.Accept(c.Stream, info); err != nil {
		return err
	}
	a.log.Info("Accepted request to reconnect from " + c.Stream.Peer())
	a.log.Info(job.LineShadow(r.Address))
	if peer, err := version.Parse(r.Version); err != nil {
		a.log.Warn("The shadow's version is not known; it is taken to be what it was", "error", err)
	} else {
		a.shadow.SetVersion(peer)
	}
	// The server lets go of the stream only when this returns, and would
	// interrupt the calls to come if it ended meanwhile: it ends with the
	// activation.
	err = a.shadow.Resume(ctx, c.Keep(), func(info shadow.SecSessionInfo) error {
		a.submit.move(r)
		return a.submit.meet(info)
	})
	if err != nil {
		return err
	}
	select {
	case a.submit.back <- struct{}{}:
	default: // that one came back is known already
	}
	return nil
}
