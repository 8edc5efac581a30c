package settings

import (
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
		{"nonsense", m{"NUM_SLOTS_TYPE_1": "many", "NUM_SLOTS": "9999999999999"}, "95-podstarter-slots.conf"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := SlotsBeyondContainers(config.FromMap(tt.knobs), 3)
			if (tt.says == "") != (got == "") || !strings.Contains(got, tt.says) {
				t.Errorf("got %q, want %q in it", got, tt.says)
			}
		})
	}
}
