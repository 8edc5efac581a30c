package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

func TestOffer(t *testing.T) {
	type m = map[string]string
	const start = "(True) && "
	const condition = "(TARGET.RequestCpus ?: 1) <= 2 && quantize(TARGET.RequestMemory ?: 0, {128}) <= 1000000 / 1024"
	for _, tt := range []struct {
		name  string
		knobs m
		want  Offer
	}{
		{"nothing said", m{}, Offer{}},
		{"fixed slots, alike", m{"NUM_CPUS": "4", "MEMORY": "4001", "DISK": "1000", "NUM_SLOTS_TYPE_1": "2", "SLOT_TYPE_1": "cpus=auto, memory=auto,disk=auto, swap=auto"},
			Offer{Slot: Size{2, 2000, 500}, Slots: Size{4, 4000, 1000}}},
		{"what the pilot sees", m{"NUM_CPUS": "2", "DETECTED_MEMORY": "24105", "RESERVED_MEMORY": "105", "NUM_SLOTS_TYPE_1": "2"},
			Offer{Slot: Size{1, 12000, 0}, Slots: Size{2, 24000, 0}}},
		{"two types", m{"NUM_CPUS": "8", "MEMORY": "8000", "NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1": "cpus=1/2, memory=50%", "NUM_SLOTS_TYPE_2": "2", "SLOT_TYPE_2": "ram=1000,c=1"},
			Offer{Slot: Size{4, 4000, 0}, Slots: Size{6, 6000, 0}}},
		{"a share of everything", m{"NUM_CPUS": "8", "MEMORY": "8000", "DISK": "80", "NUM_SLOTS_TYPE_1": "2", "SLOT_TYPE_1": "1/4"},
			Offer{Slot: Size{2, 2000, 20}, Slots: Size{4, 4000, 40}}},
		{"partitionable", m{"NUM_CPUS": "8", "MEMORY": "8000", "NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1": "100%", "SLOT_TYPE_1_PARTITIONABLE": "True", "START": "True"},
			Offer{Cut: Size{8, 8000, 0}, Largest: Size{8, 8000, 0}, Slots: Size{8, 8000, 0}}},
		{"partitionable, bounded", m{"NUM_CPUS": "8", "MEMORY": "8000", "NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1": "100%", "SLOT_TYPE_1_PARTITIONABLE": "True",
			"PODSTARTER_FITS": condition, "START": start + condition},
			Offer{Cut: Size{8, 8000, 0}, Largest: Size{2, 896, 0}, Slots: Size{8, 8000, 0}}},
		{"a bound that START leaves out", m{"NUM_CPUS": "8", "MEMORY": "8000", "NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True",
			"PODSTARTER_FITS": condition, "START": "True"},
			Offer{Cut: Size{8, 8000, 0}, Largest: Size{8, 8000, 0}, Slots: Size{8, 8000, 0}}},
		{"nonsense", m{"NUM_CPUS": "many", "MEMORY": "-7", "DISK": "9999999999999999999", "NUM_SLOTS_TYPE_1": "99999999999", "SLOT_TYPE_1": "cpus=1/0, memory=-5%, disk=NaN"},
			Offer{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, OfferOf(config.FromMap(tt.knobs))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
