package filetransfer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// FuzzAnswers lets a shadow grant, refuse and acknowledge output with any text: the
// transfer keeps the limit that it names, and every error could be sent to another
// job's shadow.
func FuzzAnswers(f *testing.F) {
	for _, said := range [][]any{
		{"[Result=2; MaxTransferBytes=-1]", 300, "[Result=0]"},
		{"[Result=0; Timeout=400]", "[Result=1; MaxTransferBytes=100]", 20, "[Result=2]", "[Result=0; TransferStats=[a=1]]"},
		{`[Result=-1; TryAgain=false; HoldReasonCode=32; HoldReasonSubCode=5; HoldReason="too much"]`},
		{"[Result=2]", 300, `[Result=-1; HoldReasonCode=12; HoldReasonSubCode=28; HoldReason="SHADOW\nfull"]`},
		{"[x=Result; Result=x]", -1}, {"[Result=2; MaxTransferBytes=0]", 1 << 62, "[Result=1]"},
	} {
		f.Add(messages(f, said...))
	}
	execute := sandboxtest.ExecuteDir(f)
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, PID: os.Getpid(), Nested: true, Condor: sandbox.Self(), Payload: sandbox.Self()})
	must(f, err)
	must(f, os.WriteFile(s.Scratch()+"/out", []byte(big1(4000)), 0o600))
	must(f, os.Mkdir(s.Scratch()+"/dir", 0o700))
	f.Cleanup(func() { must(f, s.Remove(context.Background())) })
	f.Fuzz(func(t *testing.T, said []byte) {
		job := classads.NewAd()
		job.SetString("TransferOutput", "dir,out")
		conn := &recordConn{deadConn: deadConn{bytes.NewReader(said)}}
		up := New(Config{Sandbox: s, Job: job, Dial: func(context.Context, int) (*cedar.Stream, error) {
			return cedar.NewStream(conn), nil
		}})
		result, err := up.Upload(t.Context(), Upload{})
		if result == nil {
			t.Fatal("no result")
		}
		if err == nil && result.Files != 2 {
			t.Errorf("%d files were sent without an error", result.Files)
		}
		if err == nil {
			return
		}
		var v *Error
		if !errors.As(err, &v) || v.Code == 0 || v.Text == "" || strings.ContainsAny(v.Text, "\n\x00") || len(v.Text) > 40<<10 {
			t.Errorf("error %.300v", err)
		}
		if v != nil && int(int32(v.Code)) != v.Code {
			t.Errorf("code %d", v.Code)
		}
	})
}
