package settings

import (
	"fmt"
	"strings"
	"testing"

	"podstarter/condor/config"
)

func TestSlotsBeyondContainers(t *testing.T) {
	type m = map[string]string
	tests := []struct {
		name  string
		knobs m
		says  string // part of the warning; empty for none
	}{
		{"as many fixed slots as containers", m{"NUM_SLOTS_TYPE_1": "3", "SLOT_TYPE_1_PARTITIONABLE": "False"}, ""},
		{"one fixed slot too many", m{"NUM_SLOTS_TYPE_1": "4", "SLOT_TYPE_1_PARTITIONABLE": "False"}, "run 4 jobs"},
		{"of two types", m{"NUM_SLOTS_TYPE_1": "2", "NUM_SLOTS_TYPE_2": "2"}, "run 4 jobs"},
		{"without types", m{"NUM_SLOTS": "5"}, "run 5 jobs"},
		{"a CPU each", m{"NUM_CPUS": "8"}, "run 8 jobs"},
		{"partitionable, a CPU for each container", m{"NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True", "NUM_CPUS": "3"}, ""},
		{"partitionable, more CPUs", m{"NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True", "NUM_CPUS": "12"}, "run 12 jobs"},
		{"partitionable, CPUs of the machine", m{"NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True"}, "run 4 jobs or more"},
		{"the startd counts", m{"NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True", "NUM_CPUS": "12", "MACHINE_RESOURCE_Payloads": "$INT(N)"}, ""},
		{"nothing said", m{}, ""},
		{"the startd counts spares as well", m{"NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True", "NUM_CPUS": "12", "MACHINE_RESOURCE_Payloads": "5"}, "MACHINE_RESOURCE_Payloads: is 5"},
		{"the startd leaves spares out", m{"NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True", "NUM_CPUS": "12", "MACHINE_RESOURCE_Payloads": "3"}, ""},
		{"nonsense", m{"NUM_SLOTS_TYPE_1": "many", "NUM_SLOTS": "9999999999999"}, "95-podstarter-slots.conf"},
	}
	for _, tt := range tests {
		for _, spares := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, %d spares", tt.name, spares), func(t *testing.T) {
				got := SlotsBeyondContainers(config.FromMap(tt.knobs), 3+spares, spares)
				if (tt.says == "") != (got == "") || !strings.Contains(got, tt.says) {
					t.Errorf("got %q, want %q in it", got, tt.says)
				}
			})
		}
	}
}

// TestSlotsThatTakeSpares: the warning says what to change.
func TestSlotsThatTakeSpares(t *testing.T) {
	for _, tt := range []struct {
		name  string
		knobs map[string]string
		says  []string
	}{
		{"fixed slots", map[string]string{"NUM_SLOTS": "5"},
			[]string{"POD_STARTER_SPARES: ", "2 of the 5 payload containers are spares", "may run 5 jobs", "set NUM_CPUS and NUM_SLOTS_TYPE_1 to 3"}},
		{"an older file of slots", map[string]string{"MACHINE_RESOURCE_Payloads": "5"},
			[]string{"MACHINE_RESOURCE_Payloads: ", "95-podstarter-slots.conf", "or set it to 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := SlotsBeyondContainers(config.FromMap(tt.knobs), 5, 2)
			for _, part := range tt.says {
				if !strings.Contains(got, part) {
					t.Errorf("no %q in %q", part, got)
				}
			}
		})
	}
}
