package cedar

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"

	"podstarter/classads"
)

// ErrNotNegotiated reports that the server does not agree to a session without authentication.
var ErrNotNegotiated = errors.New("the peer agrees to no session without authentication")

// ErrNoAnswer reports that the server ended the conversation when it was offered a session. It
// may not know the command or demand authentication, and says neither.
var ErrNoAnswer = errors.New("the peer does not answer the offer of a session")

// ErrDenied reports that the server knows the command, and does not allow it.
var ErrDenied = errors.New("the peer does not allow this command")

// negotiate makes a session with the server for this one command, without authentication:
// it may do what the server allows to everybody. The stream is encrypted if the server
// takes part in the exchange of keys, which all do since 23.10; an attacker on the way who
// answers in the server's place is not noticed (condor_secman.cpp:sendAuthInfo_inner,
// receiveAuthInfo_inner, authenticate_inner_finish, receivePostAuthInfo_inner).
func (c *Client) negotiate(s *Stream, addr Sinful, cmd Command) (string, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return "make a key", err
	}
	lines := []string{
		"Command = " + strconv.Itoa(cmd.Number),
		"ConnectSinful = " + classads.QuoteOld(addr.String()),
		`CryptoMethods = "AES"`,
		"ECDHPublicKey = " + classads.QuoteOld(base64.StdEncoding.EncodeToString(own.PublicKey().Bytes())),
		"RemoteVersion = " + classads.QuoteOld(c.Version),
		`Authentication = "NEVER"`, `AuthenticationNew = "NEVER"`, `Encryption = "OPTIONAL"`, `Integrity = "OPTIONAL"`,
		`OutgoingNegotiation = "REQUIRED"`, `Enact = "NO"`, `NewSession = "YES"`, "NegotiatedSession = true",
		`SessionDuration = "60"`, "SessionLease = 60",
		`Subsystem = "STARTER"`, "ServerPid = " + strconv.Itoa(os.Getpid()),
	}
	if c.Own != "" {
		lines = append(lines, "ServerCommandSock = "+classads.QuoteOld(c.Own))
	}
	const stage = "agree on a session"
	s.PutInt(DCAuthenticate)
	s.putLiterals(lines)
	if err := s.EndMessage(); err != nil {
		return stage, err
	}
	if err := s.Flush(); err != nil {
		return stage, err
	}
	policy, err := s.getHandshake()
	if err != nil {
		return stage, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	s.peerVersion = policy.str("RemoteVersion")
	if policy.str("Authentication") == "YES" {
		return stage, fmt.Errorf("%w: it wants some", ErrNotNegotiated)
	}
	if err := s.exchangeKey(own, policy); err != nil {
		return stage, err
	}
	result, err := s.getHandshake()
	if err != nil {
		return stage, err
	}
	// Nothing here means that all is well, as with peers before 8.3.6.
	if code := result.str("ReturnCode"); code != "" && code != "AUTHORIZED" {
		return stage, fmt.Errorf("%w: it answered %.40q", ErrDenied, code)
	}
	s.AllowEmptyMessage()
	return "", nil
}

// exchangeKey derives the key from what both sides have said, and turns encryption on.
// With AES, a key is used whatever the policy says (sock.cpp:mustEncrypt).
func (s *Stream) exchangeKey(own *ecdh.PrivateKey, policy literals) error {
	text := policy.str("ECDHPublicKey")
	if text == "" {
		for _, wanted := range []string{"Encryption", "Integrity"} {
			if policy.str(wanted) == "YES" {
				return fmt.Errorf("%w: it wants a key for %s, which it makes only for those that authenticate", ErrNotNegotiated, wanted)
			}
		}
		return nil
	}
	if m := policy.str("CryptoMethods"); !listsAES(m) {
		return fmt.Errorf("%w, only %.80q", ErrNotAES, m)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("read the peer's public key: %w", err)
	}
	theirs, err := ecdh.P256().NewPublicKey(raw)
	if err != nil {
		return fmt.Errorf("read the peer's public key: %w", err)
	}
	secret, err := own.ECDH(theirs)
	if err != nil {
		return fmt.Errorf("derive the session's key: %w", err)
	}
	key, err := deriveKey(string(secret))
	if err != nil {
		return err
	}
	return s.setKey(key)
}

// getHandshake takes a message of the handshake.
func (s *Stream) getHandshake() (literals, error) {
	s.SetMessageLimit(maxAuthBytes)
	defer s.SetMessageLimit(0)
	ad, err := s.getLiterals()
	if err != nil {
		return nil, err
	}
	return ad, s.EndOfMessage()
}
