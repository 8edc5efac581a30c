package pool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/provisioner/advert"
	"podstarter/provisioner/template"
)

func TestMarket(t *testing.T) {
	sent := filepath.Join(t.TempDir(), "sent")
	tools(t, map[string]string{
		"condor_status": `case "$*" in
*-negotiator*) printf 'Name = "a"\nLastNegotiationCycleTime0 = 1700000060\n\nName = "b"\nLastNegotiationCycleTime0 = 1700000000\n\nName = "c"\n\n' ;;
*Offline*) printf 'Name = "offline@site-plain-1.one"\nMachineLastMatchTime = 1700000000\n\nName = "slot1@site-plain-1"\n\n' ;;
esac
`,
		"condor_advertise": `(echo "$*"; cat) >>` + sent + "\n",
	})
	m := &Market{Pool: &Pool{Collector: "cm", Prefix: "site"}, Templates: []template.Template{{Name: "plain"}}}
	offers, err := m.Offers(t.Context())
	want := []advert.Offer{{Unit: "site-plain-1", Shape: "one", Matched: time.Unix(1_700_000_000, 0).UTC(), Ads: 1}}
	if diff := cmp.Diff(want, offers); diff != "" || err == nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	if at, err := m.Cycle(t.Context()); err != nil || at.Unix() != 1_700_000_000 {
		t.Errorf("the last cycle began at %v, %v", at, err)
	}
	if err := m.Advertise(t.Context(), nil); err != nil {
		t.Error(err)
	}
	a, b := classads.NewAd(), classads.NewAd()
	a.SetString("Name", "a")
	b.SetString("Name", "b")
	if err := m.Advertise(t.Context(), []*classads.Ad{a, b}); err != nil {
		t.Error(err)
	}
	if err := m.Invalidate(t.Context(), []*classads.Ad{a}); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(sent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("-pool cm -multiple UPDATE_STARTD_AD\nName = \"a\"\n\nName = \"b\"\n\n-pool cm -multiple INVALIDATE_STARTD_ADS\nName = \"a\"\n\n", string(text)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// What is not known is an error, and not nothing.
func TestMarketAway(t *testing.T) {
	tools(t, map[string]string{"condor_status": "echo 'communication error' >&2; exit 1", "condor_advertise": "echo 'failed to send classad' >&2; exit 1"})
	m := &Market{Pool: &Pool{Prefix: "site"}}
	if offers, err := m.Offers(t.Context()); err == nil || offers != nil {
		t.Errorf("%v, %v", offers, err)
	}
	if at, err := m.Cycle(t.Context()); err == nil || !at.IsZero() {
		t.Errorf("%v, %v", at, err)
	}
	err := m.Advertise(t.Context(), []*classads.Ad{classads.NewAd()})
	if err == nil || !strings.Contains(err.Error(), "needs the right ADVERTISE_STARTD") || !strings.Contains(err.Error(), "failed to send classad") {
		t.Errorf("the error is %v", err)
	}
}
