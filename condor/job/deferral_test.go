package job

import (
	"errors"
	"testing"
	"time"
)

func TestDeferral(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, tt := range map[string]struct {
		ad     string
		want   time.Duration
		missed bool
	}{
		"none":                    {ad: ""},
		"later":                   {ad: "DeferralTime = 1800000060", want: time.Minute},
		"an expression":           {ad: "DeferralTime = Start + 5\nStart = 1800000000", want: 5 * time.Second},
		"now":                     {ad: "DeferralTime = 1800000000"},
		"late":                    {ad: "DeferralTime = 1799999999", missed: true},
		"late within the window":  {ad: "DeferralTime = 1799999940\nDeferralWindow = 60"},
		"late beyond the window":  {ad: "DeferralTime = 1799999939\nDeferralWindow = 60", missed: true},
		"a clock that is ahead":   {ad: "DeferralTime = 1800000060\nDeferralOffset = 10", want: 70 * time.Second},
		"a clock that is behind":  {ad: "DeferralTime = 1800000060\nDeferralOffset = -60"},
		"no number":               {ad: `DeferralTime = "soon"`, missed: true},
		"undefined":               {ad: "DeferralTime = Nowhere", missed: true},
		"zero":                    {ad: "DeferralTime = 0", missed: true},
		"negative":                {ad: "DeferralTime = -5", missed: true},
		"beyond all time":         {ad: "DeferralTime = 9223372036854775807", missed: true},
		"an offset beyond all":    {ad: "DeferralTime = 1800000000\nDeferralOffset = -9223372036854775807", missed: true},
		"a window beyond all":     {ad: "DeferralTime = 1\nDeferralWindow = 9223372036854775807"},
		"a window that is no one": {ad: "DeferralTime = 1799999999\nDeferralWindow = false", missed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Deferral(mustAd(t, tt.ad), now)
			if errors.Is(err, ErrMissed) != tt.missed || got != tt.want {
				t.Errorf("%v, %v; want %v, missed %v", got, err, tt.want, tt.missed)
			}
		})
	}
}
