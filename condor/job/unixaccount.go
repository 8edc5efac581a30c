package job

import (
	"net"
	"slices"
	"strings"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Origin is where a job comes from, by which the stock starter chooses its account.
type Origin struct {
	Slot       string // the slot's id, "slot1_1"
	SubmitHost string // as the startd names it: a name or an address
	Local      bool   // the shadow speaks from an address of this machine
}

// IsLocal reports whether an address is one of this machine, as a pod sees it
// (condor_utils/condor_sockaddr.cpp:addr_is_local).
func IsLocal(address net.Addr) bool {
	peer, ok := address.(*net.TCPAddr)
	if !ok {
		return false
	}
	own, err := net.InterfaceAddrs()
	return peer.IP.IsLoopback() || err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(peer.IP)
	})
}

// UnixAccount names the account that the stock starter, run by root, would run the job as
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::initUserPriv). A payload has no account:
// the name is that of files which a site keeps for its accounts. i.Owner may be empty, and
// then so may be the name. A knob that cannot be understood counts as if it was not set.
func UnixAccount(ad *classads.Ad, i Info, o Origin, cfg *config.Config) string {
	allowed, _ := cfg.EvalBool("STARTER_ALLOW_RUNAS_OWNER", true, nil, ad)
	if allowed && ad.BoolOr("RunAsOwner", true) && sameUIDDomain(ad, o, cfg) {
		return i.Owner
	}
	slot := o.Slot
	if len(slot) <= len("slot") {
		slot = "slot1"
	}
	account := cfg.String(strings.ToUpper(slot)+"_USER", cfg.String("NOBODY_SLOT_USER", "nobody"))
	if account == "root" {
		return "nobody"
	}
	return account
}

// sameUIDDomain reports whether the job's owner has an account of that name here
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::sameUidDomain).
func sameUIDDomain(ad *classads.Ad, o Origin, cfg *config.Config) bool {
	own := cfg.String("UID_DOMAIN", "")
	if theirs, err := ad.GetString("UidDomain"); err != nil || !strings.EqualFold(theirs, own) {
		return false
	}
	if local, _ := cfg.Bool("TRUST_LOCAL_UID_DOMAIN", true); local && o.Local {
		return true
	}
	if all, _ := cfg.Bool("TRUST_UID_DOMAIN", false); all {
		return true
	}
	// condor_utils/internet.cpp:host_in_domain
	host, domain := strings.ToLower(o.SubmitHost), strings.ToLower(own)
	return host == domain || strings.HasSuffix(host, "."+strings.TrimPrefix(domain, "."))
}
