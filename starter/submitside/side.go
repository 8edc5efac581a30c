package submitside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/sandbox/filetransfer"
	"podstarter/starter/orders"
)

// Connection is the connection to the shadow for calls, which can be lost and taken
// up again. *shadow.Client is one.
type Connection interface {
	// Lost is closed when the connection is lost; a connection that was taken up
	// again has another channel.
	Lost() <-chan struct{}
	LastCall() time.Time
	Await(ctx context.Context) error
	AwaitNext(ctx context.Context, lost <-chan struct{}) error
	Abandon(reason error) bool
	Over() error
	SetVersion(v version.Version)
	Resume(ctx context.Context, s *cedar.Stream, settle func(shadow.SecSessionInfo) error) error
}

// Transfer is told where the shadow takes and gives files.
type Transfer interface {
	SetPeer(dial filetransfer.Dial, key string)
}

// Side is where the shadow is. That changes when one shadow takes the place of
// another. All methods may be called by any goroutine.
type Side struct {
	shadow   Connection
	orders   *orders.Orders
	security Security
	log      *slog.Logger
	lease    atomic.Int64  // of the job, in ns; 0 until the job is known
	back     chan struct{} // buffered(1)
	entry    sync.Mutex    // held while a shadow comes back: one at a time

	mu       sync.Mutex
	starter  *classads.Ad // what a shadow that comes back is told of this starter
	client   *cedar.Client
	session  *cedar.Session // for files; nil if the shadow gave none
	socket   string
	key      string
	transfer Transfer // nil until there is one
}

// New returns a side that knows only the connection.
func New(c Connection, o *orders.Orders, security Security, log *slog.Logger) *Side {
	return &Side{shadow: c, orders: o, security: security, log: log, back: make(chan struct{}, 1)}
}

// Know takes what the job's ad says of its shadow, the job's lease, and what a shadow
// that comes back is to be told of this starter. The ad may change later.
func (s *Side) Know(ad *classads.Ad, info job.Info, starter *classads.Ad) {
	s.lease.Store(int64(info.Lease))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starter = starter
	s.socket = ad.StringOr("TransferSocket", info.ShadowAddress)
	s.key = ad.StringOr("TransferKey", "")
}

// Lease is how long the job may go on without a shadow; 0 until the job is known.
func (s *Side) Lease() time.Duration { return time.Duration(s.lease.Load()) }

// Back has a value when a shadow has come back.
func (s *Side) Back() <-chan struct{} { return s.back }

// Use makes a transfer go to the shadow, now and when it has moved.
func (s *Side) Use(t Transfer, client *cedar.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		if err := s.security.allowed(); err != nil {
			return err
		}
	}
	s.client, s.transfer = client, t
	t.SetPeer(s.dial, s.key)
	return nil
}

// dial connects to whichever shadow is there now.
func (s *Side) dial(ctx context.Context, command int) (*cedar.Stream, error) {
	s.mu.Lock()
	client, socket := s.client, s.socket
	s.mu.Unlock()
	return s.At(socket, client)(ctx, command)
}

// At returns how to reach another socket of the shadow for files, with the same session.
func (s *Side) At(socket string, client *cedar.Client) filetransfer.Dial {
	return func(ctx context.Context, command int) (*cedar.Stream, error) {
		s.mu.Lock()
		session := s.session
		s.mu.Unlock()
		if session == nil {
			return s.security.openly(ctx, client, socket, command)
		}
		return client.Command(ctx, socket, command, session)
	}
}

// Meet takes a shadow's session for files.
func (s *Side) Meet(info shadow.SecSessionInfo) error {
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

// move takes what a shadow that came back says about files. The rest stays.
func (s *Side) move(r shadow.Reconnect) {
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

var errLeaseOver = errors.New("the job's lease has run out")

// Keep watches the connection to the shadow until ctx ends. When it is lost, the job
// goes on until a shadow has come back or the job's lease has run out. The lease
// counts from the last call, as the shadow's own does, so that the job does not begin
// elsewhere while it runs here (jic_shadow.cpp:JICShadow::syscall_sock_disconnect,
// job_lease_expired).
func (s *Side) Keep(ctx context.Context) {
	for {
		gone := s.shadow.Lost()
		select {
		case <-gone:
		case <-ctx.Done():
			return
		}
		lost := time.Now()
		age := lost.Sub(s.shadow.LastCall())
		left := max(0, s.Lease()-age)
		s.log.Warn(fmt.Sprintf("Lost connection to shadow, last activity was %d secs ago, waiting %d secs for reconnect",
			int(age.Seconds()), int(left.Seconds())))
		wait, cancel := context.WithTimeout(ctx, left)
		err := s.shadow.AwaitNext(wait, gone) // a lease of its own for each loss
		cancel()
		away := int(time.Since(lost).Seconds())
		switch {
		case err == nil:
			s.log.Info(fmt.Sprintf("Recovered connection to shadow after %d seconds", away))
		case ctx.Err() != nil:
			return
		case !s.shadow.Abandon(errLeaseOver):
			// It came back at the last moment.
		default:
			s.log.Error(fmt.Sprintf("No reconnect from shadow for %d seconds, aborting job execution!", away))
			s.orders.End(orders.Demand{Reason: "the connection to the shadow is lost", Lost: true})
			return
		}
	}
}

// Await waits until there is a shadow to talk to. The shadow must still hear how
// the job ended, so only a demand that allows no delay ends the wait; the end of
// the lease is one.
func (s *Side) Await(ctx context.Context) error {
	ctx, release := s.orders.UntilHard(ctx)
	defer release()
	err := s.shadow.Await(ctx)
	if errors.Is(err, errLeaseOver) {
		<-ctx.Done() // Keep is about to order the end: what follows must know of it
		return context.Cause(ctx)
	}
	return err
}

// Reconnect is CA_CMD: a shadow, the same or another, wants its job back. The
// connection that it asks on becomes the one for calls
// (jic_shadow.cpp:JICShadow::reconnect).
func (s *Side) Reconnect(ctx context.Context, c *cedar.Call) error {
	r, err := shadow.ReadReconnect(c.Stream)
	if err != nil {
		return err
	}
	if c.User != shadow.SubmitSide {
		why := fmt.Sprintf("%s is not the job's shadow", c.User)
		return errors.Join(errors.New(why), shadow.Refuse(c.Stream, shadow.ResultNotAuthorized, why))
	}
	s.entry.Lock()
	defer s.entry.Unlock()
	if over := s.shadow.Over(); over != nil {
		why := fmt.Errorf("the job is being ended: %w", over)
		return errors.Join(why, shadow.Refuse(c.Stream, shadow.ResultInvalidState, why.Error()))
	}
	s.mu.Lock()
	info := s.starter.Clone()
	s.mu.Unlock()
	info.SetInt("MyCurrentTime", time.Now().Unix())
	if err := shadow.Accept(c.Stream, info); err != nil {
		return err
	}
	s.log.Info("Accepted request to reconnect from " + c.Stream.Peer())
	s.log.Info(job.LineShadow(r.Address))
	if peer, err := version.Parse(r.Version); err != nil {
		s.log.Warn("The shadow's version is not known; the last one known is assumed", "error", err)
	} else {
		s.shadow.SetVersion(peer)
	}
	// The server lets go of the stream only when this returns, and would interrupt
	// the calls to come if it ended meanwhile: it ends with the activation.
	err = s.shadow.Resume(ctx, c.Keep(), func(info shadow.SecSessionInfo) error {
		s.move(r)
		return s.Meet(info)
	})
	if err != nil {
		return err
	}
	select {
	case s.back <- struct{}{}:
	default: // it is known already that one came back
	}
	return nil
}
