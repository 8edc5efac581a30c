package podhealth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"podstarter/classads"
	"podstarter/internal/atomicfile"
)

// publishedFile is what Monitor reads, in HTCondor's LOCK directory: the startd
// runs its cron jobs as the user condor (condor_utils/cron_job.cpp:
// StartJobProcess, PRIV_CONDOR_FINAL), who may not enter the state directory.
const publishedFile = "podstarter.status"

// Bounds of the published file and of what is told of images in an ad.
const (
	maxPublishedFile = maxHealthFile + 64*maxImageWords
	maxImageWords    = 1024
	MaxImages        = 64
	maxImagesBytes   = 16 << 10
)

// published is what the pool may know of the pod.
type published struct {
	Health Health   `json:"health"`
	Images []string `json:"images,omitempty"` // warm ones, the latest first
}

// write puts the state in place, unless it stands there already.
func (s published) write(lock string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(lock)
	if err != nil {
		return err
	}
	defer dir.Close()
	if old, err := readSmall(dir, publishedFile, maxPublishedFile); err == nil && string(old) == string(data) {
		return nil
	}
	return atomicfile.Replace(dir, publishedFile, data, atomicfile.Options{Mode: 0o644})
}

// readPublished reads what a starter or Keep has published. If there is no file,
// nothing is known of the pod yet, so it counts as healthy.
func readPublished(lock string, now time.Time) (published, error) {
	dir, err := os.OpenRoot(lock)
	if err != nil {
		return published{}, err
	}
	defer dir.Close()
	info, err := dir.Lstat(publishedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return published{}, nil
	}
	if err != nil {
		return published{}, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return published{}, fmt.Errorf("%s in %s is not a file of root or of user %d", publishedFile, lock, os.Geteuid())
	}
	data, err := readSmall(dir, publishedFile, maxPublishedFile)
	if err != nil {
		return published{}, err
	}
	return decodePublished(data, now)
}

// decodePublished believes what is within bounds.
func decodePublished(data []byte, now time.Time) (published, error) {
	var raw, s published
	if err := json.Unmarshal(data, &raw); err != nil {
		return s, fmt.Errorf("decode %s: %w", publishedFile, err)
	}
	s.Health = raw.Health.sane(now)
	total := 0
	for _, image := range raw.Images {
		if total += len(image) + 1; total > maxImagesBytes || len(s.Images) == MaxImages {
			break
		}
		if isImageWord(image) {
			s.Images = append(s.Images, image)
		}
	}
	return s, nil
}

// isImageWord tells a reference to an image from what would break a list of
// them, or an ad.
func isImageWord(s string) bool {
	return s != "" && len(s) <= maxImageWords && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/:@+", r)
	}) < 0
}

// ads is the state as a STARTD_CRON job prints it: lines of attributes, and
// after each ad a line that begins with a dash and names it
// (condor_utils/cron_job_io.cpp:CronJobOut::Output). The first ad is for all
// slots; an ad with a SlotId is only for the slots of that number
// (condor_startd.V6/startd_named_classad.cpp:ShouldMergeInto). A slot would keep
// an attribute that its ad no longer has, so every ad has all of its attributes.
// known are the slots that had an ad before; ads adds to it.
func (s published) ads(now time.Time, known map[string]bool) string {
	var b strings.Builder
	ad := classads.NewAd()
	until, reason := s.Health.offline(now)
	ad.SetBool("PodStarterHealthy", until.IsZero())
	ad.SetInt("PodStarterOfflineUntil", unixOrZero(until))
	ad.SetString("PodStarterOfflineReason", reason)
	ad.SetString("PodStarterImages", strings.Join(s.Images, ","))
	b.WriteString(ad.FormatOld())
	b.WriteString("- pod update:true\n")
	for _, slot := range s.Health.slots() {
		known[slot] = true
	}
	for _, slot := range slices.Sorted(maps.Keys(known)) {
		r, until := s.Health.Rests[slot], time.Time{}
		if now.Before(r.Until) {
			until = r.Until
		} else {
			r.Reason = ""
		}
		id, _ := strconv.ParseInt(slot, 10, 64)
		ad := classads.NewAd()
		ad.SetInt("SlotId", id)
		ad.SetInt("PodStarterRestUntil", unixOrZero(until))
		ad.SetString("PodStarterRestReason", r.Reason)
		b.WriteString(ad.FormatOld())
		b.WriteString("- rest" + slot + " update:true\n")
	}
	return b.String()
}

// unixOrZero rounds up, so that a slot rests until the second that its ad names.
func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Second - 1).Unix()
}

// next is when the ads change by themselves; zero for never.
func (s published) next(now time.Time) time.Time {
	var next time.Time
	consider := func(t time.Time) {
		if t.IsZero() {
			return
		}
		// The second that the attribute names.
		if t = time.Unix(unixOrZero(t), 0); t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if s.Health.Sick != nil {
		consider(s.Health.Sick.Until)
	}
	for _, r := range s.Health.Rests {
		consider(r.Until)
	}
	return next
}
