package classads

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPublic(t *testing.T) {
	private := []string{"Capability", "ChildClaimIds", "ClaimId", "ClaimIdList", "ClaimIds", "TransferKey", "_condor_priv", "_condor_PRIVATE_x",
		"CAPABILITY", "childclaimids", "CLAIMid", "claimidlist", "CLAIMIDS", "transferKEY", "_Condor_Priv_Y"}
	public := []string{"PublicClaimId", "ClaimIdX", "Claim", "", "_condor_pri", "x_condor_priv", "TransferKeys", "Name"}
	ad := NewAd()
	want := NewAd()
	for _, name := range private {
		if !IsPrivate(name) {
			t.Errorf("%q is not private", name)
		}
		ad.SetString(name, "secret")
	}
	for i, name := range public {
		if IsPrivate(name) {
			t.Errorf("%q is private", name)
		}
		ad.SetInt(name, int64(i))
		want.SetInt(name, int64(i))
	}
	nested := NewAd()
	nested.SetString("ClaimId", "nested ads are copied as they are")
	ad.SetAd("Nested", nested)
	want.SetAd("Nested", nested)
	before := ad.FormatOld()
	shown := ad.Public()
	if diff := cmp.Diff(want.FormatOld(), shown.FormatOld()); diff != "" {
		t.Error(diff)
	}
	shown.SetInt("Name", -1)
	shown.Delete("Claim")
	if diff := cmp.Diff(before, ad.FormatOld()); diff != "" {
		t.Errorf("the ad has changed: %s", diff)
	}
}
