package shadow

import (
	"context"
	"errors"
	"io"
	"testing"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
	"podstarter/testdata/streams"
)

// asked are calls with all kinds of answers.
var asked = []func(context.Context, *Client) error{
	func(ctx context.Context, c *Client) error { _, err := c.GetJobInfo(ctx); return err },
	func(ctx context.Context, c *Client) error { _, err := c.GetUserInfo(ctx); return err },
	func(ctx context.Context, c *Client) error { return c.BeginExecution(ctx) },
	func(ctx context.Context, c *Client) error {
		info, err := c.GetSecSessionInfo(ctx)
		if err == nil {
			_, _ = info.FileTransfer.Import(cedar.Daemon)
			_, _ = info.Reconnect.Import(cedar.Daemon)
		}
		return err
	},
	func(ctx context.Context, c *Client) error {
		g, err := c.RequestGuidance(ctx, classads.NewAd())
		if err == nil && g.Command() == "" && g.Ad == nil {
			return errors.New("no guidance")
		}
		return err
	},
	func(ctx context.Context, c *Client) error { _, err := c.EventNotification(ctx, Event("X")); return err },
	func(ctx context.Context, c *Client) error { _, err := c.WhoAmI(ctx); return err },
	func(ctx context.Context, c *Client) error { _, err := c.GetJobAttr(ctx, "X"); return err },
	func(ctx context.Context, c *Client) error { _, err := c.GetDockerCreds(ctx, false); return err },
	func(ctx context.Context, c *Client) error { _, err := c.GetCreds(ctx, false); return err },
	fileCall(FileStat), fileCall(FileGetfile), fileCall(FileGetdir), fileCall(FileOpen),
	func(ctx context.Context, c *Client) error {
		f, err := c.OpenFile(ctx, "x", 0, 0)
		if err != nil {
			return err
		}
		p := make([]byte, 10)
		if n, err := f.ReadAt(ctx, p, 5); n < 0 || n > len(p) || err != nil {
			return err
		}
		n, err := f.WriteAt(ctx, p, 0)
		if n < 0 || n > len(p) {
			panic("more was written than there is")
		}
		return err
	},
}

func fileCall(call FileCall) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		_, err := c.File(ctx, FileRequest{Call: call, Into: io.Discard})
		return err
	}
}

// answers are the recorded answers of shadows.
func answers(f *testing.F) (all [][]streams.Packet) {
	for _, r := range streams.All(f, recordings) {
		if r.Command() != streams.Calls {
			continue
		}
		for _, p := range r.Sealed() {
			if p.In {
				all = append(all, []streams.Packet{p})
			}
		}
	}
	return all
}

// FuzzAnswers has a shadow answer anything to every call. An error that is not a
// refusal, and leaves the answers out of step, ends the connection.
func FuzzAnswers(f *testing.F) {
	for i, packets := range answers(f) {
		f.Add(uint8(i), streams.Wire(packets))
	}
	for i := range asked {
		f.Add(uint8(i), streams.Wire([]streams.Packet{{Last: true, Data: fields(-1, 2)}}))
		f.Add(uint8(i), streams.Wire([]streams.Packet{{Last: true, Data: fields(3, "abc")}}))
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		s, err := cedar.Adopt(streams.Say(t, streams.Unwire(data, true)))
		if err != nil {
			t.Fatal(err)
		}
		c := New(s, quiet)
		defer c.Close()
		c.SetVersion(version.Version{Major: 25, Minor: 14, Patch: 1})
		err = asked[int(kind)%len(asked)](t.Context(), c)
		var refusal *CallError
		if errors.As(err, &refusal) && refusal.Result >= 0 {
			t.Errorf("a refusal with %d", refusal.Result)
		}
	})
}

// FuzzTakeCredential reads any answer of a shadow to a fetch of the Kerberos
// credential.
func FuzzTakeCredential(f *testing.F) {
	f.Add(streams.Wire([]streams.Packet{{Last: true, Data: fields(6, "secret")}}))
	f.Add(streams.Wire([]streams.Packet{{Last: true, Data: fields(1 << 40)}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := takeCredential(cedartest.Adopted(t, streams.Say(t, streams.Unwire(data, true))))
		if err == nil && (len(got) == 0 || len(got) > len(data)) {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
	})
}
