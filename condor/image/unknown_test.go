package image

import (
	"testing"
)

// TestUnknown: a name that only other sites know goes back to the queue at sites that say so. What the
// site forbids, and what can be an image nowhere, does not.
func TestUnknown(t *testing.T) {
	names := mapFile(t, `* known.sif docker.io/library/debian:12`)
	for name, tt := range map[string]struct {
		ad      string
		requeue outcome
		hold    outcome
	}{
		"a URL":           {`SingularityImage = "oras://registry.example.org/x:1"`, outcome{code: vacateContainerError}, outcome{code: holdInvalidImage, subcode: SubcodeNotInRegistry}},
		"a file":          {`SingularityImage = "other.sif"`, outcome{code: vacateContainerError}, outcome{code: holdInvalidImage, subcode: SubcodeNotInRegistry}},
		"one that is":     {`SingularityImage = "known.sif"`, outcome{image: "docker.io/library/debian:12"}, outcome{image: "docker.io/library/debian:12"}},
		"one denied":      {`SingularityImage = "docker://docker.io/bad/x:1"`, outcome{code: holdInvalidImage, subcode: SubcodeNotAllowed}, outcome{code: holdInvalidImage, subcode: SubcodeNotAllowed}},
		"no image at all": {`SingularityImage = "docker://A B"`, outcome{code: holdInvalidImage, subcode: SubcodeInvalidReference}, outcome{code: holdInvalidImage, subcode: SubcodeInvalidReference}},
	} {
		for word, want := range map[string]outcome{UnknownRequeue: tt.requeue, UnknownHold: tt.hold, "": tt.hold} {
			t.Run(name+"/"+word, func(t *testing.T) {
				s := mustSite(t, map[string]string{KnobMap: names, KnobDenied: "docker.io/bad/*", KnobUnknown: word})
				check(t, s, mustAd(t, tt.ad), mustAd(t, ""), want)
			})
		}
	}
	t.Run("a path", func(t *testing.T) {
		s := mustSite(t, map[string]string{KnobCarrier: "registry.example.org/carrier:1", KnobPaths: "/cvmfs", KnobUnknown: UnknownRequeue})
		check(t, s, mustAd(t, `SingularityImage = "/elsewhere/x"`), mustAd(t, ""), outcome{code: vacateContainerError})
	})
	t.Run("the site's own default", func(t *testing.T) {
		s := mustSite(t, map[string]string{KnobDefault: `("oras://" + "x")`, KnobUnknown: UnknownRequeue})
		check(t, s, mustAd(t, ""), mustAd(t, ""), outcome{mistake: KnobDefault})
	})
	if _, err := parseUnknown("drop"); err == nil {
		t.Error("any word is taken")
	}
}
