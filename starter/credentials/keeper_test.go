package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/condor/condortest"
	"podstarter/condor/config"
	"podstarter/condor/shadow"
	"podstarter/sandbox"
	"podstarter/starter/credentials"
	"podstarter/starter/settings"
)

var quiet = slog.New(slog.DiscardHandler)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newSandbox is a sandbox of the test's own user.
func newSandbox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Nested: true, Payload: sandbox.Self(), Condor: sandbox.Self()})
	must(t, err)
	t.Cleanup(func() { _ = box.Remove(context.Background()) })
	return box
}

// options are those of a job with these attributes, on a pod with these knobs, without
// a shadow.
func options(t *testing.T, job string, knobs map[string]string) credentials.Options {
	t.Helper()
	set, err := settings.Read(config.FromMap(knobs))
	must(t, err)
	ad, err := classads.ParseOld(job)
	must(t, err)
	return credentials.Options{
		Sandbox: newSandbox(t), Job: ad, Knobs: set.Condor.Credentials,
		ProxyExpiry: func() time.Time { return time.Unix(2_000_000_000, 0) }, Log: quiet,
	}
}

// connect is the starter's client to a shadow.
func connect(t *testing.T, sh *condortest.Shadow) *shadow.Client {
	t.Helper()
	c := shadow.New(sh.Connect(t), quiet)
	t.Cleanup(func() { c.Close() })
	return c
}

// newKeeper is a keeper that is stopped before the test ends.
func newKeeper(t *testing.T, o credentials.Options) *credentials.Keeper {
	t.Helper()
	k := credentials.New(o)
	t.Cleanup(k.Stop)
	return k
}

// filesIn lists a directory: "name mode contents".
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		info, errInfo := e.Info()
		must(t, errors.Join(err, errInfo))
		all = append(all, fmt.Sprintf("%s %o %s", e.Name(), info.Mode().Perm(), data))
	}
	return all
}

// telling is a sandbox that tells of each file that was written into it.
type telling struct {
	credentials.Sandbox
	written chan string
}

func (s telling) WriteFile(name string, data []byte, mode fs.FileMode) error {
	err := s.Sandbox.WriteFile(name, data, mode)
	s.written <- string(data)
	return err
}
