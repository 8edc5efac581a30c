package userlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/condor/config"
)

// TestPipeAsLog: a pipe in place of a log keeps nobody waiting, and gets nothing, whether somebody reads it or not.
func TestPipeAsLog(t *testing.T) {
	for name, read := range map[string]bool{"nobody reads": false, "somebody reads": true} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			if read {
				reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer reader.Close()
			}
			ad := classads.NewAd()
			ad.SetString("UserLog", pipe)
			opened := make(chan error, 1)
			go func() {
				_, err := Open(Options{Job: ad, Knobs: config.FromMap(nil), User: me, Site: me})
				opened <- err
			}()
			select {
			case err := <-opened:
				if err == nil || !strings.Contains(err.Error(), pipe) {
					t.Errorf("%v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits for a reader")
				reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // which ends the wait
				if err != nil {
					t.Fatal(err)
				}
				defer reader.Close()
				<-opened
			}
		})
	}
}
