package settings

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Size is a part of the machine; 0 is not known.
type Size struct {
	CPUs     float64
	MemoryMB int64 // MiB
	DiskKB   int64 // KiB
}

// Offer is what the startd offers jobs, as far as the configuration says.
type Offer struct {
	// Slot is the largest fixed slot.
	Slot Size
	// Slots is what all fixed slots have together, and the partitionable one.
	Slots Size
	// Cut is what the startd cuts slots from, and Largest the largest one that it cuts.
	Cut, Largest Size
}

// fits is a condition of START in a partitionable slot (condor_config.d/55-podstarter-size.conf).
const fits = "PODSTARTER_FITS"

// OfferOf reads what the startd offers. Of slots without a type it knows nothing.
func OfferOf(cfg *config.Config) Offer {
	total := machine(cfg)
	var o Offer
	types := slotTypes(cfg, total)
	for _, t := range types {
		if t.cut {
			o.Cut = t.size
			o.Largest = Size{CPUs: mostFitting(cfg, "RequestCpus", t.size.CPUs), MemoryMB: int64(mostFitting(cfg, "RequestMemory", float64(t.size.MemoryMB))), DiskKB: t.size.DiskKB}
		} else {
			o.Slot = Size{max(o.Slot.CPUs, t.size.CPUs), max(o.Slot.MemoryMB, t.size.MemoryMB), max(o.Slot.DiskKB, t.size.DiskKB)}
		}
		n := float64(t.count)
		o.Slots.CPUs += n * t.size.CPUs
		o.Slots.MemoryMB += int64(n) * t.size.MemoryMB
		o.Slots.DiskKB += int64(n) * t.size.DiskKB
	}
	return o
}

// machine is what the startd takes to be the machine (ResAttributes.cpp:MachAttributes,
// sysapi/phys_mem.cpp:sysapi_phys_memory).
func machine(cfg *config.Config) Size {
	whole := func(name string, def int64) int64 {
		n, err := cfg.Int(name, def)
		if err != nil {
			return 0
		}
		return min(max(n, 0), math.MaxInt64/maxCPUs)
	}
	memory := whole("MEMORY", whole("DETECTED_MEMORY", 0))
	return Size{CPUs: float64(whole("NUM_CPUS", 0)), MemoryMB: max(memory-whole("RESERVED_MEMORY", 0), 0), DiskKB: whole("DISK", 0)}
}

// slotType is SLOT_TYPE_N with what each of its slots has.
type slotType struct {
	count  int
	cut    bool
	shares map[byte]string // as written, by the first letter of the resource
	size   Size
}

func slotTypes(cfg *config.Config, total Size) []slotType {
	var types []slotType
	for n := 1; n <= maxSlotTypes; n++ {
		name := strconv.Itoa(n)
		count, err := cfg.Int("NUM_SLOTS_TYPE_"+name, 0)
		if err != nil || count <= 0 {
			continue
		}
		t := slotType{count: int(min(count, maxCPUs)), shares: sharesIn(cfg.String("SLOT_TYPE_"+name, "auto"))}
		t.cut, _ = cfg.Bool("SLOT_TYPE_"+name+"_PARTITIONABLE", false)
		types = append(types, t)
	}
	for _, r := range []struct {
		letter byte
		total  float64
		set    func(s *Size, v float64)
	}{
		{'c', total.CPUs, func(s *Size, v float64) { s.CPUs = v }},
		{'m', float64(total.MemoryMB), func(s *Size, v float64) { s.MemoryMB = int64(v) }},
		{'d', float64(total.DiskKB), func(s *Size, v float64) { s.DiskKB = int64(v) }},
	} {
		left, autos := r.total, 0
		for i := range types {
			v, auto := share(types[i].shares[r.letter], r.total)
			if auto {
				autos += types[i].count
				continue
			}
			left -= v * float64(types[i].count)
			r.set(&types[i].size, v)
		}
		for i := range types {
			if _, auto := share(types[i].shares[r.letter], r.total); auto {
				r.set(&types[i].size, max(left, 0)/float64(autos))
			}
		}
	}
	return types
}

// sharesIn reads a slot type: a share of everything, or a share for each resource, whose names
// may be cut short (slot_builder.cpp:buildSlot). What it does not mention is `auto`.
func sharesIn(text string) map[byte]string {
	shares := map[byte]string{}
	for _, part := range config.Split(text) {
		name, value, named := strings.Cut(part, "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case !named:
			for _, letter := range []byte("cmd") {
				if shares[letter] == "" {
					shares[letter] = name
				}
			}
		case name == "ram":
			shares['m'] = value
		case name != "" && strings.IndexByte("cmd", name[0]) >= 0:
			shares[name[0]] = value
		}
	}
	return shares
}

// share is so much of a total: a percentage, a fraction, or a number.
func share(text string, total float64) (value float64, auto bool) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		return bounded(total * v / 100), err != nil
	}
	if a, b, ok := strings.Cut(text, "/"); ok {
		x, errA := strconv.ParseFloat(strings.TrimSpace(a), 64)
		y, errB := strconv.ParseFloat(strings.TrimSpace(b), 64)
		return bounded(total * x / y), errA != nil || errB != nil || y <= 0
	}
	v, err := strconv.ParseFloat(text, 64)
	return bounded(v), err != nil // "auto", or nothing
}

// bounded keeps nonsense within an int64.
func bounded(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, math.MaxInt64/maxCPUs)
}

// mostFitting is the largest request that START lets through, up to the whole slot.
func mostFitting(cfg *config.Config, attribute string, whole float64) float64 {
	condition := strings.TrimSpace(cfg.String(fits, ""))
	if condition == "" || !strings.Contains(cfg.String("START", ""), condition) {
		return whole
	}
	// Larger requests do not fit where a smaller one does not.
	n := sort.Search(int(whole), func(i int) bool {
		job := classads.NewAd()
		job.SetInt(attribute, int64(i+1))
		ok, err := cfg.EvalBool(fits, true, nil, job)
		return err == nil && !ok
	})
	return float64(n)
}
