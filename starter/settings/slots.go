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

// SlotsBeyondContainers is a warning when the startd can run more jobs at a time
// than there are payload containers: the last of them would wait for a container
// in vain and go back to the queue. It is empty when all is well, and when the
// startd counts the containers itself.
func SlotsBeyondContainers(cfg *config.Config, containers int) string {
	if cfg.String(countedResource, "") != "" {
		return ""
	}
	fixed, cut := SlotsOf(cfg)
	most := fixed
	if cut {
		// Each slot cut out of a partitionable one has at least one CPU
		// (startd Resource.cpp:create_dslot).
		cpus, err := cfg.Int("NUM_CPUS", 0)
		if err != nil || cpus <= 0 {
			cpus = int64(containers) + 1 // as many as the machine has
		}
		most = max(most, int(min(cpus, maxCPUs)))
	}
	if most <= containers {
		return ""
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
