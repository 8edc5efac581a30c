package shadow

import (
	"io"
	"net"
	"testing"

	"podstarter/cedar"
	"podstarter/classads"
)

// said is a stream whose peer has said raw and hung up.
func said(t testing.TB, raw []byte) *cedar.Stream {
	mine, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_, _ = theirs.Write(raw)
		_ = theirs.Close()
	}()
	t.Cleanup(func() {
		_ = mine.Close()
		<-done
	})
	return cedar.NewStream(mine)
}

// onWire is what put puts on the wire as one message.
func onWire(t testing.TB, put func(*cedar.Stream)) []byte {
	mine, theirs := net.Pipe()
	s := cedar.NewStream(mine)
	all := make(chan []byte)
	go func() {
		raw, _ := io.ReadAll(theirs)
		all <- raw
	}()
	put(s)
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	return <-all
}

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

// FuzzCredentials has shadows answer anything at all to who asks for tokens and
// for what Kerberos tickets are made of: an error, or credentials whose names
// stay in their directory.
func FuzzCredentials(f *testing.F) {
	f.Add(onWire(f, oneToken("scitokens", "dG9rZW4=")))
	f.Add(onWire(f, oneToken("../../x_y.use", "dG9rZW4=")))
	f.Add(onWire(f, oneToken("bad", "!")))
	f.Add(onWire(f, func(s *cedar.Stream) { s.PutInt(-1) }))
	f.Add(onWire(f, func(s *cedar.Stream) { s.PutInt(5); s.PutBytes([]byte("12345")) }))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if all, err := takeCreds(said(t, raw), 0); err == nil && all.bad == nil {
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
		if data, err := takeCredential(said(t, raw)); err == nil && len(data) == 0 {
			t.Error("an empty credential is taken")
		}
	})
}
