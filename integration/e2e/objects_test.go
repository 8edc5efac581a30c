//go:build pool

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestObjectStore: files at s3:// URLs of a real object store, which checks signatures, in both directions and under both starters. The shadow
// signs with the user's keys: input by itself, and output when the starter asks. A key that the store does not know holds the job under both.
// Output that is signed holds the job under the stock starter of 25.14, though it is stored: its shadow takes the question for a file without a
// name. At a site that wants no output signed, the job runs again and again under both: slots offer s3 whatever SIGN_S3_URLS is.
func TestObjectStore(t *testing.T) {
	oursOnly(t)
	if !pool.Has(harness.Stock) {
		t.Skip("the pool has no stock starter; start it with: pool up --stock")
	}
	if pool.Network != harness.HostNetwork {
		t.Skip("the object store is on the machine's loopback")
	}
	w := trusted(t)
	if err := pool.StartObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	below := fmt.Sprintf("e2e-%d", os.Getpid())
	if err := pool.PutObject(below+"/in", []byte("signed\n")); err != nil {
		t.Fatal(err)
	}
	const again = "runs again"
	type want struct {
		ends, says string // how the ending begins, and what is in the reason
		stored     bool   // whether the store has the output
	}
	destination := "transfer_output_files = result\noutput_destination = BELOW/destination"
	remap := `transfer_output_files = result` + "\n" + `transfer_output_remaps = "result=BELOW/destination/result"`
	for i, c := range []struct {
		name, commands, secret, knobs string
		stock, ours                   want
	}{
		{name: "input", stock: want{ends: "exit code 0"}, ours: want{ends: "exit code 0"}},
		{name: "input, wrong key", secret: "open-another", stock: want{ends: "held 13/256", says: "403"}, ours: want{ends: "held 13/256", says: "403"}},
		{name: "output", commands: destination, stock: want{ends: "held 12/1", says: "illegal sandbox path", stored: true}, ours: want{ends: "exit code 0", stored: true}},
		{name: "output, remapped", commands: remap, stock: want{ends: "held 12/1", says: "illegal sandbox path", stored: true}, ours: want{ends: "exit code 0", stored: true}},
		{name: "output, wrong key", secret: "open-another", commands: "transfer_input_files =\n" + destination, stock: want{ends: "held 12/256", says: "403"}, ours: want{ends: "held 12/256", says: "403"}},
		{name: "output, not signed", commands: destination, knobs: "SIGN_S3_URLS = False", stock: want{ends: again}, ours: want{ends: again}},
	} {
		for side, want := range map[harness.Side]want{harness.Stock: c.stock, harness.Ours: c.ours} {
			t.Run(c.name+", "+string(side), func(t *testing.T) {
				if c.knobs != "" {
					knobs(t, side, c.knobs)
				}
				own := fmt.Sprintf("%s/%s-%d", below, side, i)
				s := script("#!/bin/sh\nls\nif [ -e in ]; then tr a-z A-Z <in; else echo none; fi >result\n", "environment = CURL_MAX_RETRY_ATTEMPTS=1", "job_lease_duration = 20",
					"transfer_input_files = "+w.Bucket+"/"+below+"/in", "aws_access_key_id_file = key", "aws_secret_access_key_file = secret",
					strings.ReplaceAll(c.commands, "BELOW", w.Bucket+"/"+own))
				s.Side, s.Name = side, fmt.Sprintf("objects-%s-%d", side, i)
				s.Files = append(s.Files, harness.File{Name: "key", Content: []byte(harness.ObjectsAccessKey + "\n")},
					harness.File{Name: "secret", Content: []byte(cmp.Or(c.secret, harness.ObjectsSecretKey) + "\n")})
				job := submit(t, s)[0]
				if want.ends == again {
					running(t, job, 2)
				} else if end := ending(t, job); !strings.HasPrefix(end.String(), want.ends) || !strings.Contains(end.Reason, want.says) {
					t.Errorf("it ended with %s; want %s, and %q in the reason", end, want.ends, want.says)
				}
				text, found, err := pool.Object(own + "/destination/result")
				if err != nil {
					t.Fatal(err)
				}
				if found != want.stored || found && text != "SIGNED\n" {
					t.Errorf("the store has the output: %v, %q; want %v", found, text, want.stored)
				}
				if want.ends == "exit code 0" {
					if out := output(t, job, "out"); !strings.Contains(out, "in\n") || strings.Contains(out, "secret") {
						t.Errorf("the job's sandbox had %q", out)
					}
				}
			})
		}
	}
}

// knobs gives an execution point these lines of configuration while the test runs. Starters read it anew for each job.
func knobs(t *testing.T, side harness.Side, lines string) {
	t.Helper()
	const file = `f=$(condor_config_val LOCAL_CONFIG_DIR | sed 's/.*[, ]//')/99-knobs.conf; `
	if out, err := pool.PilotInput(t.Context(), side, strings.NewReader(lines+"\n"), "sh", "-c", file+`cat >"$f"`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := pool.PilotInput(context.Background(), side, strings.NewReader(""), "sh", "-c", file+`rm -f "$f"`); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
