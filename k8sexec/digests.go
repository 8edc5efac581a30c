package k8sexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/privatedir"
)

// digests is a file in the private directory that keeps, for each tag, the digest that
// it pointed to when it last ran. Several starters share the file.
type digests struct {
	dir      *os.Root
	lifetime time.Duration
	now      func() time.Time
}

const (
	digestFile = "digests.json"
	digestLock = "digests.lock"
	// maxDigests bounds the file. Nodes keep fewer images than that, and a forgotten
	// digest costs one back-off at most.
	maxDigests = 512
	// maxDigestFile has room for maxDigests of the longest references, in bytes.
	maxDigestFile = maxDigests * (imageref.MaxText + 256)
)

// knownDigest is one line of the file.
type knownDigest struct {
	Digest digest.Digest `json:"digest"`
	// Learned is when a container was seen running it under the tag.
	Learned time.Time `json:"learned"`
}

// lookup gives the digest of a moving reference unless it is unknown or too old.
func (d *digests) lookup(img imageref.Image) (digest.Digest, bool) {
	known, err := d.read()
	if err != nil {
		return "", false // treat it as empty: the next write replaces it
	}
	k, ok := known[img.String()]
	if !ok || !d.fresh(k) {
		return "", false
	}
	return k.Digest, true
}

// fresh is also false for a time in the future: clocks are set back.
func (d *digests) fresh(k knownDigest) bool {
	age := d.now().Sub(k.Learned)
	return age >= 0 && age < d.lifetime
}

// learn notes what a tag pointed to.
func (d *digests) learn(img imageref.Image, dig digest.Digest) error {
	return d.update(func(known map[string]knownDigest) {
		known[img.String()] = knownDigest{Digest: dig, Learned: d.now()}
	})
}

// forget drops a digest that turned out to be useless.
func (d *digests) forget(img imageref.Image) error {
	return d.update(func(known map[string]knownDigest) { delete(known, img.String()) })
}

func (d *digests) update(change func(map[string]knownDigest)) error {
	unlock, err := d.lock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", digestLock, err)
	}
	defer unlock()
	known, err := d.read()
	if err != nil {
		known = make(map[string]knownDigest)
	}
	change(known)
	maps.DeleteFunc(known, func(_ string, k knownDigest) bool { return !d.fresh(k) })
	for len(known) > maxDigests {
		delete(known, oldest(known))
	}
	return privatedir.WriteJSON(d.dir, digestFile, known)
}

func oldest(known map[string]knownDigest) string {
	return slices.MinFunc(slices.Collect(maps.Keys(known)), func(a, b string) int {
		return known[a].Learned.Compare(known[b].Learned)
	})
}

func (d *digests) lock() (unlock func(), err error) {
	f, err := d.dir.OpenFile(digestLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Others hold the lock only for a small read and write, so do not give up.
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func (d *digests) read() (map[string]knownDigest, error) {
	data, err := privatedir.Read(d.dir, digestFile, maxDigestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return make(map[string]knownDigest), nil
	}
	if err != nil {
		return nil, err
	}
	return decodeDigests(data)
}

// decodeDigests reads the file's contents and leaves out what is not a digest.
func decodeDigests(data []byte) (map[string]knownDigest, error) {
	known := make(map[string]knownDigest)
	if err := json.Unmarshal(data, &known); err != nil {
		return nil, fmt.Errorf("decode %s: %w", digestFile, err)
	}
	if known == nil { // the file says null
		known = make(map[string]knownDigest)
	}
	maps.DeleteFunc(known, func(_ string, k knownDigest) bool { return k.Digest.Validate() != nil })
	return known, nil
}
