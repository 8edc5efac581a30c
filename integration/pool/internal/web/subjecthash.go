package web

import (
	"crypto/sha1" //nolint:gosec // names files, protects nothing
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"podstarter/integration/pool/internal/statedir"
)

// publish writes an authority's certificate into a directory under the name under
// which OpenSSL looks for it.
func publish(certificate, dir string) error {
	text, err := os.ReadFile(certificate)
	if err != nil {
		return fmt.Errorf("publishing the authority: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return errors.New("publishing the authority: its certificate is not PEM")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("publishing the authority: %w", err)
	}
	name, err := subjectHash(parsed.Subject.CommonName)
	if err != nil {
		return fmt.Errorf("publishing the authority: %w", err)
	}
	return statedir.WriteFile(fmt.Sprintf("%s/%s.0", dir, name), text, 0o644)
}

// subjectHash is the file name of a certificate in a directory of authorities, as
// `openssl x509 -subject_hash` prints it. It works for a subject with only a common
// name, in small letters with single spaces, which the canonical form of names
// leaves as it is (crypto/x509/x_name.c: x509_name_canon).
func subjectHash(commonName string) (string, error) {
	type attribute struct {
		Type  asn1.ObjectIdentifier
		Value string `asn1:"utf8"`
	}
	type set []attribute
	der, err := asn1.MarshalWithParams(set{{asn1.ObjectIdentifier{2, 5, 4, 3}, commonName}}, "set")
	if err != nil {
		return "", err
	}
	sum := sha1.Sum(der) //nolint:gosec // see above
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(sum[:4])), nil
}
