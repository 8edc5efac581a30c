package cedar

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// maxClaimID is the largest length of a claim id; a real one has some hundred
// bytes.
const maxClaimID = 64 << 10

// ClaimID holds the parts of a claim id, <public>#[<info>]<key>
// (condor_utils/condor_claimid_parser.h). It prints without its secret.
type ClaimID struct {
	Public    string // everything before the last '#'; names the claim in logs
	SessionID string // Public, or empty if the claim carries no session
	Info      string // exported policy of the session, brackets included
	Key       string // the secret
}

var errClaimID = errors.New("it has no '#', or nothing before or after it")

// ParseClaimID splits a claim id into its parts. The error does not show the id.
func ParseClaimID(id string) (ClaimID, error) {
	if len(id) > maxClaimID {
		return ClaimID{}, fmt.Errorf("parse a claim id of %d bytes: at most %d are allowed", len(id), maxClaimID)
	}
	i := strings.LastIndexByte(id, '#')
	if i <= 0 || i == len(id)-1 {
		return ClaimID{}, fmt.Errorf("parse a claim id of %d bytes: %w", len(id), errClaimID)
	}
	c := ClaimID{Public: id[:i], Key: id[i+1:]}
	if c.Key[0] == '[' {
		if j := strings.LastIndexByte(c.Key, ']'); j >= 0 {
			c.SessionID, c.Info, c.Key = c.Public, c.Key[:j+1], c.Key[j+1:]
		}
	}
	if c.Key == "" {
		return ClaimID{}, fmt.Errorf("parse the claim id of %s: it has no key", c.Public)
	}
	return c, nil
}

// Startd returns the address of the startd that made the claim, in brackets;
// empty if the id does not begin with an address.
func (c ClaimID) Startd() string {
	if i := strings.IndexByte(c.Public, '>'); i >= 0 && c.Public[0] == '<' {
		return c.Public[:i+1]
	}
	return ""
}

// Secret returns the whole claim id.
func (c ClaimID) Secret() string { return c.Public + "#" + c.Info + c.Key }

// Matches reports whether id is this claim id, including the secret. It takes the
// same time whatever the contents are.
func (c ClaimID) Matches(id string) bool {
	return c.Key != "" && subtle.ConstantTimeCompare([]byte(c.Secret()), []byte(id)) == 1
}

// String returns the public part and an ellipsis for the rest.
func (c ClaimID) String() string {
	if c.Public == "" {
		return ""
	}
	return c.Public + "#..."
}

// GoString keeps the secret out of %#v.
func (c ClaimID) GoString() string { return c.String() }

// Format keeps the secret out of every verb.
func (c ClaimID) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue keeps the secret out of logs.
func (c ClaimID) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText keeps the secret out of JSON and the like.
func (c ClaimID) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
