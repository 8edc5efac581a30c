package podhealth

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzHealth reads states that were kept on disk: what is believed of them is
// bounded, and stays what it is when it is kept again.
func FuzzHealth(f *testing.F) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Add([]byte(`{"Sick":{"Reason":"no disk","Since":"2026-11-20T11:00:00Z","Noted":"2026-11-20T11:30:00Z","Until":"2026-11-20T12:30:00Z","Tries":3},"Rests":{"slot1":{"Reason":"x","Noted":"2026-11-20T11:59:00Z","Until":"2026-11-20T12:30:00Z","Strikes":2}}}`))
	f.Add([]byte(`{"sick":{"until":"9999-01-01T00:00:00Z","tries":-5},"rests":{"slot1_1":{"strikes":99999999},"../x":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h Health
		if json.Unmarshal(data, &h) != nil {
			return
		}
		h = h.sane(now)
		const most = longerSick * MaxRest
		if s := h.Sick; s != nil && (s.Tries < 1 || s.Tries > maxStrikes || s.Until.Sub(s.Noted) > most || len(s.Reason) > len(shortened(s.Reason))) {
			t.Errorf("%+v", s)
		}
		if len(h.Rests) > maxRests {
			t.Errorf("%d slots rest", len(h.Rests))
		}
		for slot, r := range h.Rests {
			if slotID(slot) != slot || r.Strikes < 1 || r.Strikes > maxStrikes || r.Until.Sub(r.Noted) > most {
				t.Errorf("%s %+v", slot, r)
			}
		}
		again, err := json.Marshal(h)
		if err != nil {
			t.Skip("a time of another era")
		}
		var back Health
		if err := json.Unmarshal(again, &back); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}
