package cedar

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"podstarter/classads"
)

var (
	// ErrSessionUnknown reports that the server does not know the session: it
	// was restarted, or has dropped it.
	ErrSessionUnknown = errors.New("the peer does not know the security session")
	// ErrNotAuthorized reports that the server did not answer the handshake with
	// its consent.
	ErrNotAuthorized = errors.New("the peer does not accept the security session")
)

// defaultTimeout limits the start of a command if Client.Timeout is zero.
const defaultTimeout = 20 * time.Second

// Client starts commands at other daemons. It may be used concurrently as
// long as its fields are not changed.
type Client struct {
	Version string        // own $CondorVersion$ string; required, peers read features from it
	Own     string        // own address in brackets, empty for a tool; a shared port refuses to connect an address to itself
	Name    string        // what to be called in the logs of a shared port, e.g. STARTER
	Timeout time.Duration // for connecting, and for each wait on the stream afterwards; 20 s if zero; Network.Slow makes it longer
	Network Network       // which addresses can be used
	// Dialer makes connections; a net.Dialer if nil.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// Reverse connects to a daemon that is behind a broker (CCB). If it is nil, the daemon's
	// address is dialled.
	Reverse func(ctx context.Context, to Sinful, timeout time.Duration) (net.Conn, error)
}

// Command is what a Client starts.
type Command struct {
	Addr    string   // of the daemon, in brackets
	Number  int      // of the command
	Auth    int      // of the command to be authorised, if Number is DCSecQuery
	Session *Session // nil: without any security, for commands that demand none
	// Negotiate makes a session for this command alone, without authentication. Session is nil.
	Negotiate bool
	// NoResponse skips the server's answer to the handshake. The first packet is
	// sent without waiting. A server that does not know the session closes the
	// connection without an answer.
	NoResponse bool
}

// CommandError reports which step of starting a command failed.
type CommandError struct {
	Command int
	Addr    string
	Stage   string // what was attempted
	Err     error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("command %d to %s: %s: %v", e.Command, brief(e.Addr), e.Stage, e.Err)
}

// brief is an address without its parameters, which nobody reads in a message.
func brief(addr string) string {
	if short, _, found := strings.Cut(addr, "?"); found {
		return short + ">"
	}
	return addr
}

// Unwrap returns the cause.
func (e *CommandError) Unwrap() error { return e.Err }

// Command connects to the daemon at addr, through its shared port if it has
// one, resumes the session and returns a stream. Put the payload of the command
// into it. The stream is encrypted with the session's key. With a nil session
// it is in the middle of a plaintext message whose first value is the command.
//
// To refuse a command, which it does not know or the session does not permit, the
// server closes the connection. Then the first read fails.
func (c *Client) Command(ctx context.Context, addr string, cmd int, session *Session) (*Stream, error) {
	return c.Start(ctx, Command{Addr: addr, Number: cmd, Session: session})
}

// Start does what Command does, with all options.
func (c *Client) Start(ctx context.Context, cmd Command) (*Stream, error) {
	fail := func(stage string, err error) error {
		return &CommandError{Command: cmd.Number, Addr: cmd.Addr, Stage: stage, Err: err}
	}
	given, err := ParseSinful(cmd.Addr)
	if err != nil {
		return nil, fail("find the address", err)
	}
	addr, err := given.Route(c.Network)
	if err != nil {
		return nil, fail("find the address", err)
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	s, err := c.dial(ctx, addr, c.Network.Slow.Of(timeout))
	if err != nil {
		return nil, fail("connect", err)
	}
	s.SetMultiplier(c.Network.Slow)
	s.SetTimeout(timeout)
	defer s.Cancel(ctx)()
	if stage, err := c.begin(s, addr, cmd, s.Longer(timeout)); err != nil {
		_ = s.Close()
		return nil, fail(stage, err)
	}
	return s, nil
}

func (c *Client) dial(ctx context.Context, addr Sinful, timeout time.Duration) (*Stream, error) {
	conn, err := c.connect(ctx, addr, timeout)
	if err != nil {
		return nil, err
	}
	s := NewStream(prepare(conn))
	s.peer = addr.String()
	return s, nil
}

// connect connects by the daemon's brokers, if it has some.
func (c *Client) connect(ctx context.Context, addr Sinful, timeout time.Duration) (net.Conn, error) {
	if addr.CCBID() != "" && c.Reverse != nil {
		return c.Reverse(ctx, addr, timeout)
	}
	conn, err := c.Dial(ctx, addr, timeout)
	if err != nil && addr.CCBID() != "" {
		err = fmt.Errorf("%w (the daemon is behind the broker %s, which is not asked)", err, addr.CCBID())
	}
	return conn, err
}

// Dial connects to the host and port of an address, and says nothing yet.
func (c *Client) Dial(ctx context.Context, addr Sinful, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dial := c.Dialer
	if dial == nil {
		dial = (&net.Dialer{Control: c.Network.leave}).DialContext
	}
	return dial(ctx, "tcp", addr.DialAddress())
}

// begin does everything up to the payload; it returns what failed.
func (c *Client) begin(s *Stream, addr Sinful, cmd Command, timeout time.Duration) (string, error) {
	// The hop and what follows it can travel together.
	s.SetCoalesce(true)
	defer s.SetCoalesce(false)
	if id := addr.SharedPortID(); id != "" {
		name := strings.TrimSpace(c.Name + " " + c.Own)
		if err := s.connectShared(id, name, timeout); err != nil {
			return "ask the shared port", err
		}
	}
	if cmd.Negotiate {
		return c.negotiate(s, addr, cmd)
	}
	if cmd.Session == nil {
		s.PutInt(int64(cmd.Number))
		return "send the command", s.Flush()
	}
	nonce, err := newNonce()
	if err != nil {
		return "make a nonce", err
	}
	lines := []string{"Command = " + strconv.Itoa(cmd.Number)}
	if cmd.Auth != 0 {
		lines = append(lines, "AuthCommand = "+strconv.Itoa(cmd.Auth))
	}
	lines = append(lines,
		"ConnectSinful = "+classads.QuoteOld(addr.String()),
		`CryptoMethods = "AES"`,
		"Nonce = "+classads.QuoteOld(nonce),
		"RemoteVersion = "+classads.QuoteOld(c.Version),
		"ResumeResponse = "+strconv.FormatBool(!cmd.NoResponse))
	if c.Own != "" {
		lines = append(lines, "ServerCommandSock = "+classads.QuoteOld(c.Own))
	}
	lines = append(lines, "Sid = "+classads.QuoteOld(cmd.Session.ID), `UseSession = "YES"`)
	s.PutInt(DCAuthenticate)
	s.putLiterals(lines)
	if err := s.EndMessage(); err != nil {
		return "resume the session", err
	}
	if err := s.Flush(); err != nil {
		return "resume the session", err
	}
	s.peerVersion = cmd.Session.PeerVersion
	if !cmd.NoResponse {
		if err := s.takeConsent(); err != nil {
			return "resume the session", err
		}
	}
	if err := s.setKey(cmd.Session.key.bytes()); err != nil {
		return "resume the session", err
	}
	s.user = cmd.Session.User
	s.AllowEmptyMessage()
	return "", nil
}

// takeConsent reads the server's answer to a resumed session.
func (s *Stream) takeConsent() error {
	s.SetMessageLimit(maxAuthBytes)
	defer s.SetMessageLimit(0)
	answer, err := s.getLiterals()
	if err != nil {
		return err
	}
	if err := s.EndOfMessage(); err != nil {
		return err
	}
	switch code := answer.str("ReturnCode"); code {
	case "AUTHORIZED":
	case "SID_NOT_FOUND":
		return ErrSessionUnknown
	default:
		return fmt.Errorf("%w: it answered %.40q", ErrNotAuthorized, code)
	}
	if v := answer.str("RemoteVersion"); v != "" {
		s.peerVersion = v
	}
	return nil
}

// newNonce makes a nonce of the size that HTCondor uses.
func newNonce() (string, error) {
	var b [33]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b[:]), nil
}
