package startd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// Numbers that precede an ad on the update socket
// (condor_utils/starter_commands.h).
const (
	commandUpdate      = 0
	commandFinalUpdate = 1
	commandColor       = 2
	commandAnnounce    = 3
)

// updateTimeout limits each wait on the update socket. Data to read was written
// before the starter was spawned; data to write fits into the socket's buffer
// unless the startd has been stuck for hours.
const updateTimeout = 60 * time.Second

// ErrClosed is in the error chain of an update after the final one, or after
// the socket broke.
var ErrClosed = errors.New("the update socket to the startd is closed")

// Machine is what the startd tells a starter about the slot.
type Machine struct {
	Ad      *classads.Ad // the slot's ad
	Overlay *classads.Ad // replaces attributes of the job's ad; nil if empty
	Secrets *classads.Ad // ClaimId and perhaps SplitClaimId; nil if not sent. never show it
}

// UpdateSocket is the connection for updates to the startd. It is safe for
// concurrent use.
type UpdateSocket struct {
	log *slog.Logger

	mu     sync.Mutex
	stream *cedar.Stream
	broken error
}

// NewUpdateSocket makes an UpdateSocket of the inherited stream, and owns it
// from then on.
func NewUpdateSocket(s *cedar.Stream, log *slog.Logger) *UpdateSocket {
	s.SetTimeout(updateTimeout)
	return &UpdateSocket{log: log, stream: s}
}

// ReadMachine reads what the startd wrote before it spawned the starter: one
// message with the slot's ad and the overlay, and since 24.9.2 one with
// secrets. Call it once, before any update
// (condor_startd.V6/claim.cpp:Claim::writeMachAdAndOverlay,
// condor_starter.V6.1/jic_shadow.cpp:JICShadow::receiveMachineAd).
func (u *UpdateSocket) ReadMachine(ctx context.Context) (Machine, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken != nil {
		return Machine{}, u.broken
	}
	defer u.stream.Cancel(ctx)()
	m, err := readMachine(u.stream)
	if err != nil {
		return Machine{}, u.fail(fmt.Errorf("reading the slot's ad from the startd: %w", err))
	}
	return m, nil
}

func readMachine(s *cedar.Stream) (Machine, error) {
	var m Machine
	var err error
	if m.Ad, err = s.GetAd(); err != nil {
		return m, err
	}
	if m.Overlay, err = s.GetAd(); err != nil {
		return m, fmt.Errorf("overlay: %w", err)
	}
	if err := s.EndOfMessage(); err != nil {
		return m, err
	}
	if m.Overlay.Len() == 0 {
		m.Overlay = nil
	}
	// An older startd sends no more; waiting would never end.
	if !version.Of(m.Ad.StringOr("CondorVersion", "")).AtLeast(24, 9, 2) {
		return m, nil
	}
	if m.Secrets, err = s.GetAd(); err == nil {
		err = s.EndOfMessage()
	}
	if err != nil {
		return m, fmt.Errorf("secrets: %w", err)
	}
	if m.Secrets.Len() == 0 {
		m.Secrets = nil
	}
	return m, nil
}

// Update merges an ad into the startd's copy of the job's ad. Its StarterIpAddr
// tells shadow and tools how to reach this starter.
func (u *UpdateSocket) Update(ctx context.Context, ad *classads.Ad) error {
	return u.send(ctx, commandUpdate, ad)
}

// FinalUpdate sends the last update and closes the socket: the startd then
// considers the slot as being cleaned up, and sends no more orders.
func (u *UpdateSocket) FinalUpdate(ctx context.Context, ad *classads.Ad) error {
	err := u.send(ctx, commandFinalUpdate, ad)
	if e := u.Close(); err == nil && e != nil {
		err = fmt.Errorf("closing the update socket to the startd: %w", e)
	}
	return err
}

// Color tells the startd about the common files of this slot, in the form of 25.10 and 25.11
// (claim.cpp:Claim::receiveUpdateCommand, COLOR). The result is the startd's answer.
func (u *UpdateSocket) Color(ctx context.Context, ad *classads.Ad) (*classads.Ad, error) {
	return u.ask(ctx, commandColor, ad)
}

// AnnounceCatalog tells the startd about one catalog of common files, in the form of 25.12
// and later (ANNOUNCE_CATALOG). The result is the startd's answer.
func (u *UpdateSocket) AnnounceCatalog(ctx context.Context, ad *classads.Ad) (*classads.Ad, error) {
	return u.ask(ctx, commandAnnounce, ad)
}

// ask sends an ad that the startd answers with another. The startd may be busy, but an answer
// that comes after the wait would be taken for another one's: the socket is closed then.
func (u *UpdateSocket) ask(ctx context.Context, command int64, ad *classads.Ad) (*classads.Ad, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken != nil {
		return nil, u.broken
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("asking the startd: %w", err)
	}
	err := u.put(command, ad)
	var answer *classads.Ad
	if err == nil {
		answer, err = u.stream.GetAd()
	}
	if err == nil {
		err = u.stream.EndOfMessage()
	}
	if err != nil {
		return nil, u.fail(fmt.Errorf("asking the startd: %w", err))
	}
	return answer, nil
}

// put sends one message.
func (u *UpdateSocket) put(command int64, ad *classads.Ad) error {
	u.stream.PutInt(command)
	u.stream.PutAdWith(ad, cedar.AdOptions{OmitPrivate: true}) // the socket is not encrypted
	return u.stream.EndMessage()
}

func (u *UpdateSocket) send(ctx context.Context, command int64, ad *classads.Ad) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken != nil {
		return u.broken
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("sending an update to the startd: %w", err)
	}
	defer u.stream.Cancel(ctx)()
	if err := u.put(command, ad); err != nil {
		return u.fail(fmt.Errorf("sending an update to the startd: %w", err))
	}
	u.log.Debug("Sent job ClassAd update to startd.")
	return nil
}

// fail closes the socket: half a message may be on its way, and the startd
// takes both garbage and the end of the socket for the final update.
func (u *UpdateSocket) fail(err error) error {
	u.broken = fmt.Errorf("%w: %w", ErrClosed, err)
	u.stream.Close()
	return err
}

// Close closes the socket, which the startd takes for a final update.
func (u *UpdateSocket) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken != nil {
		return nil
	}
	u.broken = ErrClosed
	return u.stream.Close()
}
