package shadow

import (
	"context"
	"fmt"

	"podstarter/internal/cedar"
)

// kerberosCredential is the kind of credential to ask CREDD_GET_CRED for
// (condor_utils/store_cred.h: STORE_CRED_USER_KRB).
const kerberosCredential = 0x20

// maxUserCredential bounds what a shadow may send, in bytes
// (condor_daemon_client/dc_shadow.cpp:getUserCredential has a similar limit).
const maxUserCredential = 16 << 20

// Caller starts commands at other daemons; [cedar.Client] does.
type Caller interface {
	Command(ctx context.Context, addr string, cmd int, session *cedar.Session) (*cedar.Stream, error)
}

// FetchKerberos asks the shadow at addr for the credential that the user has
// stored at the access point and from which Kerberos tickets can be made. It
// uses a connection of its own, on the claim's session; a shadow without the
// credential just hangs up.
func FetchKerberos(ctx context.Context, by Caller, addr string, session *cedar.Session, user, domain string) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("fetch the Kerberos credential of %s@%s from the shadow %s: %w", user, domain, addr, err)
	}
	s, err := by.Command(ctx, addr, cedar.CreddGetCred, session)
	if err != nil {
		return fail(err)
	}
	defer s.Close()
	defer s.Cancel(ctx)()
	if !s.Encrypted() {
		return fail(ErrNotEncrypted)
	}
	s.PutString(user)
	s.PutString(domain)
	s.PutInt(kerberosCredential)
	if err := s.EndMessage(); err != nil {
		return fail(err)
	}
	data, err := takeCredential(s)
	if err != nil {
		return fail(err)
	}
	return data, nil
}

// takeCredential reads the answer: a size and so many bytes.
func takeCredential(s *cedar.Stream) ([]byte, error) {
	n, err := s.GetInt()
	if err != nil {
		return nil, fmt.Errorf("%w (has the user stored one with condor_store_cred add-krb?)", err)
	}
	if n <= 0 || n > maxUserCredential {
		return nil, fmt.Errorf("it offers %d bytes, at most %d are accepted", n, maxUserCredential)
	}
	data, err := s.GetBytes(int(n))
	if err == nil {
		err = s.EndOfMessage()
	}
	return data, err
}
