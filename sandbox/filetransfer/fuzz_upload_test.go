package filetransfer

import (
	"context"
	"os"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
	"podstarter/testdata/streams"
)

// toStarters are what shadows said on connections that starters began so. A proxy
// is left out: a new key for each takes too long.
func toStarters(f *testing.F, command int) [][]byte {
	return streams.Seeds(f, recordings, func(r streams.Recording) bool {
		return r.Command() == command && r.Case != "proxy"
	})
}

// FuzzUpload lets a shadow answer whatever it likes to output.
func FuzzUpload(f *testing.F) {
	for _, data := range toStarters(f, cedar.FileTransDownload) {
		f.Add(data)
	}
	s := fuzzed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		job := classads.NewAd()
		job.SetString("TransferOutput", "out,none")
		result, err := New(Config{Sandbox: s, Job: job, Dial: dialled(t, data)}).Upload(t.Context(), Upload{Kind: jobfiles.Output})
		if result == nil || err == nil {
			t.Errorf("%v, %v: a file that is not there was sent", result, err)
		}
	})
}

// FuzzSealed is FuzzDownload with encrypted packets, which have other strings.
func FuzzSealed(f *testing.F) {
	for _, data := range toStarters(f, cedar.FileTransUpload) {
		f.Add(data)
	}
	s := fuzzed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		job := classads.NewAd()
		job.SetString("Cmd", "run.sh")
		job.SetString("TransferOutput", "out")
		result, err := New(Config{Sandbox: s, Job: job, Dial: dialled(t, data)}).Download(t.Context())
		if result == nil {
			t.Fatal("no result")
		}
		if err == nil && result.Bytes > int64(len(data)) {
			t.Errorf("%d bytes received of %d sent", result.Bytes, len(data))
		}
	})
}

// fuzzed is a sandbox with a file in it, in a directory that holds nothing else
// afterwards.
func fuzzed(f *testing.F) *sandbox.Sandbox {
	execute := sandboxtest.ExecuteDir(f)
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, PID: os.Getpid(), Nested: true, Condor: sandbox.Self(), Payload: sandbox.Self()})
	must(f, err)
	must(f, os.WriteFile(s.Scratch()+"/out", []byte("text\n"), 0o600))
	f.Cleanup(func() {
		must(f, s.Remove(context.Background()))
		if names, err := os.ReadDir(execute); err != nil || len(names) != 0 {
			f.Errorf("outside of the sandbox: %v, %v", names, err)
		}
	})
	return s
}

func dialled(t *testing.T, data []byte) Dial {
	return func(context.Context, int) (*cedar.Stream, error) {
		return cedar.Adopt(streams.Say(t, streams.Unwire(data, true)))
	}
}
