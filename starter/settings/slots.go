package settings

import (
	"fmt"
	"strconv"

	"podstarter/condor/config"
)

// countedResource is the custom machine resource by which the startd counts
// payload containers (condor_config.d/95-podstarter-slots.conf).
const countedResource = "MACHINE_RESOURCE_Payloads"

// maxSlotTypes is how many slot types are looked at; HTCondor's own
// MAX_SLOT_TYPES is 10.
const maxSlotTypes = 10

// CountedContainers is how many payload containers the startd counts itself, if it
// does.
func CountedContainers(cfg *config.Config) (n int, counts bool) {
	if cfg.String(countedResource, "") == "" {
		return 0, false
	}
	count, err := cfg.Int(countedResource, 0)
	if err != nil {
		return 0, false // a list of names, which is a site's own
	}
	return int(min(max(count, 0), maxCPUs)), true
}

// SlotsBeyondContainers is a warning when the startd can run more jobs at a time
// than there are payload containers for slots, which are those that are no spares.
// Without spares, the last of these jobs would wait for a container in vain and go back
// to the queue; with spares, they would use those up. It is empty when all is well.
func SlotsBeyondContainers(cfg *config.Config, containers, spares int) string {
	forSlots := containers - spares
	if cfg.String(countedResource, "") != "" {
		n, counts := CountedContainers(cfg)
		if !counts || n <= forSlots {
			return ""
		}
		return fmt.Sprintf("%s: is %d, but of the %d payload containers that %s names, %d are for slots (%s = %d). "+
			"Install the 95-podstarter-slots.conf of this version, or set it to %d",
			countedResource, n, containers, KnobContainers.Name, forSlots, KnobSpares.Name, spares, forSlots)
	}
	fixed, cut := SlotsOf(cfg)
	most := fixed
	if cut {
		// Each slot cut out of a partitionable one has at least one CPU
		// (startd Resource.cpp:create_dslot).
		cpus, err := cfg.Int("NUM_CPUS", 0)
		if err != nil || cpus <= 0 {
			cpus = int64(forSlots) + 1 // as many as the machine has
		}
		most = max(most, int(min(cpus, maxCPUs)))
	}
	switch {
	case most <= forSlots:
		return ""
	case spares > 0:
		return fmt.Sprintf("%s: %d of the %d payload containers are spares, but the startd may run %d jobs or more at a time, "+
			"which leave too few spares or none. Install 95-podstarter-slots.conf, so that the startd counts containers, "+
			"or set NUM_CPUS and NUM_SLOTS_TYPE_1 to %d", KnobSpares.Name, spares, containers, most, forSlots)
	}
	return fmt.Sprintf("%s: names %d payload containers, but the startd may run %d jobs or more at a time; "+
		"those without a container go back to the queue. Install 95-podstarter-slots.conf, so that the startd counts containers, "+
		"or set NUM_CPUS and NUM_SLOTS_TYPE_1 to their number", KnobContainers.Name, containers, most)
}

// maxCPUs keeps nonsense in NUM_CPUS within an int.
const maxCPUs = 1 << 20

// SlotsOf is how many fixed slots the configuration asks for, and whether there
// is a partitionable one (startd slot_builder.cpp:countTypes,
// ResMgr.cpp:init_resources).
func SlotsOf(cfg *config.Config) (fixed int, cut bool) {
	typed := false
	for n := 1; n <= maxSlotTypes; n++ {
		name := strconv.Itoa(n)
		count, err := cfg.Int("NUM_SLOTS_TYPE_"+name, 0)
		if err != nil || count <= 0 {
			continue
		}
		typed = true
		if partitionable, err := cfg.Bool("SLOT_TYPE_"+name+"_PARTITIONABLE", false); err == nil && partitionable {
			cut = true
			continue
		}
		fixed += int(min(count, maxCPUs))
	}
	if typed {
		return fixed, cut
	}
	count, err := cfg.Int("NUM_SLOTS", 0)
	if err != nil || count <= 0 {
		count, err = cfg.Int("NUM_CPUS", 0)
	}
	if err != nil {
		return 0, false
	}
	return int(min(max(count, 0), maxCPUs)), false
}
