package standin

import (
	"os"
	"path/filepath"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/userlog"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// TestLogInTheSandbox: a log in the sandbox is written from when that is there until it is removed, and makes none itself.
func TestLogInTheSandbox(t *testing.T) {
	for _, name := range []string{"log", "sub/../log", "absolute"} {
		execute := t.TempDir()
		set, err := settings.Read(config.FromMap(map[string]string{"EXECUTE": execute, "POD_STARTER_BACKEND": "local", "CONDOR_IDS": "65533.65533"}))
		if err != nil {
			t.Fatal(err)
		}
		scratch := (&payloadrun.Job{Settings: set}).ScratchPath()
		if name == "absolute" {
			name = filepath.Join(scratch, "log")
		}
		ad := classads.NewAd()
		ad.SetString("Iwd", scratch)
		ad.SetString("StarterUserLog", name)
		s := &Shadow{opt: Options{Settings: set, Log: quiet}, log: quiet, ad: ad}
		if err := s.open(os.Getuid(), os.Getgid()); err != nil {
			t.Errorf("%s: before there is a sandbox: %v", name, err)
		}
		s.write(userlog.Execute{})
		if left, err := os.ReadDir(execute); err != nil || len(left) > 0 {
			t.Fatalf("%s: made before there is a sandbox: %v, %v", name, left, err)
		}
		if err := os.MkdirAll(scratch, 0o700); err != nil {
			t.Fatal(err)
		}
		s.write(userlog.Execute{})
		if text, err := os.ReadFile(filepath.Join(scratch, "log")); err != nil || len(text) == 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err := os.RemoveAll(scratch); err != nil {
			t.Fatal(err)
		}
		s.write(userlog.Evicted{})
		if left, err := os.ReadDir(execute); err != nil || len(left) > 0 {
			t.Errorf("%s: made when the sandbox was removed: %v, %v", name, left, err)
		}
	}
}
