package cedar

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"testing"
)

// FuzzProxyFile feeds whatever a shadow might send as a delegated proxy; the
// key is made once, since that takes most of a second.
func FuzzProxyFile(f *testing.F) {
	key, err := rsa.GenerateKey(rand.Reader, proxyKeyBits)
	must(f, err)
	f.Add([]byte{0x30, 0x03, 0x02, 0x01, 0x05})
	f.Fuzz(func(t *testing.T, der []byte) {
		text, err := proxyFile(der, key)
		if err == nil && len(der) > 0 && !bytes.HasPrefix(text, []byte("-----BEGIN CERTIFICATE-----")) {
			t.Errorf("proxy begins with %.30q", text)
		}
	})
}
