package k8sexec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/privatedir"
)

func testDigests(t *testing.T, now *time.Time) *digests {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &digests{dir: root, lifetime: 10 * time.Minute, now: func() time.Time { return *now }}
}

func TestDigests(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := testDigests(t, &now)
	img := imageref.Image{Repository: "registry.example.com/a", Tag: "1"}
	expect := func(when string, want digest.Digest) {
		t.Helper()
		if got, _ := d.lookup(img); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	expect("before", "")
	if err := d.learn(img, testDigest); err != nil {
		t.Fatal(err)
	}
	expect("after", testDigest)
	now = now.Add(10*time.Minute - 1)
	expect("just in time", testDigest)
	now = now.Add(1)
	expect("too late", "")
	now = now.Add(-11 * time.Minute)
	expect("clock set back", "")
	now = now.Add(time.Minute)
	if err := d.forget(img); err != nil {
		t.Fatal(err)
	}
	expect("forgotten", "")
}

func TestDigestsAreBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := testDigests(t, &now)
	full := make(map[string]knownDigest)
	for i := range maxDigests {
		full[fmt.Sprintf("registry.example.com/a:%d", i)] = knownDigest{Digest: testDigest, Learned: now.Add(time.Duration(i) * time.Millisecond)}
	}
	if err := privatedir.WriteJSON(d.dir, digestFile, full); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if err := d.learn(imageref.Image{Repository: "registry.example.com/b", Tag: "1"}, testDigest); err != nil {
		t.Fatal(err)
	}
	known, err := d.read()
	if err != nil || len(known) != maxDigests {
		t.Errorf("%d digests, %v", len(known), err)
	}
	if _, there := known["registry.example.com/a:0"]; there {
		t.Error("the oldest was kept")
	}
	data, err := privatedir.Read(d.dir, digestFile, maxDigestFile)
	if err != nil {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

func TestDigestsMendDamage(t *testing.T) {
	now := time.Now()
	d := testDigests(t, &now)
	img := imageref.Image{Repository: "registry.example.com/a", Tag: "1"}
	for _, damage := range []string{"", "{", "null", `{"registry.example.com/a:1":{"digest":"no digest","learned":"2026-01-01T00:00:00Z"}}`, strings.Repeat(" ", maxDigestFile+1)} {
		if err := os.WriteFile(filepath.Join(d.dir.Name(), digestFile), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := d.lookup(img); ok {
			t.Errorf("%.20q: digest %q", damage, got)
		}
		if err := d.learn(img, testDigest); err != nil {
			t.Errorf("%.20q: %v", damage, err)
		}
		if got, _ := d.lookup(img); got != testDigest {
			t.Errorf("%.20q not mended: %q", damage, got)
		}
	}
}

func TestDigestsOfSeveralStarters(t *testing.T) {
	now := time.Now()
	d := testDigests(t, &now)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 5 {
				if err := d.learn(imageref.Image{Repository: fmt.Sprintf("registry.example.com/%d", i), Tag: fmt.Sprint(j)}, testDigest); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if known, err := d.read(); err != nil || len(known) != 40 {
		t.Errorf("%d of 40 digests, %v", len(known), err)
	}
}

func FuzzDecodeDigests(f *testing.F) {
	f.Add([]byte(`{"registry.example.com/a:1":{"digest":"` + testDigest + `","learned":"2026-01-01T00:00:00Z"}}`))
	f.Add([]byte(`{"a":{"digest":"sha256:1"},"b":null,"c":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		known, err := decodeDigests(data)
		if err != nil {
			return
		}
		for name, k := range known {
			if err := k.Digest.Validate(); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if _, err := json.Marshal(known); err != nil {
			t.Error(err)
		}
	})
}

func FuzzDecodeSlot(f *testing.F) {
	f.Add([]byte(`{"pod_uid":"u","default_image":"a","spec":"b","nonce":"c","bound":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := decodeSlot(data); err == nil {
			if _, err := json.Marshal(s); err != nil {
				t.Error(err)
			}
		}
	})
}
