package startd

import (
	"os"
	"testing"

	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
	"podstarter/testdata/streams"
)

// FuzzReadMachine reads anything a startd might write before it spawns us.
func FuzzReadMachine(f *testing.F) {
	for _, data := range streams.Seeds(f, recordings, func(r streams.Recording) bool { return r.Command() == streams.Updates }) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readMachine(cedartest.Adopted(t, streams.Say(t, streams.Unwire(data, false))))
		if err == nil && (m.Ad == nil || m.Overlay != nil && m.Overlay.Len() == 0 || m.Secrets != nil && m.Secrets.Len() == 0) {
			t.Errorf("%+v", m)
		}
	})
}

// FuzzOrders reads orders of both kinds.
func FuzzOrders(f *testing.F) {
	for _, data := range streams.Seeds(f, recordings, func(r streams.Recording) bool {
		return r.Command() == 1500 || r.Command() == cedar.DCRaiseSignal
	}) {
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if v, err := ReadVacate(cedartest.Adopted(t, streams.Say(t, streams.Unwire(data, sealed)))); err == nil && len(v.Reason) > maxReason {
			t.Errorf("a reason of %d bytes", len(v.Reason))
		}
		if n, err := ReadSignal(cedartest.Adopted(t, streams.Say(t, streams.Unwire(data, sealed)))); err == nil && n <= 0 {
			t.Errorf("signal %d", n)
		}
	})
}

// FuzzSharedPortAddress reads files with the shared port's address.
func FuzzSharedPortAddress(f *testing.F) {
	f.Add("MyAddress = \"<127.0.0.1:9618?addrs=127.0.0.1-9618&noUDP>\"\nSharedPortCommandSinfuls = \"<127.0.0.1:9618>\"\n")
	f.Add("MyAddress = \"<127.0.0.1:0>\"\n")
	path := f.TempDir() + "/shared_port_ad"
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sharedPortAddress(path)
		if err == nil && s.Port == 0 {
			t.Errorf("%q leads to %q", text, s)
		}
	})
}
