package owner

import (
	"fmt"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Refusal is why a command of the owner is refused. It is an error and the text
// that the tool shows the user.
type Refusal struct {
	Reason string
	// Retry: it may work later; tools then try again by themselves.
	Retry bool
}

func (r *Refusal) Error() string { return r.Reason }

// Send sends the refusal to the tool (starter.cpp:vMessageFailed).
func (r *Refusal) Send(s *cedar.Stream) error {
	ad := classads.NewAd()
	ad.SetBool("Result", false)
	ad.SetString("ErrorString", r.Reason)
	if r.Retry {
		ad.SetBool("Retry", true)
	}
	return sendAd(s, ad)
}

// maxAd bounds a request of a tool, in bytes. A thousand file names need less.
const maxAd = 4 << 20

func readAd(s *cedar.Stream, what string) (*classads.Ad, error) {
	s.SetMessageLimit(maxAd)
	defer s.SetMessageLimit(0)
	ad, err := s.GetAd()
	if err == nil {
		err = s.EndOfMessage()
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return ad, nil
}

func sendAd(s *cedar.Stream, ad *classads.Ad) error {
	s.PutAd(ad)
	if err := s.EndMessage(); err != nil {
		return fmt.Errorf("answer the job's owner: %w", err)
	}
	return nil
}
