package filetransfer

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	condorjob "podstarter/condor/job"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
	"podstarter/testdata/streams"
)

const recordings = "../../testdata/streams"

// recordedJob is the ad of the job of a case, as the shadow sent it.
func recordedJob(t testing.TB, version, name string) *classads.Ad {
	t.Helper()
	r := streams.Find(t, recordings, version, name, streams.Calls, 1)[0]
	s, err := cedar.Adopt(streams.Say(t, r.Sealed()))
	must(t, err)
	defer s.Close()
	_, err = s.GetInt()
	must(t, err)
	ad, err := s.GetAd()
	must(t, err)
	return ad
}

// replay is a transfer with the shadow of a recording, which fails the test if
// something is not sent as in the recording.
func replay(t testing.TB, s *sandbox.Sandbox, r streams.Recording) *Transfer {
	t.Helper()
	job := recordedJob(t, r.Version, r.Case)
	if r.Case == "vacated" {
		// What has changed is sent in the order of the directory, which is another one
		// in every file system; this is that of the recordings.
		job.SetString("TransferOutput", "_condor_stdout,kept")
	}
	condorjob.Localize(job, condorjob.Info{FileTransfer: true, Cmd: job.StringOr("Cmd", ""), Iwd: job.StringOr("Iwd", "")}, s.Scratch())
	key, err := job.GetString("TransferKey")
	must(t, err)
	dialled := false
	return New(Config{Sandbox: s, Job: job, Key: key, Dial: func(context.Context, int) (*cedar.Stream, error) {
		if dialled {
			return nil, errors.New("a second connection for one transfer")
		}
		dialled = true
		stream, err := cedar.Adopt(streams.Play(t, r))
		if err == nil {
			t.Cleanup(func() { stream.Close() })
		}
		return stream, err
	}})
}

// TestReplayDownload takes in what shadows have sent.
func TestReplayDownload(t *testing.T) {
	plain := map[string]string{"given/": "755", "given/nested": "644 a nested one\n", "in": "644 an input\n", "job.sh": "755 115 bytes"}
	for _, tt := range []struct {
		version, job string
		want         map[string]string
		refused      string // by the shadow
		code, errno  int
	}{
		{"23.9", "plain", plain, "", 0, 0},
		{"25.14", "plain", plain, "", 0, 0},
		{"25.14", "held", map[string]string{}, "", 0, 0},
		{"23.9", "vacated", map[string]string{}, "", 0, 0},
		{"25.14", "no-input", map[string]string{}, "reading from file", 13, 2},
	} {
		t.Run(tt.version+"/"+tt.job, func(t *testing.T) {
			s := sandboxtest.New(t)
			r := streams.Find(t, recordings, tt.version, tt.job, cedar.FileTransUpload, 1)[0]
			result, err := replay(t, s, r).Download(t.Context())
			var failed *Error
			if errors.As(err, &failed) {
				if failed.Code != tt.code || failed.Subcode != tt.errno || tt.refused == "" {
					t.Errorf("%+v", failed)
				}
			} else if tt.refused != "" || err != nil {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, contents(t, s.Scratch())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.job == "plain" && (result.Files != 4 || result.Bytes != 137) {
				t.Errorf("%d files, %d bytes", result.Files, result.Bytes)
			}
		})
	}
}

// TestReplayUpload sends again what was sent to shadows.
func TestReplayUpload(t *testing.T) {
	plain := map[string]string{
		"new": "new\n", "made/deep": "deep\n", "empty": "", "_condor_stdout": "an input\na nested one\n", "_condor_stderr": "to standard error\n", "in": "an input\n", "job.sh": "x",
	}
	for _, tt := range []struct {
		version, job string
		nth, count   int // of the connections for output
		kind         jobfiles.Kind
		files        map[string]string
		code, errno  int // of the shadow's refusal
	}{
		{"23.9", "plain", 0, 1, jobfiles.Output, plain, 0, 0},
		{"25.14", "plain", 0, 1, jobfiles.Output, plain, 0, 0},
		{"23.9", "vacated", 0, 1, jobfiles.Eviction, map[string]string{"_condor_stdout": "", "kept": "terminated\n"}, 0, 0},
		{"25.14", "vacated", 0, 1, jobfiles.Eviction, map[string]string{"_condor_stdout": "", "kept": "terminated\n"}, 0, 0},
		{"25.14", "checkpointed", 0, 2, jobfiles.Checkpoint, map[string]string{"_condor_stdout": "", "kept": "state"}, 0, 0},
		{"25.14", "refused-output", 0, 1, jobfiles.Output, map[string]string{"_condor_stdout": "", "new": "1"}, 12, 2},
		{"25.14", "visited", 0, 1, jobfiles.Output, map[string]string{"_condor_stdout": "first line\nlast line\n", "_condor_stderr": "", "data": "some data\n"}, 0, 0},
	} {
		t.Run(tt.version+"/"+tt.job, func(t *testing.T) {
			s := sandboxtest.New(t)
			r := streams.Find(t, recordings, tt.version, tt.job, cedar.FileTransDownload, tt.count)[tt.nth]
			transfer := replay(t, s, r)
			must(t, transfer.Recatalog(t.Context()))
			sandboxtest.Put(t, s, tt.files)
			result, err := transfer.Upload(t.Context(), Upload{Kind: tt.kind})
			var failed *Error
			switch {
			case errors.As(err, &failed):
				if failed.Code != tt.code || failed.Subcode != tt.errno {
					t.Errorf("%+v", failed)
				}
			case err != nil || tt.code != 0:
				t.Errorf("error %v", err)
			}
			t.Logf("%d files, %d bytes, spooled %q", result.Files, result.Bytes, result.Spooled)
		})
	}
}

// TestReplayCompares: the only difference that the player of recordings accepts is a
// file cut into smaller pieces.
func TestReplayCompares(t *testing.T) {
	const recorded = 262144
	numbers := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = binary.BigEndian.AppendUint64(b, v)
		}
		return b
	}
	head := numbers(1000, recorded)
	for _, tt := range []struct {
		name      string
		got, want []byte
		same      bool
	}{
		{"the same", head, head, true},
		{"smaller pieces", numbers(1000, 4096), head, true},
		{"pieces of one byte", numbers(1000, 1), head, true},
		{"no pieces", numbers(1000, 0), head, false},
		{"greater pieces", numbers(1000, recorded+1), head, false},
		{"a negative number", numbers(1000, 1<<63), head, false},
		{"another size", numbers(999, 4096), head, false},
		{"one number", numbers(1000), head, false},
		{"three numbers", numbers(1000, recorded, 1), head, false},
		{"other numbers", numbers(1, 300), numbers(1, 301), false},
		{"not the head of a file", numbers(recorded, 4096), numbers(recorded, 1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := streams.Same(tt.got, tt.want); got != tt.same {
				t.Errorf("%v", got)
			}
		})
	}
}
