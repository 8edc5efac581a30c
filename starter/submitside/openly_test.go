package submitside

import (
	"net"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

type knobs map[string]string

func (k knobs) Lookup(name string) (string, bool) { v, ok := k[name]; return v, ok }

func TestSecurityOf(t *testing.T) {
	for _, tt := range []struct {
		name  string
		knobs knobs
		want  Security
	}{
		{"nothing", knobs{}, Security{}},
		{"strong", knobs{"SEC_DEFAULT_AUTHENTICATION": "required", "SEC_DEFAULT_ENCRYPTION": "REQUIRED", "SEC_DEFAULT_INTEGRITY": "REQUIRED"},
			Security{"SEC_DEFAULT_AUTHENTICATION", "SEC_DEFAULT_ENCRYPTION"}},
		{"not of clients", knobs{"SEC_DEFAULT_AUTHENTICATION": "REQUIRED", "SEC_CLIENT_AUTHENTICATION": "OPTIONAL"}, Security{}},
		{"not read by HTCondor", knobs{"SEC_CLIENT_AUTHENTICATION": "yes", "SEC_CLIENT_AUTHENTICATION_STARTER": "NEVER"}, Security{Authentication: "SEC_CLIENT_AUTHENTICATION"}},
		{"mistakes", knobs{"SEC_DEFAULT_AUTHENTICATION": `"REQUIRED"`, "SEC_CLIENT_ENCRYPTION": "1", "SEC_DEFAULT_ENCRYPTION": "NEVER"}, Security{"SEC_DEFAULT_AUTHENTICATION", "SEC_CLIENT_ENCRYPTION"}},
		{"integrity", knobs{"SEC_CLIENT_INTEGRITY": "True", "SEC_CLIENT_ENCRYPTION": ""}, Security{Encryption: "SEC_CLIENT_INTEGRITY"}},
		{"wishes", knobs{"SEC_CLIENT_AUTHENTICATION": "PREFERRED", "SEC_DEFAULT_ENCRYPTION": "PREFERRED"}, Security{}},
	} {
		if got := SecurityOf(tt.knobs); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestOpenly: what becomes of a transfer with a shadow that gave no session, and has no keys, as
// shadows of 23.9.
func TestOpenly(t *testing.T) {
	const authorized = `ReturnCode = "AUTHORIZED"`
	for _, tt := range []struct {
		name     string
		security Security
		policy   string // of the shadow; empty: it closes the connection
		result   string
		wrong    string
	}{
		{name: "everybody may", policy: `Authentication = "NO"`, result: authorized},
		{name: "only those that authenticate", policy: `Authentication = "YES"`, wrong: "SEC_WRITE_AUTHENTICATION of the access point"},
		{name: "it says nothing", wrong: "SEC_WRITE_AUTHENTICATION of the access point"},
		{name: "not this address", policy: `Authentication = "NO"`, result: `ReturnCode = "DENIED"`, wrong: "DENIED"},
		{name: "in the open", security: Security{Encryption: "SEC_DEFAULT_ENCRYPTION"}, policy: `Authentication = "NO"`, result: authorized, wrong: "which SEC_DEFAULT_ENCRYPTION requires"},
		{name: "this machine demands it", security: Security{Authentication: "SEC_DEFAULT_AUTHENTICATION"}, wrong: "SEC_DEFAULT_AUTHENTICATION requires authentication"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan string, 1)
			socket := openShadow(t, tt.policy, tt.result, got)
			side := New(nil, nil, tt.security, nil)
			stream, err := side.At(socket, &cedar.Client{Version: "$CondorVersion: 25.14.1 x $", Timeout: 5 * time.Second})(t.Context(), 1)
			if err != nil {
				if tt.wrong == "" || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(err.Error(), "SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION") {
					t.Errorf("%v, want %q", err, tt.wrong)
				}
				return
			}
			defer stream.Close()
			stream.PutString("key")
			if err := stream.EndMessage(); err != nil {
				t.Fatal(err)
			}
			if err := stream.Flush(); err != nil {
				t.Fatal(err)
			}
			if text := <-got; tt.wrong != "" || text != "key" {
				t.Errorf("the shadow got %q, want %q", text, tt.wrong)
			}
		})
	}
}

// openShadow is a server that makes sessions without authentication, and keeps the text that follows.
func openShadow(t *testing.T, policy, result string, got chan<- string) (socket string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	answer := func(s *cedar.Stream, text string) error {
		ad, err := classads.ParseOld(text)
		if err != nil {
			return err
		}
		s.PutAd(ad)
		if err := s.EndMessage(); err != nil {
			return err
		}
		return s.Flush()
	}
	go func() {
		defer close(got)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		s := cedar.NewStream(conn)
		s.SetTimeout(5 * time.Second)
		if _, err := s.GetInt(); err != nil {
			return
		}
		if _, err := s.GetAd(); err != nil || s.EndOfMessage() != nil || policy == "" || answer(s, policy) != nil || answer(s, result) != nil {
			return
		}
		if text, err := s.GetString(); err == nil {
			got <- text
		}
	}()
	return "<" + l.Addr().String() + ">"
}
