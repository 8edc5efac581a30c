package changes

import (
	"log/slog"
	"strings"
	"testing"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/offline"
	"podstarter/provisioner/round"
)

func TestOfflineAds(t *testing.T) {
	var words strings.Builder
	log := New(slog.New(slog.NewJSONHandler(&words, nil)))
	said := func(rep round.Report, want ...string) {
		t.Helper()
		words.Reset()
		log.Round(rep, nil)
		for _, w := range want {
			if !strings.Contains(words.String(), w) {
				t.Errorf("it does not say %s:\n%s", w, words.String())
			}
		}
		if len(want) == 0 && words.Len() > 0 {
			t.Errorf("it says\n%s", words.String())
		}
	}
	rep := round.Report{Shapes: []string{"t/a", "t/b"}, Offline: &offline.Output{
		Keep: []offline.Kept{{Role: offline.Coming}, {Role: offline.Stuck}}, New: []int{2, 0}, Refused: []string{"", "the limit is reached"},
	}}
	said(rep, `"spare":2,"coming":1,"stuck":1`, `"A shape has no offline ads","shape":"t/b","reason":"the limit is reached"`)
	said(rep)
	rep.Offline.Refused[1] = ""
	rep.Input.Pods = []decision.Pod{{ID: "p"}}
	rep.Withdrawn, rep.Offline.Withdraw = []string{"p"}, []decision.Withdrawal{{Pod: 0, Why: "no match"}}
	said(rep, `"A shape has offline ads again","shape":"t/b"`, `"A pod is withdrawn","pod":"p","reason":"no match"`)
}
