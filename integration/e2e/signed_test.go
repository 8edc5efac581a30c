//go:build pool

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestSignedURLs: the shadow signs URLs of S3 with the user's keys, which stay at the
// access point, for files in both directions. Only on our side: a stock starter of
// 25.14 asks for signatures of output in a way that its shadow refuses.
func TestSignedURLs(t *testing.T) {
	oursOnly(t)
	w := trusted(t)
	bucket := "s3://" + strings.TrimPrefix(w.Secure, "https://")
	in := put(t, w, "input", "signed\n")
	below := fmt.Sprintf("signed-%d/", os.Getpid())
	s := script("#!/bin/sh\nls; tr a-z A-Z <input >result\n",
		"transfer_input_files = "+bucket+in,
		"aws_access_key_id_file = key", "aws_secret_access_key_file = secret",
		"transfer_output_files = result", "output_destination = "+bucket+"/put/"+below)
	s.Files = append(s.Files, harness.File{Name: "key", Content: []byte("AKIDEXAMPLE\n")},
		harness.File{Name: "secret", Content: []byte("wJalrXUtnFEMI\n")})
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	if out := output(t, job, "out"); strings.Contains(out, "key") || strings.Contains(out, "secret") || !strings.Contains(out, "input") {
		t.Errorf("the job's sandbox had %q", out)
	}
	stored, err := os.ReadFile(filepath.Join(w.UploadedTo(below), "result"))
	if err != nil || string(stored) != "SIGNED\n" {
		t.Errorf("the server was given %q, %v", stored, err)
	}
	for path, method := range map[string]string{in: "GET", "/put/" + below + "result": "PUT"} {
		asked, err := w.Requests(path)
		if err != nil {
			t.Fatal(err)
		}
		signed := false
		for _, r := range asked {
			signed = signed || r.Method == method && strings.Contains(r.Query, "X-Amz-Credential=AKIDEXAMPLE") && strings.Contains(r.Query, "X-Amz-Signature=")
		}
		if !signed {
			t.Errorf("no signed %s of %s among %+v", method, path, asked)
		}
	}
}
