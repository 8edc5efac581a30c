package filetransfer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/sandbox/sandboxtest"
)

func TestSigning(t *testing.T) {
	const job = "OutputDestination = \"s3://bucket/x\"\nTransferOutput = \"a,b\"\n"
	start := func(t *testing.T, answer string) (*fakeShadow, *fakePlugin, error) {
		f, s := newShadow(t), sandboxtest.New(t)
		sandboxtest.Put(t, s, map[string]string{"a": "A", "b": "B", "_condor_stdout": "o"})
		tr, p := storing(t, f, s, job)
		f.sign = ad(t, answer)
		_, err := tr.Upload(context.Background(), Upload{})
		f.mustPlay()
		return f, p, err
	}
	t.Run("signed", func(t *testing.T) {
		f, p, err := start(t, `[SignList = {"https://s/a?sig=1", "https://s/b?sig=2"}]`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"https://s/a?sig=1", "https://s/b?sig=2"}, urls(p.stored[0])); diff != "" {
			t.Error(diff)
		}
		if got := f.got[0].Ad; !strings.Contains(got, `SignList = { "s3://bucket/x/a","s3://bucket/x/b" }`) {
			t.Error(got)
		}
	})
	t.Run("some", func(t *testing.T) {
		_, p, err := start(t, `[SignList = {"https://s/a?sig=1"}]`)
		var e *Error
		if !errors.As(err, &e) || e.Subcode != SubcodeNoPlugin || len(p.stored) != 1 {
			t.Error(err, p.stored)
		}
	})
	t.Run("refused", func(t *testing.T) {
		f, p, err := start(t, `[HoldReason = "no key\nat all"; HoldReasonCode = 12; HoldReasonSubCode = 4]`)
		var e *Error
		if !errors.As(err, &e) || e.Code != 12 || e.Subcode != 4 || !strings.Contains(e.Text, `no key\nat all`) || len(p.stored) != 0 || len(f.got) != 1 {
			t.Error(err, p.stored, told(f))
		}
	})
}
