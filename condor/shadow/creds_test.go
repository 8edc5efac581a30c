package shadow

import (
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
)

func oneToken(service, data string) func(*cedar.Stream) {
	return func(s *cedar.Stream) {
		ad := classads.NewAd()
		ad.SetString("Service", service)
		ad.SetString("Data", data)
		s.PutInt(1)
		s.PutAd(ad)
		s.PutInt(0)
	}
}

// FuzzCredentials has shadows send anything as tokens and as Kerberos
// credentials: the result is an error, or credentials whose file names stay in
// their directory.
func FuzzCredentials(f *testing.F) {
	f.Add(cedartest.Written(f, oneToken("scitokens", "dG9rZW4=")))
	f.Add(cedartest.Written(f, oneToken("../../x_y.use", "dG9rZW4=")))
	f.Add(cedartest.Written(f, oneToken("bad", "!")))
	f.Add(cedartest.Written(f, func(s *cedar.Stream) { s.PutInt(-1) }))
	f.Add(cedartest.Written(f, func(s *cedar.Stream) { s.PutInt(5); s.PutBytes([]byte("12345")) }))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if all, err := takeCreds(cedartest.Said(t, raw), 0); err == nil && all.bad == nil {
			for _, c := range all.creds {
				if name := c.FileName(); name == "" || name[0] == '/' || len(c.Data()) == 0 {
					t.Errorf("a credential of %d bytes for the file %q", len(c.Data()), name)
				}
				for _, r := range c.FileName() {
					if r == '/' {
						t.Errorf("a credential for the file %q", c.FileName())
					}
				}
			}
		}
		if data, err := takeCredential(cedartest.Said(t, raw)); err == nil && len(data) == 0 {
			t.Error("an empty credential is accepted")
		}
	})
}
