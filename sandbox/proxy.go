package sandbox

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
	// maxProxy bounds what a peer may send as a chain of certificates.
	maxProxy = 1 << 20
)

var errNoDelegation = errors.New("the shadow could not delegate its X.509 proxy")

// receiveProxy takes an X.509 proxy by delegation: a new key is made here,
// the peer certifies it, and the key never travels (src/condor_io/
// reli_sock.cpp:get_x509_delegation, src/condor_utils/globus_utils.cpp). After
// a failure the peers are out of step.
func (d *download) receiveProxy(target string) error {
	key, err := rsa.GenerateKey(rand.Reader, proxyKeyBits)
	if err != nil {
		return err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{SignatureAlgorithm: x509.SHA256WithRSA}, key)
	if err != nil {
		return err
	}
	d.s.PutInt(int64(len(request)))
	d.s.PutBytes(request)
	if err := d.s.EndMessage(); err != nil {
		return err
	}
	n, err := d.s.GetInt()
	if err != nil {
		return err
	}
	switch {
	case n == 0:
		return errNoDelegation
	case n < 0 || n > maxProxy:
		return fmt.Errorf("the shadow offers an X.509 proxy of %d bytes, at most %d are taken", n, maxProxy)
	}
	der, err := d.s.GetBytes(int(n))
	if err != nil {
		return err
	}
	if err := d.s.EndOfMessage(); err != nil {
		return err
	}
	text, err := proxyFile(der, key)
	if err != nil {
		return err
	}
	if target == "" {
		return nil
	}
	f, err := d.Sandbox.inside.CreateNew(target)
	if err == nil {
		_, err = f.Write(text)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		d.fail(&TransferError{Code: CodeDownload, Subcode: int(errno(err)), Err: err,
			Text: fmt.Sprintf("STARTER at %s - |Error: writing to file %s: %s", d.local(), d.shown(target), fileText(err))})
		return nil
	}
	d.proxy = target
	return nil
}

// proxyFile writes a proxy as tools expect it: certificate, its key, the rest
// of the chain. The certificates come as DER, one behind the other.
func proxyFile(der []byte, key *rsa.PrivateKey) ([]byte, error) {
	var out []byte
	for first := true; len(der) > 0; first = false {
		var certificate asn1.RawValue
		rest, err := asn1.Unmarshal(der, &certificate)
		if err != nil {
			return nil, fmt.Errorf("read the chain of the delegated X.509 proxy: %w", err)
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.FullBytes})...)
		if first {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})...)
		}
		der = rest
	}
	return out, nil
}
