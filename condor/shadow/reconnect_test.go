package shadow

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// reconnectAd is the request of a 25.14 shadow.
const reconnectAd = `Command = "CA_RECONNECT_JOB"
MyType = "Command"
TargetType = "Reply"
ShadowIpAddr = "<127.0.0.1:9618?addrs=127.0.0.1-9618&sock=shadow_1_2>"
ShadowVersion = "$CondorVersion: 25.14.1 2026-10-01 BuildID: 1 $"
UidDomain = "example.org"
TransferKey = "1#abc"
TransferSocket = "<127.0.0.1:9618?addrs=127.0.0.1-9618&sock=shadow_1_2>"
`

// requested sends bytes as a shadow and reads them as the starter does.
func requested(t testing.TB, send func(*cedar.Stream)) (Reconnect, *classads.Ad, error) {
	t.Helper()
	a, b := pair(t)
	mine, theirs := cedar.NewStream(a), cedar.NewStream(b)
	theirs.SetTimeout(10 * time.Second)
	answer := make(chan *classads.Ad, 1)
	go func() {
		send(theirs)
		b.(*net.TCPConn).CloseWrite()
		ad, err := theirs.GetAd()
		if err != nil {
			ad = nil
		}
		answer <- ad
	}()
	r, err := ReadReconnect(mine)
	a.(*net.TCPConn).CloseWrite()
	return r, <-answer, err
}

func sendAd(t testing.TB, text string) func(*cedar.Stream) {
	return func(s *cedar.Stream) {
		s.PutAd(classad(t, text))
		if err := s.EndMessage(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadReconnect(t *testing.T) {
	r, answer, err := requested(t, sendAd(t, reconnectAd))
	if err != nil {
		t.Fatal(err)
	}
	if answer != nil {
		t.Errorf("answered before the starter decided: %v", answer)
	}
	const address = "<127.0.0.1:9618?addrs=127.0.0.1-9618&sock=shadow_1_2>"
	if r.Address != address || r.TransferSocket != address || r.TransferKey() != "1#abc" || !strings.Contains(r.Version, "25.14.1") {
		t.Errorf("%+v, key %q", r, r.TransferKey())
	}
	if shown := fmt.Sprintf("%v %+v %#v", r, r, r); strings.Contains(shown, "1#abc") {
		t.Errorf("the key is shown: %s", shown)
	}
}

func TestReadReconnectRefuses(t *testing.T) {
	for name, ad := range map[string]string{
		"nothing":            "",
		"another command":    strings.Replace(reconnectAd, "CA_RECONNECT_JOB", "CA_RENEW_LEASE_FOR_CLAIM", 1),
		"command no string":  strings.Replace(reconnectAd, `"CA_RECONNECT_JOB"`, "1202", 1),
		"no address":         strings.Replace(reconnectAd, "ShadowIpAddr", "X", 1),
		"address no address": strings.Replace(reconnectAd, `"<127.0.0.1:9618?addrs=127.0.0.1-9618&sock=shadow_1_2>"`, `"<shadow"`, 1),
		"long address":       strings.Replace(reconnectAd, "sock=shadow_1_2", "sock="+strings.Repeat("x", maxAddress), 1),
	} {
		t.Run(name, func(t *testing.T) {
			_, answer, err := requested(t, sendAd(t, ad))
			if err == nil {
				t.Fatal("no error")
			}
			if answer == nil || answer.StringOr("Result", "") != ResultInvalidRequest || answer.StringOr("ErrorString", "") == "" {
				t.Errorf("answer %v to %v", answer, err)
			}
		})
	}
}

// TestReadReconnectBroken: bytes that are not an ad give only an error.
func TestReadReconnectBroken(t *testing.T) {
	for name, send := range map[string]func(*cedar.Stream){
		"hangs up":       func(*cedar.Stream) {},
		"half a message": func(s *cedar.Stream) { _, _ = s.Conn().Write([]byte{1, 0, 0, 0, 200, 0}) },
		"too long": func(s *cedar.Stream) {
			s.PutInt(1)
			s.PutString("A = \"" + strings.Repeat("x", 2*maxRequest) + "\"")
			_ = s.EndMessage()
		},
		"many attributes": func(s *cedar.Stream) { s.PutInt(1 << 40); _ = s.EndMessage() },
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := requested(t, send); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestAcceptAndRefuse(t *testing.T) {
	for name, tt := range map[string]struct {
		send func(*cedar.Stream) error
		want map[string]string
	}{
		"accept": {func(s *cedar.Stream) error { return Accept(s, classad(t, "HasReconnect = true\nName = \"slot1\"\n")) },
			map[string]string{"Result": "Success", "Name": "slot1", "MyType": "Reply", "TargetType": "Command"}},
		"refuse": {func(s *cedar.Stream) error { return Refuse(s, ResultInvalidState, "too\x00late") },
			map[string]string{"Result": "InvalidState", "ErrorString": "too?late", "MyType": "Reply", "TargetType": "Command"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			go func() {
				if err := tt.send(cedar.NewStream(a)); err != nil {
					t.Error(err)
				}
			}()
			s := cedar.NewStream(b)
			ad, err := s.GetAd()
			if err != nil || s.EndOfMessage() != nil {
				t.Fatal(err)
			}
			for attr, want := range tt.want {
				if got := ad.StringOr(attr, ""); got != want {
					t.Errorf("%s = %q, want %q", attr, got, want)
				}
			}
		})
	}
}

// FuzzReadReconnect sends the command bytes of a hostile peer that has the
// claim's key.
func FuzzReadReconnect(f *testing.F) {
	seed := func(text string) []byte {
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			s := cedar.NewStream(b)
			s.PutAd(classad(f, text))
			_ = s.EndMessage()
			b.Close()
		}()
		bytes, err := io.ReadAll(a)
		if err != nil {
			f.Fatal(err)
		}
		return bytes
	}
	f.Add(seed(reconnectAd))
	f.Add(seed(`Command = "CA_RECONNECT_JOB"` + "\n"))
	f.Add([]byte{1, 0, 0, 0, 8, 0x7f, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		a, b := net.Pipe()
		defer a.Close()
		go func() {
			go func() { _, _ = io.Copy(io.Discard, b) }()
			_, _ = b.Write(input)
			b.Close()
		}()
		r, err := ReadReconnect(cedar.NewStream(a))
		if err != nil {
			return
		}
		if _, err := cedar.ParseSinful(r.Address); err != nil {
			t.Errorf("taken with the address %q", r.Address)
		}
	})
}

// TestRequeueOldShadow: a shadow that does not know the subcode -1000 gets no
// code for which it would hold the job.
func TestRequeueOldShadow(t *testing.T) {
	for _, tt := range []struct {
		version version.Version
		code    int64
	}{
		{version.Version{}, 0}, {version.Version{Major: 23, Minor: 9, Patch: 6}, 0}, {version.Version{Major: 25, Minor: 0, Patch: 13}, 0},
		{version.Version{Major: 25, Minor: 2, Patch: 1}, 12}, {version.Version{Major: 25, Minor: 14, Patch: 1}, 12},
	} {
		c, conn := connect(t)
		c.SetVersion(tt.version)
		told := make(chan *classads.Ad, 1)
		go func() {
			s := cedar.NewStream(conn)
			_, _ = s.GetInt()
			ad, _ := s.GetAd()
			told <- ad
		}()
		if err := c.ReportError(t.Context(), RemoteError{Message: "reset", Code: 12, Subcode: SubcodeRequeue, Critical: true}); err != nil {
			t.Fatal(err)
		}
		if ad := <-told; ad.IntOr("HoldReasonCode", 0) != tt.code {
			t.Errorf("%v is told %v", tt.version, ad)
		}
	}
}
