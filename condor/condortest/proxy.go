package condortest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"math/big"
	"sync"
	"time"
)

// signer is the key of a user's certificate.
var signer = sync.OnceValues(func() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })

// certificates certifies the key of a request: a chain of DER, one behind the other.
func certificates(der []byte, chain int) (out []byte, err error) {
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, errors.Join(errNoKey, err)
	}
	key, err := signer()
	if err != nil {
		return nil, err
	}
	for i := range chain {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotAfter: time.Now().Add(time.Hour)}
		cert, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, key)
		if err != nil {
			return nil, err
		}
		out = append(out, cert...)
	}
	return out, nil
}
