package shadow

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"podstarter/internal/cedar"
)

// caller has one connection to give.
type caller struct{ to *cedar.Stream }

func (c caller) Command(context.Context, string, int, *cedar.Session) (*cedar.Stream, error) {
	return c.to, nil
}

// TestKerberosConnection: the connection for a credential ends with the answer, whatever that
// is.
func TestKerberosConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(*cedar.Stream)
		want   string // empty: an error
	}{
		"a credential": {func(s *cedar.Stream) { s.PutInt(6); s.PutBytes([]byte("secret")) }, "secret"},
		"none":         {func(s *cedar.Stream) { s.PutInt(0) }, ""},
		"too much":     {func(s *cedar.Stream) { s.PutInt(maxUserCredential + 1) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := encrypted(t)
			theirs.SetTimeout(10 * time.Second)
			ended := make(chan error, 1)
			go func() {
				for range 2 {
					_, _ = theirs.GetString()
				}
				if n, err := theirs.GetInt(); err != nil || n != kerberosCredential || theirs.EndOfMessage() != nil {
					t.Errorf("the kind of credential is %d, %v", n, err)
				}
				tt.answer(theirs)
				if err := theirs.EndMessage(); err != nil {
					t.Error(err)
				}
				_, err := theirs.GetInt()
				ended <- err
			}()
			data, err := FetchKerberos(t.Context(), caller{mine}, "<127.0.0.1:1>", nil, "alice", "example.org")
			if string(data) != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("%q, %v", data, err)
			}
			if err := <-ended; !errors.Is(err, io.EOF) {
				t.Errorf("the shadow's end: %v", err)
			}
		})
	}
}
