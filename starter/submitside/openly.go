package submitside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"podstarter/internal/cedar"
)

// Security is what this machine's configuration demands of connections that this starter
// makes: the knob for each of what SEC_..._AUTHENTICATION and its like can demand.
type Security struct {
	// Authentication and Encryption name the knob that requires it; empty if none does.
	Authentication, Encryption string
}

// SecurityOf reads it (condor_secman.cpp:getSecSetting, sec_alpha_to_sec_req). All sessions have
// both encryption and integrity, or neither.
func SecurityOf(k interface {
	Lookup(name string) (string, bool)
}) Security {
	required := func(what string) string {
		for _, level := range []string{"CLIENT", "DEFAULT"} {
			name := "SEC_" + level + "_" + what
			switch value, _ := k.Lookup(name); {
			case value == "":
			case strings.ContainsAny(value[:1], "PONFponf"):
				return ""
			default: // RYTryt, or a mistake, at which stock's daemons end
				return name
			}
		}
		return ""
	}
	s := Security{Authentication: required("AUTHENTICATION"), Encryption: required("ENCRYPTION")}
	if s.Encryption == "" {
		s.Encryption = required("INTEGRITY")
	}
	return s
}

// withoutSession begins the reasons why files cannot be transferred.
const withoutSession = "the shadow gave no session for file transfer (SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION is off)"

// allowed says whether files may be transferred with a shadow that has not shown who it is.
func (s Security) allowed() error {
	if s.Authentication != "" {
		return fmt.Errorf("%s, and %s requires authentication, which starters cannot do by themselves; set SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION = True", withoutSession, s.Authentication)
	}
	return nil
}

// openly starts a command at a shadow that gave no session: as the stock starter does, by
// negotiation, but without authentication. The transfer key shows the shadow that this is the job's starter.
func (s Security) openly(ctx context.Context, client *cedar.Client, socket string, command int) (*cedar.Stream, error) {
	if err := s.allowed(); err != nil {
		return nil, err
	}
	stream, err := client.Start(ctx, cedar.Command{Addr: socket, Number: command, Negotiate: true})
	switch {
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		return nil, err // it says nothing of what the shadow wants
	case errors.Is(err, cedar.ErrNotNegotiated), errors.Is(err, cedar.ErrNoAnswer), errors.Is(err, cedar.ErrDenied):
		return nil, fmt.Errorf("%s, and takes files from nobody who does not authenticate (SEC_WRITE_AUTHENTICATION of the access point), "+
			"which starters cannot do by themselves; set SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION = True: %w", withoutSession, err)
	case err != nil:
		return nil, err
	case s.Encryption != "" && !stream.Encrypted():
		_ = stream.Close()
		return nil, fmt.Errorf("%s, and agrees to no encryption without one, which %s requires; set SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION = True", withoutSession, s.Encryption)
	}
	return stream, nil
}
