package filetransfer

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"podstarter/sandbox/sandboxtest"
)

// TestEncryptedFilesNeedAKey: over a connection without a key nothing is said of a job with files that are to be encrypted, not even its transfer key.
func TestEncryptedFilesNeedAKey(t *testing.T) {
	for name, tt := range map[string]struct{ job, wrong string }{
		"output":   {`EncryptOutputFiles = "secret*"`, "EncryptOutputFiles wants files encrypted"},
		"input":    {`EncryptInputFiles = "secret*"`, "EncryptInputFiles wants files encrypted"},
		"in clear": {`DontEncryptOutputFiles = "*"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := sandboxtest.New(t)
			sandboxtest.Put(t, s, map[string]string{"secret": "s"})
			synctest.Test(t, func(t *testing.T) {
				heard := make(chan int64, 1)
				tr := transferWith(t, s, speaker(t, false, func(there net.Conn) {
					n, _ := io.CopyN(io.Discard, there, 1)
					heard <- n
					_ = there.Close()
				}), "TransferOutput = \"secret\"\n"+tt.job)
				_, err := tr.Upload(t.Context(), Upload{})
				if n := <-heard; (n == 0) != (tt.wrong != "") {
					t.Errorf("the peer heard %d bytes", n)
				}
				var v *Error
				if !errors.As(err, &v) || !v.TryAgain || v.Code != CodeUpload {
					t.Fatalf("%+v, want one that may be tried again", err)
				}
				if tt.wrong != "" && (!strings.Contains(v.Text, tt.wrong) || !strings.Contains(v.Text, "SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION")) {
					t.Errorf("%q, want %q", v.Text, tt.wrong)
				}
				if _, err := tr.Download(t.Context()); tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
					t.Errorf("input: %v, want %q", err, tt.wrong)
				}
			})
		})
	}
}
