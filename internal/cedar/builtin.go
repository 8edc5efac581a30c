package cedar

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"podstarter/classads"
)

// nopLevels are the commands that do nothing except to prove that the peer has a
// permission (condor_daemon_core.V6/daemon_core_main.cpp:dc_main_init).
var nopLevels = [...]struct {
	cmd   int
	level Level
}{
	{DCNop, Allow},
	{DCNopRead, Read},
	{DCNopWrite, Write},
	{DCNopNegotiator, Negotiator},
	{DCNopAdministrator, Administrator},
	{DCNopOwner, Administrator},
	{DCNopConfig, Config},
	{DCNopDaemon, Daemon},
	{DCNopAdvertiseStartd, AdvertiseStartd},
	{DCNopAdvertiseSchedd, AdvertiseSchedd},
	{DCNopAdvertiseMaster, AdvertiseMaster},
}

// builtin returns the commands that every daemon serves.
func (s *Server) builtin(cmd int) (registration, bool) {
	for _, n := range nopLevels {
		if n.cmd == cmd {
			return registration{level: n.level, serve: nop, unproved: true}, true
		}
	}
	if cmd == DCQueryInstance {
		return registration{level: Allow, serve: s.queryInstance, unproved: true}, true
	}
	return registration{}, false
}

// nop takes nothing and answers nothing.
func nop(_ context.Context, c *Call) error { return endOfRequest(c.Stream) }

// endOfRequest ends a request and ignores its payload.
func endOfRequest(s *Stream) error {
	err := s.EndOfMessage()
	if errors.Is(err, ErrLeftover) {
		return nil
	}
	return err
}

// secQuery tells the peer whether it would be authorised for a command.
func secQuery(allowed bool) Handler {
	return func(_ context.Context, c *Call) error {
		if err := endOfRequest(c.Stream); err != nil {
			return err
		}
		ad := classads.NewAd()
		ad.SetBool("AuthorizationSucceeded", allowed)
		c.Stream.PutAd(ad)
		return c.Stream.EndMessage()
	}
}

// instance is a random number that distinguishes this process from an earlier one
// with the same address.
type instance struct {
	once sync.Once
	id   string
	err  error
}

func (i *instance) get() (string, error) {
	i.once.Do(func() {
		var b [8]byte
		if _, i.err = rand.Read(b[:]); i.err == nil {
			i.id = hex.EncodeToString(b[:])
		}
	})
	return i.id, i.err
}

// queryInstance answers with the sixteen hexadecimal digits of the instance.
func (s *Server) queryInstance(_ context.Context, c *Call) error {
	if err := endOfRequest(c.Stream); err != nil {
		return err
	}
	id, err := s.instance.get()
	if err != nil {
		return fmt.Errorf("choose an instance id: %w", err)
	}
	c.Stream.PutBytes([]byte(id))
	return c.Stream.EndMessage()
}
