package statedir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsRoundTrip(t *testing.T) {
	dir := Dir{Root: filepath.Join(t.TempDir(), "state")}
	empty, err := dir.Load()
	if err != nil || empty.Ports == nil {
		t.Fatalf("Load of nothing = %+v, %v; want settings to fill", empty, err)
	}
	want := Settings{Condor: "23.9", Stock: true, Slots: 2, Ports: map[string]int{"etcd": 20001}, Sysctls: map[string]string{"kernel/panic": "1"}}
	if err := dir.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings changed on the way (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(dir.settingsPath(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Load(); err == nil {
		t.Error("half a file is read without an error")
	}
	if err := dir.Forget(); err != nil {
		t.Fatal(err)
	}
	if forgotten, err := dir.Load(); err != nil || forgotten.Condor != "" {
		t.Errorf("after Forget: %+v, %v", forgotten, err)
	}
}

func TestFind(t *testing.T) {
	state := filepath.Join(t.TempDir(), "s")
	t.Setenv(Env, state)
	dir, err := Find()
	if len(state) > maxPath {
		if err == nil {
			t.Error("a path too long for sockets is accepted")
		}
	} else if err != nil || filepath.Base(dir.Root) != "s" {
		t.Errorf("Find = %+v, %v", dir, err)
	}
	t.Setenv(Env, "")
	if dir, err = Find(); err == nil && !strings.HasSuffix(dir.Root, "integration/.state") {
		t.Errorf("the state directory is %s", dir.Root)
	}
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "lock")
	unlock, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Lock(ctx, path, cancel)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the second lock: %v; want it to wait until the context ends", err)
	}
	unlock()
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := Lock(ctx, path, nil); err != nil {
		t.Errorf("the lock after it was given back: %v", err)
	}
}
