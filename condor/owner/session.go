package owner

import (
	"crypto/subtle"
	"fmt"
	"log/slog"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Unknown is the owner of a job whose ad names none
// (starter.cpp:getJobOwnerFQUOrDummy).
const Unknown = "job-owner@submit-domain"

// Identity returns the name of a job's owner on sessions, user@domain.
func Identity(job *classads.Ad) string {
	if user := job.StringOr("User", ""); user != "" {
		return user
	}
	return Unknown
}

// SessionRequest is the payload of CREATE_JOB_OWNER_SEC_SESSION (1501). It
// prints without its secret.
type SessionRequest struct {
	// Info is the policy that the tool wants for its session, such as
	// [Encryption="YES";Integrity="YES";].
	Info  string
	claim *string // a pointer, so that no formatting verb reaches it
}

// String describes the request without its secret.
func (r SessionRequest) String() string { return "request for a session " + r.Info }

// GoString is String.
func (r SessionRequest) GoString() string { return r.String() }

// LogValue is String.
func (r SessionRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// maxRequest bounds the request. A claim id has some hundred bytes.
const maxRequest = 256 << 10

// ReadSessionRequest reads the payload of the command.
func ReadSessionRequest(s *cedar.Stream) (SessionRequest, error) {
	s.SetMessageLimit(maxRequest)
	defer s.SetMessageLimit(0)
	ad, err := s.GetAd()
	if err == nil {
		err = s.EndOfMessage()
	}
	if err != nil {
		return SessionRequest{}, fmt.Errorf("reading a request for a session of the job's owner: %w", err)
	}
	claim := ad.StringOr("ClaimId", "")
	return SessionRequest{Info: ad.StringOr("SessionInfo", ""), claim: &claim}, nil
}

// Proves reports whether the peer knows the secret id of the job's claim, in
// constant time. An empty one proves nothing.
func (r SessionRequest) Proves(claim string) bool {
	return claim != "" && r.claim != nil && subtle.ConstantTimeCompare([]byte(*r.claim), []byte(claim)) == 1
}

// AnswerSession sends the session to the peer, in the form of a claim id.
// version is our own $CondorVersion$, release only its number, and address
// where the tool can reach this starter.
func AnswerSession(s *cedar.Stream, session *cedar.Session, version, release, address string) error {
	ad := classads.NewAd()
	ad.SetString("CondorVersion", version)
	ad.SetBool("Result", true)
	ad.SetString("ClaimId", session.Export(release))
	ad.SetString("StarterIpAddr", address)
	return answer(s, ad)
}

// RefuseSession tells the peer why it gets no session.
func RefuseSession(s *cedar.Stream, version, why string) error {
	ad := classads.NewAd()
	ad.SetString("CondorVersion", version)
	ad.SetBool("Result", false)
	ad.SetString("ErrorString", why)
	return answer(s, ad)
}

func answer(s *cedar.Stream, ad *classads.Ad) error {
	s.PutAd(ad)
	if err := s.EndMessage(); err != nil {
		return fmt.Errorf("answering a request for a session of the job's owner: %w", err)
	}
	return nil
}
