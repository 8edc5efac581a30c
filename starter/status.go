package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/k8sexec"
	"podstarter/starter/settings"
)

// statusFile is what the monitor reads, in HTCondor's LOCK directory: the startd
// runs its cron jobs as the user condor (condor_utils/cron_job.cpp:
// StartJobProcess, PRIV_CONDOR_FINAL), who may not enter the private directory.
const statusFile = "podstarter.status"

// Bounds of the status file and of what is told of images in an ad.
const (
	maxStatusFile  = maxHealthFile + 64*maxImageWords
	maxImageWords  = 1024
	maxAdvertised  = 64
	maxImagesBytes = 16 << 10
)

// status is what the pool may know of the pod.
type status struct {
	Health health   `json:"health"`
	Images []string `json:"images,omitempty"` // warm ones, the latest first
}

// caretaker is who notes and publishes the pod's state: a starter after each
// binding, the keeper when something changes in between.
type caretaker struct {
	store   healthStore
	lock    string // directory of the status file
	private string // directory of what is known of images; empty where there are none
	images  int    // how many are told of
}

func newCaretaker(set settings.Settings, cfg *config.Config) caretaker {
	c := caretaker{
		store:  healthStore{dir: set.StateDir(), longest: set.MaxRest},
		lock:   cfg.String("LOCK", os.TempDir()),
		images: set.AdvertisedImages,
	}
	if set.Backend == settings.BackendPod {
		c.private = set.PrivateDir
	}
	return c
}

// note changes the health and lets the monitor know at once.
func (c caretaker) note(change func(h health, now time.Time, longest time.Duration) health) error {
	err := c.store.update(func(h health) health { return change(h, time.Now(), c.store.longest) })
	return errors.Join(err, c.publish())
}

// publish writes what the monitor reads, unless it stands there already.
func (c caretaker) publish() error {
	var s status
	var err, errImages error
	s.Health, err = c.store.read()
	if c.private != "" && c.images > 0 {
		s.Images, errImages = k8sexec.WarmImages(c.private, c.images)
	}
	if err = errors.Join(err, errImages, s.write(c.lock)); err != nil {
		return fmt.Errorf("publish the pod's state: %w", err)
	}
	return nil
}

func (s status) write(lock string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(lock)
	if err != nil {
		return err
	}
	defer dir.Close()
	if old, err := readSmall(dir, statusFile, maxStatusFile); err == nil && string(old) == string(data) {
		return nil
	}
	return replaceFile(dir, statusFile, data, 0o644)
}

// readStatus reads what a starter or the keeper has published. No file is a pod
// of which nothing is known yet, so in good health.
func readStatus(lock string, now time.Time) (status, error) {
	dir, err := os.OpenRoot(lock)
	if err != nil {
		return status{}, err
	}
	defer dir.Close()
	info, err := dir.Lstat(statusFile)
	if errors.Is(err, fs.ErrNotExist) {
		return status{}, nil
	}
	if err != nil {
		return status{}, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return status{}, fmt.Errorf("%s in %s is not a file of root or of user %d", statusFile, lock, os.Geteuid())
	}
	data, err := readSmall(dir, statusFile, maxStatusFile)
	if err != nil {
		return status{}, err
	}
	return decodeStatus(data, now)
}

// decodeStatus believes what is within bounds.
func decodeStatus(data []byte, now time.Time) (status, error) {
	var raw, s status
	if err := json.Unmarshal(data, &raw); err != nil {
		return s, fmt.Errorf("decode %s: %w", statusFile, err)
	}
	s.Health = raw.Health.sane(now)
	total := 0
	for _, image := range raw.Images {
		if total += len(image) + 1; total > maxImagesBytes || len(s.Images) == maxAdvertised {
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

// ads is the status as a STARTD_CRON job prints it: lines of attributes, and
// after each ad a line that begins with a dash and names it
// (condor_utils/cron_job_io.cpp:CronJobOut::Output). The first ad is for all
// slots; an ad with a SlotId is for the slots of that number alone
// (condor_startd.V6/startd_named_classad.cpp:ShouldMergeInto). An attribute that
// an ad no longer has would stay in the slot, hence every ad has all of its own.
func (s status) ads(now time.Time, known map[string]bool) string {
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
	for _, slot := range sortedKeys(known) {
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

// unixOrZero rounds up: a slot that is said to rest until a second does rest
// until then.
func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Second - 1).Unix()
}

// next is when the ads change by themselves; zero for never.
func (s status) next(now time.Time) time.Time {
	var next time.Time
	consider := func(t time.Time) {
		if t.IsZero() {
			return
		}
		// When the attribute says so.
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
