package cedar

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	proxyKeyBits = 2048
	// maxProxy is the largest size of a chain of certificates.
	maxProxy = 1 << 20
)

// ErrNoDelegation reports that the peer could not delegate its X.509 proxy.
var ErrNoDelegation = errors.New("the peer could not delegate its X.509 proxy")

// ReceiveProxy takes an X.509 proxy by delegation: a new key is made here, the
// peer certifies it, and the key never travels (condor_io/reli_sock.cpp:
// get_x509_delegation, condor_utils/globus_utils.cpp:x509_receive_delegation).
// It returns the text of a proxy file. After an error other than
// ErrNoDelegation the peers are out of step.
func (s *Stream) ReceiveProxy() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, proxyKeyBits)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{SignatureAlgorithm: x509.SHA256WithRSA}, key)
	if err != nil {
		return nil, err
	}
	s.PutInt(int64(len(request)))
	s.PutBytes(request)
	if err := s.EndMessage(); err != nil {
		return nil, err
	}
	n, err := s.GetInt()
	if err != nil {
		return nil, err
	}
	switch {
	case n == 0:
		if err := s.EndOfMessage(); err != nil {
			return nil, err
		}
		return nil, ErrNoDelegation
	case n < 0 || n > maxProxy:
		return nil, fmt.Errorf("the peer offers an X.509 proxy of %d bytes, at most %d are taken", n, maxProxy)
	}
	der, err := s.GetBytes(int(n))
	if err != nil {
		return nil, err
	}
	if err := s.EndOfMessage(); err != nil {
		return nil, err
	}
	return proxyFile(der, key)
}

// proxyFile writes a proxy as tools expect it: certificate, its key, the rest
// of the chain. The certificates are concatenated DER.
func proxyFile(der []byte, key *rsa.PrivateKey) ([]byte, error) {
	chain, err := splitChain(der)
	if err != nil {
		return nil, fmt.Errorf("read the chain of the delegated X.509 proxy: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var out []byte
	for i, certificate := range chain {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})...)
		if i == 0 {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
		}
	}
	return out, nil
}

// splitChain splits concatenated certificates.
func splitChain(der []byte) (chain [][]byte, err error) {
	for len(der) > 0 {
		var certificate asn1.RawValue
		if der, err = asn1.Unmarshal(der, &certificate); err != nil {
			return nil, err
		}
		chain = append(chain, certificate.FullBytes)
	}
	return chain, nil
}
