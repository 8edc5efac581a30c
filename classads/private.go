package classads

// privatePrefix begins the names of private attributes that newer releases add.
const privatePrefix = "_condor_priv"

// IsPrivate tells whether an attribute of this name holds a secret that
// HTCondor's daemons do not show to anyone else, such as ClaimId
// (HTCondor src/condor_utils/compat_classad.cpp:ClassAdAttributeIsPrivateAny).
func IsPrivate(name string) bool {
	if len(name) >= len(privatePrefix) && equalFold(name[:len(privatePrefix)], privatePrefix) {
		return true
	}
	for _, private := range [...]string{"Capability", "ChildClaimIds", "ClaimId", "ClaimIdList", "ClaimIds", "TransferKey"} {
		if equalFold(name, private) {
			return true
		}
	}
	return false
}

// Public returns a copy of the ad without its private attributes, see
// [IsPrivate]. Like HTCondor, it looks only at the names of the ad's own
// attributes: it copies nested ads with all that they have.
func (a *Ad) Public() *Ad {
	public := NewAd()
	public.Grow(len(a.attrs))
	for i := range a.attrs {
		if !IsPrivate(a.attrs[i].name) {
			public.set(a.attrs[i].name, a.attrs[i].n)
		}
	}
	return public
}
