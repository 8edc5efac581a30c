package job

import (
	"fmt"
	"strconv"
	"strings"

	"podstarter/condor/config"
)

// affinity returns the CPUs for a slot's jobs: those that the startd assigned
// (ASSIGN_CPU_AFFINITY), those that a knob names, or the one with the slot's
// number; none unless ENFORCE_CPU_AFFINITY is true
// (condor_starter.V6.1/os_proc.cpp:OsProc::makeCpuAffinityMask).
func affinity(slot string, k Knobs) ([]int, error) {
	enforce, err := k.Bool("ENFORCE_CPU_AFFINITY", false)
	if err != nil || !enforce {
		return nil, err
	}
	number := slotNumber(slot)
	if number < 1 {
		return nil, nil
	}
	knob := "STARTD_ASSIGNED_AFFINITY"
	list, ok := k.Lookup(knob)
	if !ok {
		knob = fmt.Sprintf("SLOT%d_CPU_AFFINITY", number)
		list, ok = k.Lookup(knob)
	}
	if !ok {
		if number > maxCPU+1 {
			return nil, nil
		}
		return []int{number - 1}, nil
	}
	var cpus []int
	for _, text := range config.Split(list) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxCPU || len(cpus) > maxCPU {
			return nil, fmt.Errorf("knob %s: %s is not the number of a CPU", knob, excerpt(text))
		}
		cpus = append(cpus, n)
	}
	return cpus, nil
}

const maxCPU = 1023 // CPU_SETSIZE is 1024 (CPU_SET(3))

// slotNumber returns the first number in a slot's id, 1 for slot1_3; 0 if there
// is none (condor_starter.V6.1/starter.cpp:getMySlotNumber).
func slotNumber(slot string) int {
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	from := strings.IndexFunc(slot, isDigit)
	if from < 0 {
		return 0
	}
	digits := slot[from:]
	if end := strings.IndexFunc(digits, func(r rune) bool { return !isDigit(r) }); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
