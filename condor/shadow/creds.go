package shadow

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Credential is one token or another credential of the job's user. It prints
// without its secret.
type Credential struct {
	Service string
	data    *[]byte
}

// Data returns the secret.
func (c Credential) Data() []byte {
	if c.data == nil {
		return nil
	}
	return *c.data
}

// String names only the service.
func (c Credential) String() string { return "credential of " + c.Service }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// FileName is the credential's file name in the directory of credentials.
func (c Credential) FileName() string {
	return strings.ReplaceAll(strings.ReplaceAll(c.Service, "*", "_"), "/", "_") + ".use"
}

// maxCredentials bounds how many credentials a shadow may send.
const maxCredentials = 1000

var errCredential = errors.New("a credential cannot be decoded")

// GetCreds fetches the OAuth credentials of the job. It refuses to do so on a
// connection that is not encrypted, unless plain is set (knob
// ALLOW_OAUTH_WITHOUT_ENCRYPTION).
func (c *Client) GetCreds(ctx context.Context, plain bool) ([]Credential, error) {
	const name = "getcreds"
	if !c.Encrypted() && !plain {
		return nil, fmt.Errorf("shadow call %s: %w", name, ErrNotEncrypted)
	}
	a := ask(ctx, c, call{name: name, number: CallGetCreds, bare: true, put: func(s *cedar.Stream) { s.PutString("") }}, takeCreds)
	if a.err == nil && a.value.bad != nil {
		a.err = fmt.Errorf("shadow call %s: %w", name, a.value.bad)
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.value.creds, nil
}

// credentials is a reply of getcreds; the connection survives bad.
type credentials struct {
	creds []Credential
	bad   error
}

// takeCreds reads credentials, each announced by 1, until 0 or, after a
// failure, a negative number.
func takeCreds(s *cedar.Stream, _ int64) (credentials, error) {
	var all credentials
	for {
		more, err := s.GetInt()
		if err != nil || more == 0 {
			return all, err
		}
		if more < 0 {
			all.bad = fmt.Errorf("the shadow answers %d", more)
			return all, nil
		}
		if len(all.creds) == maxCredentials {
			return all, fmt.Errorf("the shadow sends more than %d credentials", maxCredentials)
		}
		ad, err := s.GetAd()
		if err != nil && !harmless(err) {
			return all, err
		}
		if err != nil { // this one is unusable, the stream is not
			ad = classads.NewAd()
		}
		cred, err := credential(ad)
		if err != nil && all.bad == nil {
			all.bad = err
		}
		all.creds = append(all.creds, cred)
	}
}

// credential reads one credential. Shadows before 10.8.0 send a file name
// instead of the service's name
// (condor_starter.V6.1/NTsenders.cpp:REMOTE_CONDOR_getcreds).
func credential(ad *classads.Ad) (Credential, error) {
	service := ad.StringOr("Service", "")
	if name, ok := strings.CutSuffix(service, ".use"); ok {
		service = name
		if !strings.Contains(name, "*") {
			service = strings.ReplaceAll(name, "_", "*")
		}
	}
	data, err := base64.StdEncoding.DecodeString(ad.StringOr("Data", ""))
	if err != nil || len(data) == 0 || service == "" {
		return Credential{Service: service}, errCredential
	}
	return Credential{Service: service, data: &data}, nil
}

// Refusal is what a shadow says in place of credentials for registries. Stock holds the job with these words
// (docker_proc.cpp:DockerProc::StartJob).
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return "shadow call get_docker_creds: the shadow says: " + r.Text }

// GetDockerCreds fetches the registries' part of docker's config.json, as an
// ad. Call it only for a job with DockerSendCredentials: for another job the
// shadow answers twice. It requires encryption as GetCreds does.
func (c *Client) GetDockerCreds(ctx context.Context, plain bool) (*classads.Ad, error) {
	const name = "get_docker_creds"
	if err := c.since(name, 24, 7, 0); err != nil {
		return nil, err
	}
	if !c.Encrypted() && !plain {
		return nil, fmt.Errorf("shadow call %s: %w", name, ErrNotEncrypted)
	}
	a := ask(ctx, c, call{name: name, number: CallGetDockerCreds, bare: true, put: func(s *cedar.Stream) { s.PutAd(classads.NewAd()) }}, takeAd)
	if a.err != nil {
		return nil, a.err
	}
	if text, err := a.value.GetString("HTCondorError"); err == nil {
		return nil, &Refusal{text}
	}
	return a.value, nil
}
