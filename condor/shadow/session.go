package shadow

import (
	"context"
	"fmt"
	"log/slog"

	"podstarter/internal/cedar"
)

// SubmitSide is the user of shadow and schedd on the sessions that come from
// the claim (condor_utils/condor_auth.h: SUBMIT_SIDE_MATCHSESSION_FQU).
const SubmitSide = "submit-side@matchsession"

// SessionParts is a security session in the parts of a claim id. It prints
// without its secret.
type SessionParts struct {
	ID, Info string
	key      *string // a pointer, so that no formatting verb reaches it
}

// Given reports whether the shadow gave this session at all.
func (p SessionParts) Given() bool { return p.ID != "" && p.key != nil }

// Import makes the session. Its user is [SubmitSide].
func (p SessionParts) Import(levels ...cedar.Level) (*cedar.Session, error) {
	if !p.Given() {
		return nil, fmt.Errorf("the shadow did not give this session")
	}
	return cedar.ImportSessionParts(p.ID, p.Info, *p.key, SubmitSide, levels...)
}

// String names the session.
func (p SessionParts) String() string { return "session " + p.ID }

// GoString is String.
func (p SessionParts) GoString() string { return p.String() }

// LogValue is String.
func (p SessionParts) LogValue() slog.Value { return slog.StringValue(p.String()) }

// SecSessionInfo holds the two sessions that a shadow derives from the claim.
type SecSessionInfo struct {
	// Reconnect is for a shadow that comes back, and for the schedd, towards
	// the starter. It is the claim's own session.
	Reconnect SessionParts
	// FileTransfer is for the starter towards the shadow.
	FileTransfer SessionParts
}

// GetSecSessionInfo asks for those sessions. A shadow without them refuses with
// a [*CallError]; the starter goes on without.
func (c *Client) GetSecSessionInfo(ctx context.Context) (SecSessionInfo, error) {
	const name = "get_sec_session_info"
	if !c.Encrypted() {
		// The C++ starter would turn encryption on for this call; a stream here
		// encrypts either always or, without a key, never.
		return SecSessionInfo{}, fmt.Errorf("shadow call %s: %w", name, ErrNotEncrypted)
	}
	a := ask(ctx, c, sessionsCall(name), takeSessions)
	return a.value, a.err
}

func sessionsCall(name string) call {
	return call{name: name, number: CallGetSecSessionInfo, put: func(s *cedar.Stream) {
		// The starter's wishes for the two sessions; it has none.
		s.PutString("")
		s.PutString("")
	}}
}

func takeSessions(s *cedar.Stream, _ int64) (SecSessionInfo, error) {
	var info SecSessionInfo
	for _, parts := range []*SessionParts{&info.Reconnect, &info.FileTransfer} {
		var text [3]string
		for i := range text {
			var err error
			if text[i], err = s.GetSecret(); err != nil {
				return SecSessionInfo{}, err
			}
		}
		*parts = SessionParts{ID: text[0], Info: text[1], key: &text[2]}
	}
	return info, nil
}
