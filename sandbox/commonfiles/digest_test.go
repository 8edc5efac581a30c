package commonfiles_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/sandbox"
	"podstarter/sandbox/commonfiles"
	"podstarter/sandbox/sandboxtest"
)

// ownBox makes a sandbox of this process's own user, as all are without root.
func ownBox(t *testing.T, execute string, pid int, keeps bool) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.Create(t.Context(), sandbox.Options{Execute: execute, PID: pid, Keeps: keeps, Condor: sandbox.Self(), Payload: sandbox.Self()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestPoisoned: where jobs have the starter's user, nobody gets what another job has changed among
// the common files, however it hid that, and nothing of it is left.
func TestPoisoned(t *testing.T) {
	if os.Geteuid() == 0 && !sandboxtest.AsPayload(t) {
		return
	}
	// open lets this user change what was sealed.
	open := func(paths ...string) (err error) {
		for _, p := range paths {
			err = errors.Join(err, os.Chmod(p, 0o700))
		}
		return err
	}
	for name, tt := range map[string]struct {
		attack func(dir string) error
		fails  bool
	}{
		"nothing": {func(string) error { return nil }, false},
		"modes and times only": {func(dir string) error {
			return errors.Join(open(dir, dir+"/a"), os.Chtimes(dir+"/a", time.Unix(1, 0), time.Unix(1, 0)))
		}, false},
		"another place": {func(dir string) error {
			return errors.Join(open(dir, dir+"/sub"), os.Rename(dir+"/sub/b", dir+"/b"), os.Rename(dir+"/b", dir+"/sub/b"))
		}, false},
		"contents, with the old size and times": {func(dir string) error {
			st, err := os.Stat(dir + "/a")
			if err != nil {
				return err
			}
			return errors.Join(open(dir+"/a"), os.WriteFile(dir+"/a", []byte("worse"), 0), os.Chtimes(dir+"/a", st.ModTime(), st.ModTime()), os.Chmod(dir+"/a", 0o444))
		}, true},
		"another file": {func(dir string) error {
			return errors.Join(open(dir), os.Remove(dir+"/a"), os.WriteFile(dir+"/a", []byte("worse"), 0o444))
		}, true},
		"two files change places": {func(dir string) error {
			return errors.Join(open(dir, dir+"/sub"), os.Rename(dir+"/a", dir+"/x"), os.Rename(dir+"/sub/b", dir+"/a"), os.Rename(dir+"/x", dir+"/sub/b"))
		}, true},
		"another name": {func(dir string) error { return errors.Join(open(dir), os.Rename(dir+"/a", dir+"/c")) }, true},
		"one more":     {func(dir string) error { return errors.Join(open(dir), os.WriteFile(dir+"/.bashrc", nil, 0o444)) }, true},
		"one more for one less": {func(dir string) error {
			return errors.Join(open(dir, dir+"/empty"), os.Remove(dir+"/empty"), os.WriteFile(dir+"/empty", nil, 0o444))
		}, true},
		"one less":      {func(dir string) error { return errors.Join(open(dir), os.Remove(dir+"/a")) }, true},
		"much too long": {func(dir string) error { return errors.Join(open(dir+"/a"), os.Truncate(dir+"/a", 1<<40)) }, true},
		"a link": {func(dir string) error {
			return errors.Join(open(dir), os.Remove(dir+"/a"), os.Symlink("/etc/passwd", dir+"/a"))
		}, true},
		"a catalog of its own by that name": {func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-"), os.MkdirAll(dir+"/sub", 0o700), os.WriteFile(dir+"/a", []byte("worse"), 0o444), os.WriteFile(dir+"/sub/b", []byte("other"), 0o444))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			execute := sandboxtest.ExecuteDir(t)
			data, job := ownBox(t, execute, 1, true), ownBox(t, execute, 2, false)
			d := stage(t, data, map[string]string{"a": "first", "sub/b": "other"})
			if err := os.Mkdir(d.Scratch()+"/empty", 0o700); err != nil {
				t.Fatal(err)
			}
			place, err := d.Keep(t.Context(), key, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.attack(filepath.Join(data.Dir(), "catalogs", string(place))); err != nil {
				t.Fatal(err)
			}
			found, err := commonfiles.Find(execute, key, place)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %d, %v", len(found), err)
			}
			defer found[0].Close()
			// Hard links, which another job of this user could change later, are allowed in vain.
			shared, err := job.Share(t.Context(), found[0], "", commonfiles.Policy{Link: true, Copy: true}, quiet)
			if shared.Files[commonfiles.Hardlink] > 0 {
				t.Error("the job has hard links")
			}
			names, e := filepath.Glob(job.Scratch() + "/*")
			switch {
			case e != nil:
				t.Error(e)
			case tt.fails && (err == nil || len(names) > 0):
				t.Errorf("the job got %q, %v", names, err)
			case !tt.fails && (err != nil || len(names) != 3):
				t.Errorf("the job got %q, %v", names, err)
			}
		})
	}
}

// TestNamesWithDigests: of the access point's word only a name that a starter without root gives to a
// catalog with this key is used.
func TestNamesWithDigests(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for text, good := range map[string]bool{
		string(key) + ".3.10." + sum:              true,
		string(key) + ".0.0." + sum:               true,
		"":                                        false,
		string(key):                               false,
		string(key) + ".3.10":                     false,
		string(key) + ".03.10." + sum:             false,
		string(key) + ".-3.10." + sum:             false,
		string(key) + ".3.+10." + sum:             false,
		string(key) + ".3.10." + sum[2:]:          false,
		string(key) + ".3.10." + sum + ".1":       false,
		string(key) + ".3.10.../../x":             false,
		"/execute/dir_1/catalogs/" + string(key):  false,
		strings.Repeat("f", 64) + ".3.10." + sum:  false,
		string(key) + ".3.10." + sum + "/../../x": false,
	} {
		if name, err := commonfiles.ParseName(text, key); (err == nil) != good || good && string(name) != text {
			t.Errorf("%q: %q, %v", text, name, err)
		}
	}
}

// FuzzParseName: what is taken for a name is a file name that begins with the key.
func FuzzParseName(f *testing.F) {
	f.Add(string(key) + ".3.10." + strings.Repeat("0a", 32))
	f.Add(string(key) + ".3.10/")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := commonfiles.ParseName(text, key)
		if err == nil && (filepath.Base(string(name)) != text || !strings.HasPrefix(text, string(key)+".")) {
			t.Errorf("%q", name)
		}
	})
}

// BenchmarkKeepAndShare is what digests cost: a catalog of 256 MiB is kept, and copied to one job.
func BenchmarkKeepAndShare(b *testing.B) {
	for name, digest := range map[string]bool{"plain": false, "digest": true} {
		b.Run(name, func(b *testing.B) {
			execute := sandboxtest.ExecuteDir(b)
			data, err := sandbox.Create(b.Context(), sandbox.Options{Execute: execute, PID: 1, Keeps: true, Condor: sandbox.Self(), Payload: sandbox.Self()})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = data.Remove(b.Context()) }()
			const size = 256 << 20
			b.SetBytes(size)
			for b.Loop() {
				b.StopTimer()
				d, err := data.Stage(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(d.Scratch()+"/big", make([]byte, size), 0o600); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				place, err := d.Keep(b.Context(), key, digest)
				if err != nil {
					b.Fatal(err)
				}
				if !digest {
					place = ""
				}
				found, err := commonfiles.Find(execute, key, place)
				if err != nil {
					b.Fatal(err)
				}
				job, err := sandbox.Create(b.Context(), sandbox.Options{Execute: execute, PID: 2, Condor: sandbox.Self(), Payload: sandbox.Self()})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := job.Share(b.Context(), found[0], "", commonfiles.Policy{Copy: true}, quiet); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				found[0].Close()
				_ = job.Remove(b.Context())
				b.StartTimer()
			}
		})
	}
}
