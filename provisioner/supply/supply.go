// Package supply reads from the collector what the slots of the provisioner's
// pods have left, and what their jobs have of them.
//
// A slot's ad says which pod it is in by K8SPodName, as those of the OSPool do. In
// one without, the startd has the pod's name (STARTD_NAME). HTCondor completes that
// by the host's name, so that a slot is called slot1@name@host, or slot1@host where
// the name is the host's (HTCondor src/condor_utils/get_daemon_name.cpp:
// build_valid_daemon_name). Names of pods have no dot here.
//
// Whoever may advertise to the collector can claim to be such a slot: an ad that
// lies makes a pod count as reported, full or free, and the run times of jobs, the
// size of pods and what a new one would advertise wrong, and nothing else.
package supply

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/provisioner/resources"
)

// Limits of what the collector may say.
const (
	MaxBytes = 256 << 20
	maxText  = 64 << 10
	maxBad   = 10
	maxJob   = 512 // of a GlobalJobId
	maxName  = 512 // of a slot
)

// attributes are those of a slot that count.
var attributes = []string{
	"Name", podName, "SlotType", "PartitionableSlot", "State", "Cpus", "Memory", "Disk", "GPUs", "Payloads", "Offline", "Requirements", restUntil, offlineUntil,
	"TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk", "TotalSlotGPUs", "TotalSlotPayloads", "GlobalJobId", "JobStart", "JobStarts", "JobBusyTimeCount", "JobBusyTimeAvg",
}

// The attributes by which podstarter says until when a slot, or its pod, takes no job
// (condor_config.d/99-podstarter-health.conf).
const (
	restUntil    = "PodStarterRestUntil"
	offlineUntil = "PodStarterOfflineUntil"
)

// podName is the attribute by which a slot says in which pod it is.
const podName = "K8SPodName"

// Arguments returns the arguments of condor_status for the slots of pods whose
// names begin with a prefix and a hyphen. Without another option it prints slots;
// with -startd it prints their daemons since HTCondor 24.
func Arguments(pool, prefix string) []string {
	constraint := fmt.Sprintf("regexp(%s, Name) || regexp(%s, %s ?: \"\")", classads.Quote("@"+prefix+"-"), classads.Quote("^"+prefix+"-"), podName)
	args := []string{"-long", "-attributes", strings.Join(attributes, ","), "-constraint", constraint}
	if pool != "" {
		args = append([]string{"-pool", pool}, args...)
	}
	return args
}

// Pod is what the collector knows of one pod.
type Pod struct {
	// Free is what no job has claimed, of all its slots.
	Free resources.Amount
	// Whole is the size of its largest slot, with what jobs have of it. A part that no
	// slot tells is larger than any slot.
	Whole resources.Amount
	// Claims are the parts that jobs have.
	Claims []Claim
	// Rests are the parts that no job has claimed, and that take none for a while.
	Rests []Rest
	// Draining: it takes no more jobs.
	Draining bool
	// Slot is the name of a slot that says what a new pod's would: none that was cut
	// from another.
	Slot string
	// Started is how many jobs have begun in it, by its startd's statistics.
	Started int
	// Ended is how many have ended, and Busy how long they had their slots together.
	// The startd tells it if its STATISTICS_TO_PUBLISH_LIST has JobBusyTime.
	Ended int
	Busy  time.Duration
}

// Claim is a part of a pod that is claimed.
type Claim struct {
	Amount resources.Amount
	// Job is the GlobalJobId of the job that runs there since Began; it is empty
	// between two jobs.
	Job   string
	Began time.Time
}

// Rest is a part of a pod that takes no job until a time, which may have passed.
type Rest struct {
	Amount resources.Amount
	Until  time.Time
}

// ErrTooMuch is returned if not all slots were read.
var ErrTooMuch = errors.New("there are more slots than are read")

// Read reads what condor_status prints and returns what it says of each pod by
// name. Slots that cannot be read are in the error.
func Read(r io.Reader) (map[string]*Pod, error) {
	limited := &io.LimitedReader{R: r, N: MaxBytes}
	ads := classads.NewReader(bufio.NewReader(limited), classads.FormatLong, classads.Parser{MaxText: maxText})
	pods := map[string]*Pod{}
	var bad *multierror.Error
	wrong := 0
	for ad, err := range ads.All() {
		if err == nil {
			err = add(pods, ad)
		}
		if err == nil {
			continue
		}
		if wrong++; wrong <= maxBad {
			bad = multierror.Append(bad, fmt.Errorf("reading a slot: %w", err))
		}
	}
	if limited.N <= 0 {
		bad = multierror.Append(bad, fmt.Errorf("reading the slots of the collector: %w (%d bytes)", ErrTooMuch, MaxBytes))
	}
	return pods, bad.ErrorOrNil()
}

// add counts one slot.
func add(pods map[string]*Pod, ad *classads.Ad) error {
	name := ad.StringOr("Name", "")
	if len(name) > maxName {
		return fmt.Errorf("its name has %d bytes, and at most %d are read: %q", len(name), maxName, name[:100])
	}
	host := ad.StringOr(podName, "")
	if host == "" {
		_, host, _ = strings.Cut(name, "@")
		if end := strings.IndexAny(host, "@."); end >= 0 {
			host = host[:end]
		}
	}
	if host == "" || len(host) > 253 {
		return fmt.Errorf("its name is %q; it must be slot@pod, or the slot must have %s", name, podName)
	}
	if ad.BoolOr("Offline", false) {
		return nil // an ad for the negotiator, without a pod
	}
	p := pods[host]
	if p == nil {
		p = &Pod{}
		pods[host] = p
	}
	p.statistics(ad)
	dynamic := strings.EqualFold(ad.StringOr("SlotType", ""), "Dynamic")
	if !dynamic {
		if p.Slot == "" {
			p.Slot = name
		}
		p.Whole = p.Whole.Most(whole(ad))
	}
	have := resources.Amount{CPUs: count(ad, "Cpus"), Memory: count(ad, "Memory"), Disk: count(ad, "Disk"), GPUs: count(ad, "GPUs"), Payloads: count(ad, "Payloads")}
	switch {
	case ad.Has("Payloads"):
	case ad.BoolOr("PartitionableSlot", false):
		have.Payloads = most // it does not count them
	default:
		have.Payloads = 1
	}
	closed, ends := refuses(ad)
	p.Draining = p.Draining || ends && !dynamic
	give := func() {
		switch until := max(until(ad, restUntil), until(ad, offlineUntil)); {
		case closed:
		case until > 0:
			p.Rests = append(p.Rests, Rest{have, time.Unix(until, 0).UTC()})
		default:
			p.Free = p.Free.Plus(have)
		}
	}
	switch state := ad.StringOr("State", ""); state {
	case "Drained":
		p.Draining = true
	case "Unclaimed", "Matched", "Backfill":
		give()
	case "Owner": // it takes no job until IS_OWNER is false (HTCondor src/condor_startd.V6/ResState.cpp:eval_policy)
	case "Claimed", "Preempting":
		// A partitionable slot that is claimed has what its dynamic slots left
		// (CLAIM_PARTITIONABLE_LEFTOVERS, or a claim for data only).
		if ad.BoolOr("PartitionableSlot", false) {
			give()
			break
		}
		p.Claims = append(p.Claims, claim(ad, have))
	default:
		// The pod has reported all the same, and has nothing free there.
		return fmt.Errorf("the state of %q is %q", name, state[:min(len(state), 100)])
	}
	return nil
}

// refuses reports whether a slot takes no job whatever it is, and whether none of the
// pod does. A startd that shuts down or drains says it by Requirements, and its slots
// may be Unclaimed for as long as other jobs run; those of a broken slot are a text
// (HTCondor src/condor_startd.V6/Reqexp.cpp:publish_requirements).
func refuses(ad *classads.Ad) (closed, ends bool) {
	e, ok := ad.Lookup(classads.AttrRequirements)
	if !ok {
		return false, false
	}
	v, fixed := e.Literal()
	takes, truth := v.Bool()
	return fixed && !(truth && takes), fixed && truth && !takes
}

// until reads until when a slot takes no job; 0 if it takes some.
func until(ad *classads.Ad, name string) int64 {
	if at := ad.IntOr(name, 0); at > 0 && at < 1<<40 {
		return at
	}
	return 0
}

// claim reads what a job has.
func claim(ad *classads.Ad, have resources.Amount) Claim {
	c := Claim{Amount: have, Job: ad.StringOr("GlobalJobId", "")}
	if at := ad.IntOr("JobStart", 0); c.Job != "" && len(c.Job) <= maxJob && at > 0 && at < 1<<40 {
		c.Began = time.Unix(at, 0).UTC()
	} else {
		c.Job = ""
	}
	return c
}

// statistics reads what the startd counts. All slots of a pod have the same
// figures; the ad that came last has the most recent ones.
func (p *Pod) statistics(ad *classads.Ad) {
	p.Started = max(p.Started, int(min(ad.IntOr("JobStarts", 0), 1<<30)))
	n, mean := ad.IntOr("JobBusyTimeCount", 0), ad.RealOr("JobBusyTimeAvg", 0)
	if n > int64(p.Ended) && n < 1<<30 && mean > 0 && mean < 1<<30 && float64(n)*mean < 1<<30 {
		p.Ended, p.Busy = int(n), time.Duration(float64(n)*mean*float64(time.Second))
	}
}

// whole reads the size of a slot. A static slot always has all of it.
func whole(ad *classads.Ad) resources.Amount {
	size := func(name string) int64 {
		static := !ad.BoolOr("PartitionableSlot", false)
		switch {
		case ad.Has("TotalSlot" + name):
			return count(ad, "TotalSlot"+name)
		case static && ad.Has(name):
			return count(ad, name)
		}
		return unsaid
	}
	return resources.Amount{CPUs: size("Cpus"), Memory: size("Memory"), Disk: size("Disk"), GPUs: size("GPUs"), Payloads: size("Payloads")}
}

// unsaid is an amount that is not known.
const unsaid = most

// count reads an amount; sums of what hostile slots say must not overflow.
func count(ad *classads.Ad, name string) int64 {
	return min(max(ad.IntOr(name, 0), 0), most)
}

const most = 1 << 40
