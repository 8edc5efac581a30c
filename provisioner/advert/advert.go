// Package advert writes and reads offline ads: machine ads of pods that could be
// made, for the negotiator.
//
// The ad of a unit is called offline@unit.shape. If a pod has several slots, the
// further ones are offline_2@unit.shape and so on. A unit's name is that of the
// provisioner, of the template and a mark, with hyphens between them.
//
// Whoever may advertise a startd to the collector can write such ads, and can say
// that they were matched. What is read here is a wish, and nothing else: names that
// make no sense are errors, and sizes are never read.
package advert

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/provisioner/template"
)

// Limits of what the collector may say.
const (
	MaxBytes = 64 << 20
	maxText  = 256 << 10
	maxBad   = 10
	maxAds   = 100_000
)

// address is that of a slot that nobody can reach. The collector knows an ad by its
// name and the host of this, and the negotiator writes a match to the ad with the
// same StartdIpAddr, so that it must be the same in all ads of one name
// (HTCondor src/condor_utils/hashkey.cpp:makeStartdAdHashKey).
const address = "<127.0.0.1:0>"

// Form is how the ads of one unit are written.
type Form struct {
	Unit     string
	Template template.Template
	Shape    template.Shape
	// Slot is what a slot of the unit would advertise; nil is what the site says of it.
	Slot *classads.Ad
	// Rank is how much the negotiator should prefer this ad among offline ones.
	Rank Rank
	// Matched is the last match, if it is to be kept.
	Matched time.Time
	// Lifetime is how long the collector keeps the ads.
	Lifetime time.Duration
	// Wake is for how long after a match condor_rooster should wake the machine; 0 is
	// never.
	Wake time.Duration
}

// Rank is one of three.
type Rank int

// The ranks, the most preferred one first.
const (
	First Rank = iota
	Second
	Third
)

// Name returns the name of a unit's ad for one of its slots, counted from 0.
func Name(unit, shape string, slot int) string {
	if slot == 0 {
		return "offline@" + unit + "." + shape
	}
	return fmt.Sprintf("offline_%d@%s.%s", slot+1, unit, shape)
}

// Slots returns how many ads a unit of a template has.
func Slots(t template.Template) int {
	if t.Partitionable {
		return 1
	}
	return t.Slots
}

// Ads returns the ads of one unit.
//
// By default the negotiator ranks a slot by 10^7 times its own Rank, less 10^5 for
// each CPU and 1 for each MiB that it has left, and keeps 24 bits of that
// (NEGOTIATOR_PRE_JOB_RANK, HTCondor src/condor_negotiator.V6/matchmaker.cpp). So a
// Rank of -10 is below that of any slot that is there. With this one ads of a shape
// rank the same, whatever they have left, smaller shapes come before larger ones,
// and what the template prefers before both.
//
// A partitionable slot would get one job in each negotiation cycle, and the next job
// another ad. With a consumption policy the negotiator counts down what the ad has
// left (HTCondor src/condor_utils/consumption_policy.cpp), and goes on with the same
// ad as long as its rank does not rise.
func Ads(f Form) []*classads.Ad {
	var ads []*classads.Ad
	for slot := range Slots(f.Template) {
		ad := f.slot()
		ad.SetString("MyType", "Machine")
		ad.SetString("TargetType", "Job")
		ad.SetString("Name", Name(f.Unit, f.Shape.Name, slot))
		// condor_rooster wakes each machine once in a cycle.
		ad.SetString("Machine", f.Unit+"."+f.Shape.Name)
		ad.SetString("MyAddress", address)
		ad.SetString("StartdIpAddr", address)
		ad.SetBool("Offline", true)
		ad.SetInt("ClassAdLifetime", int64(f.Lifetime/time.Second))
		rank := fmt.Sprintf("%d.0 - 0.01 * MY.TotalSlotCpus + 0.01 * MY.Cpus + 1.0E-7 * MY.Memory", -10*(f.Rank+1))
		if f.Template.Rank != nil {
			ad.Insert("PodRank", f.Template.Rank)
			set(ad, "PodRankSize", "ifThenElse(MY.PodRank < 0, - MY.PodRank, MY.PodRank)")
			rank += " + ifThenElse((MY.PodRankSize >= 0) =?= true, 4.0 * MY.PodRank / (1.0 + MY.PodRankSize), 0.0)"
		}
		set(ad, "Rank", rank)
		if f.Template.Partitionable {
			ad.SetString("MachineResources", "Cpus Memory Disk GPUs")
			if f.Shape.Pod.Payloads > 0 {
				ad.SetString("MachineResources", "Cpus Memory Disk GPUs Payloads")
				ad.SetInt("Payloads", f.Shape.Pod.Payloads)
				ad.SetInt("ConsumptionPayloads", 1)
			}
			set(ad, "ConsumptionCpus", "quantize(TARGET.RequestCpus, {1})")
			set(ad, "ConsumptionMemory", "quantize(TARGET.RequestMemory, {128})")
			set(ad, "ConsumptionDisk", "quantize(TARGET.RequestDisk, {1024})")
			set(ad, "ConsumptionGPUs", "ifThenElse(TARGET.RequestGPUs is undefined, 0, TARGET.RequestGPUs)")
		}
		if !f.Matched.IsZero() {
			ad.SetInt("MachineLastMatchTime", f.Matched.Unix())
		}
		if f.Wake > 0 {
			set(ad, "Unhibernate", fmt.Sprintf("MY.MachineLastMatchTime isnt undefined && time() - MY.MachineLastMatchTime < %d", int64(f.Wake/time.Second)))
		}
		ads = append(ads, ad)
	}
	return ads
}

// strange are attributes by which a slot would have the negotiator treat its ad in
// another way than an offline ad of ours. SlotID makes it write to the ad of the
// first slot as well, which there is not.
var strange = []string{"SlotID", "GhostMultiplier", "WantAdRevaluate", "NegotiatorRequirements", "OfflinePrimarySlotName", "OfflineMatches", "MachineMatchCount", "MachineLastMatchTime", "Unhibernate", "Absent", "MachineResources"}

// slot is the ad of a slot.
func (f Form) slot() *classads.Ad {
	if f.Slot == nil {
		return f.Template.Slot(f.Shape, nil)
	}
	ad := f.Slot.Clone()
	for _, name := range strange {
		ad.Delete(name)
	}
	return ad
}

// set sets an expression that is written here.
func set(ad *classads.Ad, name, text string) {
	if err := ad.SetExpr(name, text); err != nil {
		panic(err)
	}
}

// Invalidations returns the ads that take those of a unit back.
func Invalidations(unit, shape string, slots int) []*classads.Ad {
	var ads []*classads.Ad
	for slot := range slots {
		ad := classads.NewAd()
		name := Name(unit, shape, slot)
		ad.SetString("MyType", "Query")
		ad.SetString("TargetType", "Machine")
		ad.SetString("Name", name)
		ad.SetString("MyAddress", address)
		// Collectors that do not find the ad by its name look for this.
		set(ad, "Requirements", "TARGET.Name == "+classads.Quote(name))
		ads = append(ads, ad)
	}
	return ads
}

// Offer is what is known of the ads of one unit.
type Offer struct {
	Unit     string
	Template int // index in the templates
	Shape    string
	// Matched is the last match of any of its ads, by the clock of the negotiator;
	// zero if there was none.
	Matched time.Time
	// Ads is how many of them there are.
	Ads int
}

// mark ends the name of a unit, which must not be longer than a name of a Job may be.
var mark = regexp.MustCompile(`^[0-9a-z]{1,8}$`)

// word is what names of shapes look like (package template).
var word = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$`)

// slot begins the name of an ad.
var slot = regexp.MustCompile(`^offline(_[0-9]{1,3})?$`)

// ParseName reads the name of an ad and returns the unit, the index of its
// template, and the shape, which need not be one of the template.
func ParseName(name, prefix string, templates []template.Template) (unit string, of int, shape string, err error) {
	begin, rest, _ := strings.Cut(name, "@")
	unit, shape, _ = strings.Cut(rest, ".")
	if !slot.MatchString(begin) || !word.MatchString(shape) || len(name) > 253 {
		return "", 0, "", fmt.Errorf("the name of an offline ad is %q; it must be offline@unit.shape", name)
	}
	for i, t := range templates {
		if m, ok := strings.CutPrefix(unit, prefix+"-"+t.Name+"-"); ok && mark.MatchString(m) {
			return unit, i, shape, nil
		}
	}
	return "", 0, "", fmt.Errorf("the name of an offline ad is %q; its unit must be called %s, a template and a mark of letters and digits, with hyphens between them", name, prefix)
}

// Arguments returns those of condor_status for the ads of a provisioner.
func Arguments(pool, prefix string) []string {
	args := []string{"-long", "-attributes", "Name,Offline,MachineLastMatchTime", "-constraint",
		fmt.Sprintf("Offline =?= true && regexp(%s, Name)", classads.Quote("^offline(_[0-9]+)?@"+prefix+"-"))}
	if pool != "" {
		args = append([]string{"-pool", pool}, args...)
	}
	return args
}

// ErrTooMuch is returned if not all ads were read.
var ErrTooMuch = errors.New("there are more offline ads than are read")

// Read reads what condor_status prints. Ads that cannot be read are in the error.
func Read(r io.Reader, prefix string, templates []template.Template) ([]Offer, error) {
	limited := &io.LimitedReader{R: r, N: MaxBytes}
	ads := classads.NewReader(bufio.NewReader(limited), classads.FormatLong, classads.Parser{MaxText: maxText})
	offers := map[string]*Offer{}
	var bad *multierror.Error
	wrong, n := 0, 0
	for ad, err := range ads.All() {
		if n++; n > maxAds {
			limited.N = 0
			break
		}
		if err == nil {
			err = add(offers, ad, prefix, templates)
		}
		if err == nil {
			continue
		}
		if wrong++; wrong <= maxBad {
			bad = multierror.Append(bad, fmt.Errorf("reading an offline ad: %w", err))
		}
	}
	if limited.N <= 0 {
		bad = multierror.Append(bad, fmt.Errorf("reading the offline ads of the collector: %w (%d bytes or %d ads)", ErrTooMuch, MaxBytes, maxAds))
	}
	all := make([]Offer, 0, len(offers))
	for _, o := range offers {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Offer) int { return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Shape, b.Shape)) })
	return all, bad.ErrorOrNil()
}

func add(offers map[string]*Offer, ad *classads.Ad, prefix string, templates []template.Template) error {
	unit, of, shape, err := ParseName(ad.StringOr("Name", ""), prefix, templates)
	if err != nil {
		return err
	}
	key := unit + "." + shape
	o := offers[key]
	if o == nil {
		o = &Offer{Unit: unit, Template: of, Shape: shape}
		offers[key] = o
	}
	o.Ads++
	if at := Matched(ad); at.After(o.Matched) {
		o.Matched = at
	}
	return nil
}

// One is an offline ad that is to be woken.
type One struct {
	Name string
	Offer
}

// ReadOne reads the machine ad that condor_rooster writes to the command that wakes
// a machine: one ad in the long form (HTCondor src/condor_power/rooster.cpp:wakeUp).
// All of it is read, since condor_rooster waits until it is.
func ReadOne(r io.Reader, prefix string, templates []template.Template) (One, error) {
	limited := &io.LimitedReader{R: r, N: maxText + 1}
	text, err := io.ReadAll(limited)
	if err != nil {
		return One{}, fmt.Errorf("reading the machine ad from standard input: %w", err)
	}
	if len(text) > maxText {
		return One{}, fmt.Errorf("reading the machine ad from standard input: it has more than %d bytes", maxText)
	}
	ad, err := classads.Parser{MaxText: maxText}.Old(string(text))
	if err != nil {
		return One{}, fmt.Errorf("reading the machine ad from standard input: %w", err)
	}
	o := One{Name: ad.StringOr("Name", "")}
	o.Matched = Matched(ad)
	if o.Unit, o.Template, o.Shape, err = ParseName(o.Name, prefix, templates); err != nil {
		return One{}, err
	}
	if !slices.ContainsFunc(templates[o.Template].Shapes, func(s template.Shape) bool { return s.Name == o.Shape }) {
		return One{}, fmt.Errorf("the name of the offline ad is %q; the template %s has no shape %s", o.Name, templates[o.Template].Name, o.Shape)
	}
	return o, nil
}

// Matched returns when the negotiator last matched an ad, or zero.
func Matched(ad *classads.Ad) time.Time {
	at := ad.IntOr("MachineLastMatchTime", 0)
	if at <= 0 || at > math.MaxInt32*int64(4) {
		return time.Time{}
	}
	return time.Unix(at, 0).UTC()
}
