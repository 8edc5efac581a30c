package job

import (
	"strings"

	"podstarter/classads"
	"podstarter/condor/config"
)

func afterColon(s string) string {
	_, rest, _ := strings.Cut(s, ":")
	rest, _, _ = strings.Cut(rest, ":")
	return rest
}

// Provisioned is the first update of an activation: what the slot has for the
// job (condor_starter.V6.1/starter.cpp:Starter::WriteAdFiles).
func Provisioned(machine *classads.Ad) *classads.Ad {
	ad := classads.NewAd()
	list, err := machine.GetString("MachineResources")
	if err == nil {
		ad.SetString("ProvisionedResources", list)
	} else {
		list = defaultResources
	}
	for _, tag := range config.Split(list) {
		if e, ok := machine.Lookup(tag); ok {
			ad.Insert(tag+"Provisioned", e)
		}
		if e, ok := machine.Lookup("Assigned" + tag); ok {
			ad.Insert("Assigned"+tag, e)
		}
	}
	return ad
}

// Starter is what the starter tells the shadow about itself.
type Starter struct {
	Address          string // StarterIpAddr and MyAddress
	Scratch          string
	Version          string // $CondorVersion: ... $
	Platform         string // $CondorPlatform: ... $
	Machine          string // host name
	UIDDomain        string
	FilesystemDomain string
	Now              int64 // seconds since the epoch
}

// Registration is the ad of the register_starter_info call and, without the
// slot's ad, the reply to a reconnect
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::publishStarterInfo,
// registerStarterInfo).
func Registration(s Starter, job, machine *classads.Ad, withSlot bool) *classads.Ad {
	ad := classads.NewAd()
	ad.SetString("UidDomain", s.UIDDomain)
	ad.SetString("FileSystemDomain", s.FilesystemDomain)
	ad.SetString("Name", machine.StringOr("Name", ""))
	ad.SetString("StarterIpAddr", s.Address)
	if s.Scratch != "" {
		ad.SetString("CondorScratchDir", s.Scratch)
	}
	copyResources(ad, machine)
	for _, name := range config.Split(job.StringOr("UserLogExecuteEventAttrs", "")) {
		if e, ok := machine.Lookup(name); ok && !ad.Has(name) {
			ad.Insert(name, e)
		}
	}
	ad.SetBool("HasReconnect", true)
	ad.SetString("Machine", s.Machine)
	ad.SetString("CondorVersion", s.Version)
	ad.SetString("CondorPlatform", s.Platform)
	ad.SetString("MyAddress", s.Address)
	ad.SetInt("MyCurrentTime", s.Now)
	if withSlot {
		ad.SetAd("SlotAd", machine)
	}
	return ad
}

// copyResources copies the amounts of the machine's resources and, for resources
// that consist of single devices, such as GPUs, the ads of the devices
// (condor_utils/compat_classad_util.cpp:CopyMachineResources).
func copyResources(ad, machine *classads.Ad) {
	list, err := machine.GetString("MachineResources")
	if err == nil {
		ad.SetString("MachineResources", list)
	} else {
		list = defaultResources
	}
	for _, tag := range config.Split(list) {
		if e, ok := machine.Lookup(tag); ok {
			ad.Insert(tag, e)
		}
		e, ok := machine.Lookup("Available" + tag)
		if !ok {
			continue
		}
		ad.Insert("Available"+tag, e)
		for _, name := range deviceNames(machine, tag, e) {
			if e, ok := machine.Lookup(name); ok {
				ad.Insert(name, e)
			}
		}
	}
}

// deviceNames returns the attributes that a list of devices refers to, such as {
// GPUs_GPU_1234abcd }.
func deviceNames(machine *classads.Ad, tag string, list *classads.Expr) []string {
	var names []string
	text := strings.ToLower(list.OldString())
	for name := range machine.All() {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, strings.ToLower(tag)+"_") && containsWord(text, lower) {
			names = append(names, name)
		}
	}
	return names
}

// containsWord reports whether an expression's text has a name as a whole word.
func containsWord(text, name string) bool {
	part := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] == '_' || text[i] >= '0' && text[i] <= '9' || text[i] >= 'a' && text[i] <= 'z')
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		i += from
		if !part(i-1) && !part(i+len(name)) {
			return true
		}
		from = i + 1
	}
}
