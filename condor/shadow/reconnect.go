package shadow

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Reconnect is the request of a shadow that comes back: further calls should
// use the connection on which it was sent
// (condor_shadow.V6.1/remoteresource.cpp:RemoteResource::requestReconnect). It
// prints without its secret.
type Reconnect struct {
	Address        string // of the shadow, in brackets
	Version        string // of the shadow, a $CondorVersion$ string
	TransferSocket string // the new address for file transfers; empty if not given

	key *string // a pointer, so that no formatting verb reaches it
}

// TransferKey is the key with which file transfers must begin from now on;
// empty if the shadow gave none.
func (r Reconnect) TransferKey() string {
	if r.key == nil {
		return ""
	}
	return *r.key
}

// String names the shadow.
func (r Reconnect) String() string { return "reconnect of the shadow " + r.Address }

// GoString is String.
func (r Reconnect) GoString() string { return r.String() }

// LogValue is String.
func (r Reconnect) LogValue() slog.Value { return slog.StringValue(r.String()) }

// Results of a command that travels as an ad
// (condor_utils/condor_commands.cpp:getCAResultString). After any refusal the
// shadow gives the job up for lost and runs it again; it tries again only if
// the connection just ends.
const (
	ResultSuccess        = "Success"
	ResultNotAuthorized  = "NotAuthorized"
	ResultInvalidRequest = "InvalidRequest"
	ResultInvalidState   = "InvalidState"
)

// Bounds of a request; HTCondor has only the first one
// (classad_command_util.cpp:getCmdFromReliSock).
const (
	requestTimeout = 10 * time.Second
	maxRequest     = 1 << 20 // bytes; requests have a few hundred
	maxAddress     = 8 << 10
)

const commandReconnect = "CA_RECONNECT_JOB"

// ReadReconnect reads the payload of the command CA_CMD (1200); starters know
// only the kind CA_RECONNECT_JOB. Another kind, or an invalid request, is
// refused and returned as an error.
func ReadReconnect(s *cedar.Stream) (Reconnect, error) {
	s.SetTimeout(requestTimeout)
	s.SetMessageLimit(maxRequest)
	defer s.SetMessageLimit(0)
	ad, err := s.GetAd()
	if err == nil || harmless(err) {
		if e := s.EndOfMessage(); e != nil {
			err = e
		}
	}
	if err != nil && !harmless(err) {
		return Reconnect{}, fmt.Errorf("reading a shadow's command: %w", err)
	}
	r := Reconnect{}
	if err == nil {
		r, err = reconnectOf(ad)
	}
	if err != nil {
		err = fmt.Errorf("a shadow's command: %w", err)
		return r, errors.Join(err, Refuse(s, ResultInvalidRequest, err.Error()))
	}
	return r, nil
}

func reconnectOf(ad *classads.Ad) (Reconnect, error) {
	switch command, err := ad.GetString("Command"); {
	case err != nil:
		return Reconnect{}, errors.New("it has no name")
	case !strings.EqualFold(command, commandReconnect):
		return Reconnect{}, fmt.Errorf("a starter does not know the command %.80q", command)
	}
	key := ad.StringOr("TransferKey", "")
	r := Reconnect{
		Address: ad.StringOr("ShadowIpAddr", ""), Version: ad.StringOr("ShadowVersion", ""),
		TransferSocket: ad.StringOr("TransferSocket", ""), key: &key,
	}
	for name, address := range map[string]string{"ShadowIpAddr": r.Address, "TransferSocket": r.TransferSocket} {
		if address == "" && name == "TransferSocket" {
			continue // a job whose files are not transferred
		}
		if len(address) > maxAddress {
			return Reconnect{}, fmt.Errorf("%s has %d bytes", name, len(address))
		}
		if _, err := cedar.ParseSinful(address); err != nil {
			return Reconnect{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, nil
}

// Accept tells the shadow that it has its job back, and who runs it: info is
// the ad of RegisterStarterInfo, without the slot's ad. Pass the stream to
// [Client.Resume] afterwards.
func Accept(s *cedar.Stream, info *classads.Ad) error {
	reply := info.Clone()
	reply.SetString("Result", ResultSuccess)
	return sendReply(s, reply)
}

// Refuse tells the shadow that it does not get its job back, and why.
func Refuse(s *cedar.Stream, result, why string) error {
	reply := classads.NewAd()
	reply.SetString("Result", result)
	reply.SetString("ErrorString", clean(why))
	return sendReply(s, reply)
}

// sendReply sends the reply of a command that travels as an ad
// (classad_command_util.cpp:sendCAReply).
func sendReply(s *cedar.Stream, reply *classads.Ad) error {
	reply.SetString("MyType", "Reply")
	reply.SetString("TargetType", "Command")
	s.PutAd(reply)
	err := s.EndMessage()
	if err == nil {
		err = s.Flush()
	}
	if err != nil {
		return fmt.Errorf("answering a shadow's command: %w", err)
	}
	return nil
}
