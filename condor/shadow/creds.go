package shadow

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"podstarter/cedar"
	"podstarter/classads"
)

// Credential is one token or the like that belongs to the job's user. It
// prints without its secret.
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

// String names the service.
func (c Credential) String() string { return "credential of " + c.Service }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// FileName is the name of the credential's file in the directory of
// credentials.
func (c Credential) FileName() string {
	return strings.ReplaceAll(strings.ReplaceAll(c.Service, "*", "_"), "/", "_") + ".use"
}

// maxCredentials bounds how many credentials a shadow may send.
const maxCredentials = 1000

var errCredential = errors.New("a credential cannot be decoded")

// GetCreds fetches the OAuth credentials of the job. It refuses to do so on a
// connection that is not encrypted, unless plain is set, for which there is the
// knob ALLOW_OAUTH_WITHOUT_ENCRYPTION.
func (c *Client) GetCreds(ctx context.Context, plain bool) ([]Credential, error) {
	const name = "getcreds"
	if !c.stream.Encrypted() && !plain {
		return nil, fmt.Errorf("shadow call %s: %w", name, ErrNotEncrypted)
	}
	var creds []Credential
	var bad error
	_, err := c.do(ctx, call{name: name, number: numGetCreds, bare: true,
		put: func(s *cedar.Stream) { s.PutString("") },
		get: func(s *cedar.Stream, _ int64) error {
			for {
				more, err := s.GetInt()
				if err != nil || more == 0 {
					return err
				}
				if more < 0 {
					bad = &CallError{Call: name, Result: int(more)}
					return nil
				}
				if len(creds) == maxCredentials {
					return fmt.Errorf("the shadow sends more than %d credentials", maxCredentials)
				}
				ad, err := s.GetAd()
				var badAd *cedar.AdError
				if err != nil && !errors.As(err, &badAd) {
					return err
				}
				if err != nil { // this one is spoilt, the stream is not
					ad = classads.NewAd()
				}
				cred, err := credential(ad)
				if err != nil && bad == nil {
					bad = fmt.Errorf("shadow call %s: %w", name, err)
				}
				creds = append(creds, cred)
			}
		}})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	return creds, nil
}

// credential reads one credential. Shadows before 10.8.0 send the name of a
// file in the place of the service's
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

// GetDockerCreds fetches what docker's config.json holds about registries, as
// an ad. It is made only for a job with DockerSendCredentials: a shadow whose
// job lacks it answers twice. Encryption is demanded as in GetCreds.
func (c *Client) GetDockerCreds(ctx context.Context, plain bool) (*classads.Ad, error) {
	const name = "get_docker_creds"
	if err := c.since(name, 24, 7, 0); err != nil {
		return nil, err
	}
	if !c.stream.Encrypted() && !plain {
		return nil, fmt.Errorf("shadow call %s: %w", name, ErrNotEncrypted)
	}
	var ad *classads.Ad
	_, err := c.do(ctx, call{name: name, number: numGetDockerCreds, bare: true,
		put: func(s *cedar.Stream) { s.PutAd(classads.NewAd()) },
		get: func(s *cedar.Stream, _ int64) (err error) {
			ad, err = s.GetAd()
			return err
		}})
	if err != nil {
		return nil, err
	}
	if text, err := ad.GetString("HTCondorError"); err == nil {
		return nil, fmt.Errorf("shadow call %s: the shadow says: %s", name, text)
	}
	return ad, nil
}
