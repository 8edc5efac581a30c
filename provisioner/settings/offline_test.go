package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOffline(t *testing.T) {
	got, err := Read(write(t, "name: site\nmode: offline-ads\npolicy: {settle: 5m}\nlimits: {pods: 9}\noffline: {spare: 3, lifetime: 1h, wakeWithin: 5m}\n"))
	if err != nil || !got.OfflineAds || got.Policy.Settle != 5*time.Minute {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(Offline{Spare: 3, Lifetime: time.Hour, WakeWithin: 5 * time.Minute}, got.Offline); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got, err := Read(write(t, "name: site\nmode: demand\n")); err != nil || got.OfflineAds {
		t.Errorf("%+v, %v", got, err)
	}
}

// What the negotiator would not obey is refused.
func TestOfflineMistakes(t *testing.T) {
	_, err := Read(write(t, `name: site
mode: offline-ads
filter: ProjectName isnt undefined
schedds: [ap1]
runtime: MaxRuntime
limits: {perUser: 5}
policy: {patience: 1m}
offline: {spare: 501, lifetime: 1s, wakeWithin: never}
`))
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, want := range []string{"no filter; say it in START", "no schedds", "no runtime", "no limits.perUser", "no policy, except settle", "offline.spare is 501", `offline.lifetime is "1s"`, `offline.wakeWithin is "never"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%s", want, err)
		}
	}
	if _, err := Read(write(t, "name: site\nmode: cron\n")); err == nil || !strings.Contains(err.Error(), `mode is "cron"; it must be demand or offline-ads`) {
		t.Errorf("another mode: %v", err)
	}
	for _, mode := range []string{"", "mode: demand\n"} {
		if _, err := Read(write(t, "name: site\n"+mode+"offline: {spare: 5}\n")); err == nil || !strings.Contains(err.Error(), "offline.spare is 5, and has no effect in the mode demand; take it out, or write mode: offline-ads") {
			t.Errorf("spare ads in the mode demand: %v", err)
		}
	}
	if _, err := Read(write(t, "name: site\noffline: {lifetime: 1h, wakeWithin: 5m}\n")); err != nil {
		t.Errorf("what condor_rooster needs, in the mode demand: %v", err)
	}
	if _, err := Read(write(t, "name: site\nmode: demand\nfilter: true\nschedds: [a]\nlimits: {perUser: 5}\n")); err != nil {
		t.Errorf("the mode demand: %v", err)
	}
}
