package k8sexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/privatedir"
)

// The images that have run in this pod lately, for those who choose a pod by the images
// on its node. It is a hint: a pod does not learn that its node removed an image.
const (
	warmFile = "images.json"
	// maxWarm bounds the file.
	maxWarm     = 64
	maxWarmFile = maxWarm * 3 * (imageref.MaxText + 64)
	// warmFor is how long after its last use an image counts as warm. The kubelet
	// removes those unused for the longest time when the disk fills
	// (images/image_gc_manager.go); it promises no time for which it keeps one.
	warmFor = 7 * 24 * time.Hour
	// warmAgain is the least time between two notes of the same image.
	warmAgain = time.Minute
)

// warmImage is one line of the file.
type warmImage struct {
	// Asked is the image as a job wrote it, Name the same spelled out.
	Asked string `json:"asked,omitempty"`
	Name  string `json:"name"`
	// Digest is what the name pointed to then; empty if that is not known.
	Digest digest.Digest `json:"digest,omitempty"`
	Used   time.Time     `json:"used"`
}

// warmed notes that a container runs the image. It only logs failures: no job fails for
// that.
func (l *lease) warmed(asked string, img imageref.Image, d digest.Digest) {
	err := l.noteWarm(warmImage{Asked: askedWord(asked), Name: img.String(), Digest: d, Used: time.Now()})
	if err != nil {
		l.backend.log.Warn("cannot note that an image is on this node", "image", img, "error", err)
	}
}

// askedWord is what a job wrote, if that fits into a list of images: it is only known
// to have led to an image.
func askedWord(asked string) string {
	asked = strings.TrimSpace(asked)
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/:@+", r)
	}
	if len(asked) > imageref.MaxText || strings.IndexFunc(asked, odd) >= 0 {
		return ""
	}
	return asked
}

func (l *lease) noteWarm(w warmImage) error {
	unlock, err := l.digests().lock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", digestLock, err)
	}
	defer unlock()
	data, err := privatedir.Read(l.private, warmFile, maxWarmFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known := decodeWarm(data, time.Now())
	i := slices.IndexFunc(known, func(k warmImage) bool { return k.Name == w.Name && (w.Asked == "" || k.Asked == w.Asked) })
	if i >= 0 {
		old := known[i]
		if w.Digest == "" {
			w.Digest = old.Digest
		}
		if w.Asked == "" {
			w.Asked = old.Asked
		}
		if old.Digest == w.Digest && w.Used.Sub(old.Used) < warmAgain && i == 0 {
			return nil
		}
		known = slices.Delete(known, i, i+1)
	}
	known = slices.Insert(known, 0, w)
	return privatedir.WriteJSON(l.private, warmFile, known[:min(len(known), maxWarm)])
}

// readWarm is the list as it is, empty if it cannot be read.
func (l *lease) readWarm() []warmImage {
	data, err := privatedir.Read(l.private, warmFile, maxWarmFile)
	if err != nil {
		return nil
	}
	return decodeWarm(data, time.Now())
}

// decodeWarm reads the file's contents, the latest image first, and leaves out entries
// that are too old or do not name an image. An unreadable file counts as empty: the
// next job's image replaces it.
func decodeWarm(data []byte, now time.Time) []warmImage {
	var raw, known []warmImage
	if len(data) == 0 || json.Unmarshal(data, &raw) != nil {
		return nil
	}
	for _, w := range raw {
		img, err := imageref.Parse(w.Name)
		age := now.Sub(w.Used)
		if err != nil || img.String() != w.Name || age < 0 || age > warmFor {
			continue
		}
		if w.Digest.Validate() != nil {
			w.Digest = ""
		}
		w.Asked = askedWord(w.Asked)
		known = append(known, w)
	}
	slices.SortStableFunc(known, func(a, b warmImage) int { return b.Used.Compare(a.Used) })
	return known[:min(len(known), maxWarm)]
}

// WarmImages lists the images that have run lately in the pod with that private
// directory (POD_STARTER_PRIVATE_DIR), the latest first and at most so many. Each is given
// by all its names: as the job wrote it, spelled out with registry and tag, and
// with the digest where it is known.
func WarmImages(privateDir string, most int) ([]string, error) {
	private, err := privatedir.Open(privateDir)
	if err != nil {
		return nil, fmt.Errorf("read which images are warm: %w", err)
	}
	defer private.Close()
	data, err := privatedir.Read(private, warmFile, maxWarmFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which images are warm: %w", err)
	}
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i, w := range decodeWarm(data, time.Now()) {
		if i == most {
			break
		}
		add(w.Asked)
		add(w.Name)
		if img, err := imageref.Parse(w.Name); err == nil && w.Digest != "" {
			add(img.Repository + "@" + w.Digest.String())
		}
	}
	return names, nil
}
