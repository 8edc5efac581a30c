package cedar

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"podstarter/classads"
)

// ErrNotAES reports a session that permits only ciphers that this package does
// not have. Every peer prefers AES since HTCondor 9; an administrator
// must have taken it out of SEC_DEFAULT_CRYPTO_METHODS.
var ErrNotAES = errors.New("the session does not permit AES")

// Session is a key that two daemons share, and the permissions of its holder. It
// never changes. It prints without its secret.
type Session struct {
	ID            string
	User          string    // who the peer is, user@domain
	PeerVersion   string    // $CondorVersion$ string; empty if unknown
	Addr          string    // address of the peer, if it belongs to one
	Levels        Levels    // what the peer may do here
	ValidCommands []int     // what the peer accepts, if it said so
	Expires       time.Time // zero: never

	key key
}

// key returns a session's secret and the AES key derived from it. It is a
// function so that formatting verbs and dumps of a struct cannot show the secret.
type key func() (secret string, aes []byte)

func (k key) secret() string {
	if k == nil {
		return ""
	}
	s, _ := k()
	return s
}

func (k key) bytes() []byte {
	if k == nil {
		return nil
	}
	_, b := k()
	return b
}

// ImportSession makes a session of a claim id (condor_secman.cpp:
// CreateNonNegotiatedSecuritySession). User is who the peer is taken for, and
// levels is what that user may do; implied levels are added.
func ImportSession(claimID, user string, levels ...Level) (*Session, error) {
	c, err := ParseClaimID(claimID)
	if err != nil {
		return nil, fmt.Errorf("import session of %s: %w", user, err)
	}
	if c.SessionID == "" {
		return nil, fmt.Errorf("import session %s of %s: the claim id carries no session (SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION is off there)", c, user)
	}
	return ImportSessionParts(c.SessionID, c.Info, c.Key, user, levels...)
}

// ImportSessionParts makes a session of the parts of a claim id.
func ImportSessionParts(id, info, key, user string, levels ...Level) (*Session, error) {
	s, err := importSession(id, info, key, user, levels)
	if err != nil {
		return nil, fmt.Errorf("import session %s of %s: %w", id, user, err)
	}
	return s, nil
}

func importSession(id, info, secret, user string, levels []Level) (*Session, error) {
	if id == "" {
		return nil, errors.New("it has no id")
	}
	aes, err := deriveKey(secret)
	if err != nil {
		return nil, err
	}
	s := &Session{ID: id, User: user, Levels: LevelsOf(levels...)}
	s.key = func() (string, []byte) { return secret, aes }
	policy, err := parseInfo(info)
	if err != nil {
		return nil, err
	}
	methods := policy.str("CryptoMethodsList")
	if methods == "" {
		// The single method is for old peers and names a legacy cipher. It
		// counts only if there is no list.
		methods = policy.str("CryptoMethods")
	}
	if methods != "" && !listsAES(methods) {
		return nil, fmt.Errorf("%w, only %s", ErrNotAES, methods)
	}
	if v := policy.str("ShortVersion"); v != "" {
		s.PeerVersion = "$CondorVersion: " + v + " ExportedSessionInfo $"
	}
	if n, ok := policy.integer("SessionExpires"); ok && n > 0 {
		s.Expires = time.Unix(n, 0)
	}
	for item := range strings.SplitSeq(policy.str("ValidCommands"), ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(item)); err == nil {
			s.ValidCommands = append(s.ValidCommands, n)
		}
	}
	return s, nil
}

// parseInfo reads [Attr=value;...] (condor_secman.cpp:ImportSecSessionInfo).
func parseInfo(info string) (literals, error) {
	m := literals{}
	if info == "" {
		return m, nil
	}
	if len(info) < 2 || info[0] != '[' || info[len(info)-1] != ']' {
		return nil, errors.New("its policy is not in brackets")
	}
	for item := range strings.SplitSeq(info[1:len(info)-1], ";") {
		if strings.TrimSpace(item) != "" && !m.add(item) {
			return nil, errors.New("its policy has an item without a name or a value")
		}
	}
	return m, nil
}

// listsAES reports whether a list of methods, separated by '.', ',' or
// blanks, has AES in it.
func listsAES(methods string) bool {
	for m := range strings.FieldsFuncSeq(methods, func(r rune) bool { return r == '.' || r == ',' || r == ' ' }) {
		if strings.EqualFold(m, "AES") {
			return true
		}
	}
	return false
}

// MintSession makes a new session with a random id and key, for a peer that
// will be told about it through another session.
func MintSession(user string, levels ...Level) (*Session, error) {
	return MintSessionAs("", user, levels...)
}

// MintSessionAs makes a session as MintSession does, for a peer that asks for a
// policy: info, in the form that claim ids carry. An expiry in it is kept. A
// policy that has expired or excludes AES is refused. The session is always
// encrypted and protected, whatever the policy says.
func MintSessionAs(info, user string, levels ...Level) (*Session, error) {
	var id [24]byte
	var key [keySize]byte
	for _, b := range [][]byte{id[:], key[:]} {
		if _, err := rand.Read(b); err != nil {
			return nil, fmt.Errorf("mint a session for %s: %w", user, err)
		}
	}
	s, err := ImportSessionParts(hex.EncodeToString(id[:]), info, hex.EncodeToString(key[:]), user, levels...)
	if err == nil && !s.Expires.IsZero() && !time.Now().Before(s.Expires) {
		err = fmt.Errorf("mint a session for %s: it is wanted until %s, which has passed", user, s.Expires.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Export returns the session as a claim id, including the secret, for the peer
// that will use it. Version is this program's version, such as "25.14.1", from
// which peers know what this side supports (condor_secman.cpp:
// ExportSecSessionInfo).
func (s *Session) Export(version string) string {
	info := `[Encryption="YES";Integrity="YES";CryptoMethods="AES";`
	if version != "" {
		info += "ShortVersion=" + classads.QuoteOld(version) + ";"
	}
	if !s.Expires.IsZero() {
		info += "SessionExpires=" + strconv.FormatInt(s.Expires.Unix(), 10) + ";"
	}
	return s.ID + "#" + info + "]" + s.key.secret()
}

// String names the session and its user.
func (s *Session) String() string {
	if s == nil {
		return "no session"
	}
	return fmt.Sprintf("session %s of %s (%s)", s.ID, s.User, s.Levels)
}

// GoString keeps even the address of the secret out of %#v.
func (s *Session) GoString() string { return s.String() }

// LogValue names the session and its user.
func (s *Session) LogValue() slog.Value { return slog.StringValue(s.String()) }

// ErrSessionExists reports an attempt to add a session with an id that is in use.
var ErrSessionExists = errors.New("a session with that id already exists")

// Sessions is a table of sessions by id. It is safe for concurrent use.
type Sessions struct {
	mu  sync.RWMutex
	all map[string]*Session
	now func() time.Time
}

// NewSessions makes an empty table.
func NewSessions() *Sessions { return &Sessions{all: map[string]*Session{}, now: time.Now} }

// Add puts a session into the table. An id that is taken by a session that
// has not expired is refused with ErrSessionExists.
func (t *Sessions) Add(s *Session) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.all[s.ID]; old != nil && !t.expired(old) {
		return fmt.Errorf("add session %s: %w", s.ID, ErrSessionExists)
	}
	t.all[s.ID] = s
	return nil
}

// Replace puts a session into the table, in the place of another one of the
// same id if there is one.
func (t *Sessions) Replace(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[s.ID] = s
}

// Lookup finds a session that has not expired.
func (t *Sessions) Lookup(id string) (*Session, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.all[id]
	if s == nil || t.expired(s) {
		return nil, false
	}
	return s, true
}

// Remove takes a session out of the table; connections that use it go on.
func (t *Sessions) Remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, id)
}

func (t *Sessions) expired(s *Session) bool {
	return !s.Expires.IsZero() && !t.now().Before(s.Expires)
}
