package condortest

import (
	"context"
	"errors"
	"net"
	"strings"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// command begins a command at the starter, on the claim's session.
func (s *Shadow) command(ctx context.Context, number int) (*cedar.Stream, *wire, error) {
	s.mu.Lock()
	starter, session := s.starter, s.session
	s.mu.Unlock()
	if starter == "" {
		return nil, nil, errors.New("the starter has not told its address yet")
	}
	w := &wire{}
	client := &cedar.Client{Version: s.version, Own: s.address, Name: "SHADOW", Timeout: patience, Dialer: w.dial}
	st, err := client.Command(ctx, starter, number, session)
	return st, w, err
}

// Reconnect comes back to the starter as a shadow whose connection is lost, or as its
// successor: with another key for transfers. It returns the starter's reply; calls come on
// the new connection if its Result is Success.
func (s *Shadow) Reconnect(ctx context.Context) (Ad, error) {
	st, w, err := s.command(ctx, cedar.CACmd)
	if err != nil {
		return nil, err
	}
	ad := classads.NewAd()
	ad.SetString("MyType", "Command")
	ad.SetString("Command", "CA_RECONNECT_JOB")
	ad.SetString("UidDomain", s.Job().StringOr("UidDomain", ""))
	ad.SetString("TargetType", "Reply")
	ad.SetString("TransferKey", s.newKey())
	ad.SetString("ShadowIpAddr", s.told)
	ad.SetString("ShadowVersion", s.version)
	ad.SetString("TransferSocket", s.told)
	st.PutAd(ad)
	if err := st.EndMessage(); err != nil {
		return nil, err
	}
	reply, err := st.GetAd()
	if err := end(st, err); err != nil {
		st.Close()
		return nil, err
	}
	h := Heard{Call: Replied, Ad: adOf(reply)}
	s.add(h)
	if h.Ad.Text("Result") != "Success" {
		return h.Ad, st.Close()
	}
	s.serveCalls(st, w)
	return h.Ad, nil
}

// SendProxy brings the starter a newer X.509 proxy, as a file. The answer is 1 if it was
// taken, 0 if not, and 2 if none is to be sent again.
func (s *Shadow) SendProxy(ctx context.Context, text string) (int64, error) {
	return s.bring(ctx, cedar.UpdateGSICred, func(st *cedar.Stream) error {
		if err := st.PutFile(strings.NewReader(text), int64(len(text))); err != nil {
			return err
		}
		return st.EndMessage()
	})
}

// DelegateProxy brings a newer X.509 proxy by delegation, a chain of so many certificates.
func (s *Shadow) DelegateProxy(ctx context.Context, chain int) (int64, error) {
	return s.bring(ctx, cedar.DelegateGSICredStarter, func(st *cedar.Stream) error { return delegate(st, chain) })
}

func (s *Shadow) bring(ctx context.Context, number int, send func(*cedar.Stream) error) (int64, error) {
	st, _, err := s.command(ctx, number)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	if err := send(st); err != nil {
		return 0, err
	}
	n, err := st.GetInt()
	return n, end(st, err)
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
