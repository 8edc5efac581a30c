package shadow

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// fields encodes the payload of a packet of a plaintext stream: integers are
// eight bytes, strings end with NUL (starter-side of reli_sock.cpp).
func fields(values ...any) []byte {
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.BigEndian.AppendUint64(b, uint64(int64(v)))
		case string:
			b = append(append(b, v...), 0)
		case []byte:
			b = append(b, v...)
		case ad:
			b = append(b, fields(len(v))...)
			for _, line := range v {
				b = append(b, fields(line)...)
			}
			b = append(b, fields("", "")...)
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return b
}

// ad is an ad on the wire: lines "Name = expression".
type ad []string

// message puts fields into one packet, which is a whole message.
func message(values ...any) []byte {
	payload := fields(values...)
	b := []byte{1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

func classad(t testing.TB, text string) *classads.Ad {
	t.Helper()
	a, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pair connects two ends over loopback.
func pair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

var quiet = slog.New(slog.DiscardHandler)

// connect makes a client and returns its shadow's connection.
func connect(t testing.TB) (*Client, net.Conn) {
	t.Helper()
	mine, theirs := pair(t)
	c := New(cedar.NewStream(mine), quiet)
	c.SetVersion(version.Version{Major: 25, Minor: 14, Patch: 1})
	t.Cleanup(func() { c.Close() })
	return c, theirs
}

// expect reads a request byte for byte and answers.
func expect(t testing.TB, conn net.Conn, request, reply []byte) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		got := make([]byte, len(request))
		if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, request) {
			t.Errorf("request: %v\ngot  %s\nwant %s", err, hex.EncodeToString(got[:n]), hex.EncodeToString(request))
			conn.Close()
			return
		}
		if _, err := conn.Write(reply); err != nil {
			t.Errorf("reply: %v", err)
		}
	}()
	return done
}

func TestRequestBytes(t *testing.T) {
	// One exchange spelled out, to check the helpers above.
	const want = "0100000008ffffffffffffffb2" // end, 8 bytes, -78
	if got := hex.EncodeToString(message(-78)); got != want {
		t.Fatalf("begin_execution is %s, want %s", got, want)
	}
	reply, _ := hex.DecodeString("01000000080000000000000000")
	c, conn := connect(t)
	request, _ := hex.DecodeString(want)
	done := expect(t, conn, request, reply)
	if err := c.BeginExecution(context.Background()); err != nil {
		t.Error(err)
	}
	<-done
}

func TestCalls(t *testing.T) {
	ctx := context.Background()
	update := `A = 1` + "\n" + `B = "x"`
	sent := ad{"A = 1", `B = "x"`}
	show := func(a *classads.Ad) string {
		if a == nil {
			return ""
		}
		return a.FormatOld()
	}
	for name, tt := range map[string]struct {
		request, reply []byte
		call           func(*Client) (any, error)
		want           any
		err            string
		errno          syscall.Errno
	}{
		"get_job_info": {message(-63), message(0, ad{`Cmd = "x"`, `ClaimId = "secret"`}),
			func(c *Client) (any, error) { a, err := c.GetJobInfo(ctx); return show(a), err }, "Cmd = \"x\"\nClaimId = \"secret\"\n", "", 0},
		"get_job_info refused": {message(-63), message(-1, 2),
			func(c *Client) (any, error) { a, err := c.GetJobInfo(ctx); return show(a), err }, "", "get_job_info: the shadow refuses", syscall.ENOENT},
		"get_job_info spoilt": {message(-63), message(0, ad{`Cmd = (`, "X = 1"}),
			func(c *Client) (any, error) { a, err := c.GetJobInfo(ctx); return show(a), err }, "", "get_job_info: answer", 0},
		"get_user_info": {message(-76), message(0, ad{"Uid = 5"}),
			func(c *Client) (any, error) { a, err := c.GetUserInfo(ctx); return show(a), err }, "Uid = 5\n", "", 0},
		"register_starter_info": {message(-77, sent), message(0),
			func(c *Client) (any, error) { return nil, c.RegisterStarterInfo(ctx, classad(t, update)) }, nil, "", 0},
		"register_job_info": {message(-81, sent), message(0),
			func(c *Client) (any, error) { return nil, c.RegisterJobInfo(ctx, classad(t, update)) }, nil, "", 0},
		"register_job_info refused in portable numbers": {message(-81, sent), message(-1, 41),
			func(c *Client) (any, error) { return nil, c.RegisterJobInfo(ctx, classad(t, update)) }, nil, "refuses", syscall.ENOTEMPTY},
		"job_termination": {message(-82, sent), message(0),
			func(c *Client) (any, error) { return nil, c.JobTermination(ctx, classad(t, update)) }, nil, "", 0},
		"job_exit": {message(-65, 1792, 100, sent), message(0),
			func(c *Client) (any, error) { return nil, c.JobExit(ctx, 1792, JobExited, classad(t, update)) }, nil, "", 0},
		"job_exit without an ad": {message(-65, -1, 114, ad{}), message(0),
			func(c *Client) (any, error) {
				return nil, c.JobExit(ctx, JobStatusNeverStarted, JobMissedDeferralTime, nil)
			}, nil, "", 0},
		"event_notification": {message(304, ad{`EventType = "ActivationExecutionExit"`}), message(-3),
			func(c *Client) (any, error) { return c.EventNotification(ctx, Event(EventExecutionExit)) }, -3, "", 0},
		"request_guidance": {message(305, ad{`RequestType = "JobSetup"`}), message(0, ad{`Command = "RetryReqest"`}),
			func(c *Client) (any, error) {
				g, err := c.RequestGuidance(ctx, classad(t, `RequestType = "JobSetup"`))
				return g.Command(), err
			}, CommandRetryRequest, "", 0},
		"request_guidance refused": {message(305, ad{`RequestType = "Odd"`}), message(-1, ad{`Command = "Abort"`}),
			func(c *Client) (any, error) {
				g, err := c.RequestGuidance(ctx, classad(t, `RequestType = "Odd"`))
				return fmt.Sprintf("%d %s", g.Code, g.Command()), err
			}, "-1 CarryOn", "", 0},
		"whoami": {message(297, 32), message(6, []byte("CONDOR")),
			func(c *Client) (any, error) { return c.WhoAmI(ctx) }, "CONDOR", "", 0},
		"dprintf_stats": {message(-84, "line"), message(0),
			func(c *Client) (any, error) { return nil, c.DprintfStats(ctx, "line") }, nil, "", 0},
		"get_job_attr": {message(285, "Owner"), message(0, `"u"`),
			func(c *Client) (any, error) { return c.GetJobAttr(ctx, "Owner") }, `"u"`, "", 0},
		"set_job_attr": {message(286, "1 + 1", "ChirpMine"), message(0),
			func(c *Client) (any, error) { return nil, c.SetJobAttr(ctx, "ChirpMine", "1 + 1") }, nil, "", 0},
		"constrain": {message(287, "true"), message(-1, 13),
			func(c *Client) (any, error) { return nil, c.Constrain(ctx, "true") }, nil, "permission denied", syscall.EACCES},
		"get_docker_creds in plain": {message(-85, ad{}), message(ad{`auths = "x"`}),
			func(c *Client) (any, error) { a, err := c.GetDockerCreds(ctx, true); return show(a), err }, "auths = \"x\"\n", "", 0},
		"get_docker_creds failed": {message(-85, ad{}), message(ad{`HTCondorError = "no such file"`}),
			func(c *Client) (any, error) { a, err := c.GetDockerCreds(ctx, true); return show(a), err }, "", "the shadow says: no such file", 0},
		"getcreds in plain": {message(302, ""), message(1, ad{`Service = "box*me"`, `Data = "c2VjcmV0"`}, 1, ad{`Service = "osdf_x.use"`, `Data = "eA=="`}, 0),
			func(c *Client) (any, error) {
				creds, err := c.GetCreds(ctx, true)
				s := ""
				for _, cred := range creds {
					s += fmt.Sprintf("%s %s %s;", cred.Service, cred.FileName(), cred.Data())
				}
				return s, err
			}, "box*me box_me.use secret;osdf*x osdf_x.use x;", "", 0},
		"getcreds failed": {message(302, ""), message(-1),
			func(c *Client) (any, error) { _, err := c.GetCreds(ctx, true); return nil, err }, nil, "the shadow answers -1", 0},
		"getcreds spoilt": {message(302, ""), message(1, ad{`Service = "x"`, `Data = "?"`}, 1, ad{"="}, 0),
			func(c *Client) (any, error) { _, err := c.GetCreds(ctx, true); return nil, err }, nil, "cannot be decoded", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, conn := connect(t)
			before := c.LastCall()
			done := expect(t, conn, tt.request, tt.reply)
			got, err := tt.call(c)
			<-done
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if tt.errno != 0 && !errors.Is(err, tt.errno) {
				t.Errorf("error %v, want errno %v", err, tt.errno)
			}
			if errors.Is(err, ErrLost) {
				t.Errorf("%v counts as a loss", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !c.LastCall().After(before) {
				t.Error("the call does not count for the lease")
			}
			// The stream must be in step for the next call.
			done = expect(t, conn, message(297, 32), message(6, []byte("CONDOR")))
			if who, err := c.WhoAmI(ctx); err != nil || who != "CONDOR" {
				t.Errorf("the next call: %q, %v", who, err)
			}
			<-done
		})
	}
}

func TestReportError(t *testing.T) {
	at := time.Date(2026, 11, 20, 23, 11, 38, 0, time.FixedZone("", 3600))
	for name, tt := range map[string]struct {
		e    RemoteError
		want string
	}{
		"hold": {RemoteError{Message: "Failed to execute 'x'\nline 2", Code: HoldFailedToCreateProcess, Subcode: 2, Critical: true},
			"MyType = \"RemoteErrorEvent\"\nEventTypeNumber = 21\nEventTime = \"2026-11-20T22:11:38Z\"\nDaemon = \"starter\"\nErrorMsg = \"Failed to execute 'x'\nline 2\"\nHoldReasonCode = 6\nHoldReasonSubCode = 2\n"},
		"no code":      {RemoteError{Message: "a\x00b", Subcode: 5, Critical: true}, "MyType = \"RemoteErrorEvent\"\nEventTypeNumber = 21\nEventTime = \"2026-11-20T22:11:38Z\"\nDaemon = \"starter\"\nErrorMsg = \"a?b\"\n"},
		"not critical": {RemoteError{}, "MyType = \"RemoteErrorEvent\"\nEventTypeNumber = 21\nEventTime = \"2026-11-20T22:11:38Z\"\nDaemon = \"starter\"\nCriticalError = 0\n"},
	} {
		if diff := cmp.Diff(tt.want, tt.e.event(at).FormatOld()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoReply: the next call does not wait for an answer that never comes.
func TestNoReply(t *testing.T) {
	c, conn := connect(t)
	ctx := context.Background()
	peer := cedar.NewStream(conn)
	events := make(chan string, 2)
	go func() {
		for range 4 {
			n, _ := peer.GetInt()
			a, err := peer.GetAd()
			if err != nil || peer.EndOfMessage() != nil || n != 284 {
				t.Errorf("%d, %v", n, err)
				close(events)
				return
			}
			events <- a.StringOr("MyType", "") + " " + a.StringOr("Info", a.StringOr("ErrorMsg", ""))
		}
	}()
	texts := []string{strings.Repeat("é", 600), strings.Repeat("x", maxGeneric), strings.Repeat("x", maxGeneric+1)}
	for _, text := range texts {
		if err := c.LogGeneric(ctx, text); err != nil {
			t.Error(err)
		}
	}
	if err := c.ReportError(ctx, RemoteError{Message: "m"}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{strings.Repeat("é", 511), texts[1], texts[1]} {
		if got := <-events; got != "GenericEvent "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := <-events; got != "RemoteErrorEvent m" {
		t.Errorf("%q", got)
	}
}

// TestOldShadow: no call is made that the shadow would not answer.
func TestOldShadow(t *testing.T) {
	ctx := context.Background()
	c, conn := connect(t)
	for _, v := range []version.Version{{}, {Major: 8, Minor: 4}} {
		c.SetVersion(v)
		if n, err := c.EventNotification(ctx, Event("X")); n != 0 || err != nil {
			t.Errorf("%v: event_notification: %d, %v", v, n, err)
		}
		if g, err := c.RequestGuidance(ctx, classads.NewAd()); g.Command() != CommandCarryOn || err != nil {
			t.Errorf("%v: request_guidance: %+v, %v", v, g, err)
		}
		if err := c.DprintfStats(ctx, "x"); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: dprintf_stats: %v", v, err)
		}
		if _, err := c.GetDockerCreds(ctx, true); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: get_docker_creds: %v", v, err)
		}
	}
	for name, call := range map[string]func() error{
		"getcreds":             func() error { _, err := c.GetCreds(ctx, false); return err },
		"get_sec_session_info": func() error { _, err := c.GetSecSessionInfo(ctx); return err },
	} {
		if err := call(); !errors.Is(err, ErrNotEncrypted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.SetVersion(version.Version{Major: 24, Minor: 7})
	if _, err := c.GetDockerCreds(ctx, false); !errors.Is(err, ErrNotEncrypted) {
		t.Errorf("get_docker_creds: %v", err)
	}
	c.Close()
	if b, err := io.ReadAll(conn); len(b) > 0 {
		t.Errorf("something was sent: %x, %v", b, err)
	}
}

func TestForgetsCheckpoints(t *testing.T) {
	c, _ := connect(t)
	for v, want := range map[version.Version]bool{
		{}: false, {Major: 23, Minor: 9, Patch: 6}: false, {Major: 24}: false, {Major: 24, Minor: 1}: true, {Major: 25, Minor: 14, Patch: 1}: true,
	} {
		c.SetVersion(v)
		if got := c.ForgetsCheckpoints(); got != want {
			t.Errorf("%v: %v", v, got)
		}
	}
}
