package main

import (
	"fmt"
	"strings"

	"podstarter/condor/config"
	"podstarter/payload"
	"podstarter/starter/settings"
)

// inventory is the knob by which a startd learns of GPUs.
const inventory = "MACHINE_RESOURCE_INVENTORY_GPUs"

// auditGPUs looks whether the startd asks this program for GPUs, and what it is told.
func auditGPUs(cfg *config.Config, set settings.Settings, add func(grade payload.Grade, what, fix, format string, args ...any)) {
	const what = "GPUs"
	asks := strings.Contains(cfg.String(inventory, ""), errandGPUs)
	if len(set.GPUs.Containers) == 0 {
		if by := cfg.String(inventory, ""); by != "" && !asks {
			add(payload.Warn, what, inventory+" = $(STARTER) "+errandGPUs, "the startd asks %q, which sees the pilot container's GPUs and not those of jobs", by)
		}
		return
	}
	if !asks {
		add(payload.Bad, what, "condor_config.d/55-podstarter-gpus.conf", "%s names containers with GPUs, but the startd asks %q for them", settings.KnobGPUContainers.Name, cfg.String(inventory, "nobody"))
		return
	}
	pod := gpusOf(set)
	found, missing := pod.Found()
	for _, c := range found {
		add(payload.OK, what, "", "container %s has %s", c.Name, strings.Join(c.IDs(), ", "))
	}
	if len(missing) > 0 {
		add(payload.Bad, what, "StarterLog.testing, then condor_restart -startd", "the startd was told of none in %s", strings.Join(missing, ", "))
	}
	if _, cut := settings.SlotsOf(cfg); cut && len(missing) == 0 && pod.Uneven() {
		add(payload.Bad, what, "fixed slots, or the same number of GPUs for each container (docs/admin/gpus.md)",
			"containers have different numbers of GPUs, and a partitionable slot cannot give them out: %s", fmt.Sprint(set.GPUs.Containers))
	}
}
