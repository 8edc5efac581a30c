package ccb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/rescue"
)

// A Caller asks brokers for connections. It may be used concurrently.
type Caller struct {
	Desk   *Desk
	Broker cedar.Client // by which brokers are called. Its own address is where daemons connect to
	// Relay lets the broker pass on what two daemons say that are both behind one:
	// CCB_CLIENT_STREAMING.
	Relay bool
	// Patience is how long a daemon may be out of reach, 2 min if zero: daemons register again
	// within CCB_RECONNECT_TIME, a minute, when their broker has started again.
	Patience time.Duration
	Pause    time.Duration // before it is called again; 5 s if zero
	Least    time.Duration // what each of many brokers may take, whatever the patience; 5 s if zero
	Log      *slog.Logger
}

const (
	patience = 2 * time.Minute
	pause    = 5 * time.Second
	// mostWait is how long a broker and the daemon behind it may take, at most. Where there are
	// many, each takes its share of the caller's patience, and leastWait if that is shorter.
	mostWait  = 60 * time.Second
	leastWait = 5 * time.Second
	// lastResort is how long the daemon's address is dialled. Packets to it may get lost, as an
	// address of a private network is nobody's here.
	lastResort = 10 * time.Second
)

// Reverse returns a connection to the daemon at an address with brokers. They are asked one after
// another to have it connect here. If that fails, the address itself is dialled: some
// daemons are said to be behind brokers and can be reached. Where trying again may help, it is
// tried again.
func (c *Caller) Reverse(ctx context.Context, to cedar.Sinful, timeout time.Duration) (net.Conn, error) {
	contacts, err := ParseContacts(to.CCBID())
	if err != nil {
		return nil, err
	}
	own, err := cedar.ParseSinful(c.Broker.Own)
	if err != nil {
		return nil, fmt.Errorf("have a daemon connect to this one: %w", err)
	}
	until, pause := time.Now().Add(c.patience()), cmp.Or(c.Pause, pause)
	for {
		rand.Shuffle(len(contacts), func(i, j int) { contacts[i], contacts[j] = contacts[j], contacts[i] })
		conn, brokers := c.round(ctx, contacts, own, min(timeout, mostWait), until)
		if brokers == nil {
			c.Log.Debug("A daemon is reached through its broker", "daemon", place(to), "peer", conn.RemoteAddr())
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		conn, err := c.Broker.Dial(ctx, to, min(timeout, lastResort))
		if err == nil {
			c.Log.Warn("The brokers of a daemon do not help, its own address does", "daemon", place(to), "error", brokers)
			return conn, nil
		}
		err = fmt.Errorf("it takes connections only through a connection broker (CCB): %w; nor can it be reached directly: %w", brokers, err)
		if hopeless(brokers) || time.Until(until) < pause {
			return nil, err
		}
		c.Log.Warn("A daemon is out of reach, and is called again", "daemon", place(to), "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

func (c *Caller) patience() time.Duration { return cmp.Or(c.Patience, patience) }

// round asks each broker once. If this process is behind a broker too, nobody can connect to
// it, so brokers are first asked to pass on what both say; after that, the daemon is
// asked to connect to the address without its broker, which works for two that share a
// network (ccb_client.cpp:ReverseConnect_blocking).
func (c *Caller) round(ctx context.Context, contacts []Contact, own cedar.Sinful, wait time.Duration, until time.Time) (net.Conn, *multierror.Error) {
	type way = func(context.Context, Contact, cedar.Sinful) (net.Conn, error)
	ways := []way{c.callBack}
	if own.CCBID() != "" && c.Relay {
		ways = []way{c.relay, c.callBack}
	}
	failed := &multierror.Error{ErrorFormat: oneLine}
	left := len(ways) * len(contacts)
	for _, way := range ways {
		for _, contact := range contacts {
			attempt, cancel := context.WithTimeoutCause(ctx, share(wait, time.Until(until), cmp.Or(c.Least, leastWait), left), errSilence)
			left--
			conn, err := way(attempt, contact, own)
			cancel()
			if err == nil {
				return conn, nil
			}
			failed = multierror.Append(failed, fmt.Errorf("%s: %w", contact, err))
			if ctx.Err() != nil {
				return nil, failed
			}
		}
	}
	return nil, failed
}

// share is how long one of the attempts that are left may take.
func share(wait, patience, least time.Duration, left int) time.Duration {
	return min(wait, max(patience/time.Duration(left), least))
}

// hopeless reports whether no broker will ever answer differently.
func hopeless(brokers *multierror.Error) bool {
	return !slices.ContainsFunc(brokers.Errors, func(err error) bool {
		return !errors.Is(err, cedar.ErrNotNegotiated) && !errors.Is(err, cedar.ErrDenied) && !errors.Is(err, errOldBroker)
	})
}

var (
	// errSilence is why an attempt ends.
	errSilence   = errors.New("it takes too long")
	errOldBroker = errors.New("this daemon is behind a broker as well, and only brokers of 25.12 or later pass on what two such daemons say")
)

// callBack asks a broker to have the daemon connect here.
func (c *Caller) callBack(ctx context.Context, to Contact, own cedar.Sinful) (net.Conn, error) {
	back := own.Without("CCBID")
	id, arrives, done, err := c.Desk.expect()
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := c.begin(ctx, to)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	defer s.Cancel(ctx)()
	if err := send(s, c.request(to.ids(), id, back)); err != nil {
		return nil, err
	}
	replied := make(chan error, 1)
	rescue.Go(func() { replied <- readReply(s) })
	for {
		select {
		case conn := <-arrives:
			return conn, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the daemon to connect to %s: %w; it must be able to open connections to that address, or both must be behind brokers of 25.12 or later", place(back), context.Cause(ctx))
		case err := <-replied:
			if err == nil || ctx.Err() != nil {
				replied = nil // the daemon has connected, and this process is about to see it
				continue
			}
			select {
			case conn := <-arrives:
				return conn, nil
			default:
				return nil, err
			}
		}
	}
}

// relay asks a broker to have the daemon connect to it, and to pass on what both say
// (ccb_client.cpp:establishStreamingPipe).
func (c *Caller) relay(ctx context.Context, to Contact, own cedar.Sinful) (net.Conn, error) {
	id, err := newConnectID()
	if err != nil {
		return nil, err
	}
	ad := c.request(to.ID, id, own)
	if to.Route != "" {
		ad.SetString("CCBRoute", to.Route)
	}
	ad.SetBool("CCBStreamingRequired", true)
	s, err := c.begin(ctx, to)
	if err != nil {
		return nil, err
	}
	conn, err := relayed(ctx, s, ad, id)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return conn, nil
}

// relayed sends the request and waits for the daemon's first words. What follows on the connection
// is between the daemon and this process.
func relayed(ctx context.Context, s *cedar.Stream, ad *classads.Ad, id string) (net.Conn, error) {
	defer s.Cancel(ctx)()
	if v := version.Of(s.PeerVersion()); !v.AtLeast(25, 12, 0) {
		return nil, fmt.Errorf("%w, and this one is of %s", errOldBroker, v)
	}
	if err := send(s, ad); err != nil {
		return nil, err
	}
	if err := readReply(s); err != nil {
		return nil, err
	}
	command, err := s.GetInt32()
	if err != nil {
		return nil, fmt.Errorf("read who connects: %w", err)
	}
	presented, err := readHello(s)
	if err != nil {
		return nil, err
	}
	if command != cedar.CCBReverseConnect || presented != id {
		return nil, errors.New("what it passes on is not the daemon that was asked for")
	}
	conn, early := s.Detach()
	if len(early) > 0 {
		return nil, errors.New("the daemon spoke before it was asked")
	}
	return conn, nil
}

// request is the ad of a CCB_REQUEST.
func (c *Caller) request(ids, connectID string, back cedar.Sinful) *classads.Ad {
	ad := classads.NewAd()
	ad.SetString("CCBID", ids)
	ad.SetString("ClaimId", connectID)
	ad.SetString("MyAddress", back.String())
	ad.SetString("Name", c.Broker.Name+" "+back.String()) // for the broker's log
	return ad
}

// begin starts a CCB_REQUEST.
func (c *Caller) begin(ctx context.Context, to Contact) (*cedar.Stream, error) {
	client := c.Broker
	s, err := client.Start(ctx, cedar.Command{Addr: to.Broker.String(), Number: cedar.CCBRequest, Negotiate: true})
	switch {
	case errors.Is(err, cedar.ErrNoAnswer):
		err = fmt.Errorf("%w; this collector is away, or lets only those READ that authenticate (SEC_READ_AUTHENTICATION), which starters cannot", err)
	case errors.Is(err, cedar.ErrNotNegotiated):
		err = fmt.Errorf("%w; this collector must let everybody READ (SEC_READ_AUTHENTICATION = OPTIONAL)", err)
	case errors.Is(err, cedar.ErrDenied):
		err = fmt.Errorf("%w; this collector must let this host READ (ALLOW_READ)", err)
	}
	if err != nil {
		return nil, err
	}
	s.SetMessageLimit(maxHello)
	s.SetTimeout(0) // ctx bounds how long it may take
	return s, nil
}

func send(s *cedar.Stream, ad *classads.Ad) error {
	s.PutAd(ad)
	if err := s.EndMessage(); err != nil {
		return fmt.Errorf("send the request: %w", err)
	}
	return nil
}

// readReply takes the broker's answer.
func readReply(s *cedar.Stream) error {
	ad, err := getAd(s)
	if err != nil {
		return fmt.Errorf("read the broker's answer: %w", err)
	}
	if ok, err := ad.GetBool("Result"); err == nil && ok {
		return nil
	}
	return fmt.Errorf("it refuses: %.500q", ad.StringOr("ErrorString", "without a reason"))
}

// oneLine puts errors into a line of a log, or of a job's events.
func oneLine(all []error) string {
	text := ""
	for i, err := range all {
		if i > 0 {
			text += "; "
		}
		text += err.Error()
	}
	return text
}
