package template

import (
	"fmt"
	"strings"

	"podstarter/classads"
)

// base is what the slots of every execution point of ours have. The site's own
// lines are added, and replace it. condor_submit writes the version of HTCondor
// into the Requirements of each job (HTCondor src/condor_utils/submit_utils.cpp:
// SetRequirements): with none, they would be an error. This one is the oldest that
// we support.
var base = func() *classads.Ad {
	ad, err := classads.ParseOld(`MyType = "Machine"
Arch = "X86_64"
OpSys = "LINUX"
CondorVersion = "$CondorVersion: 23.9.6 2024-08-08 $"
State = "Unclaimed"
Activity = "Idle"
HasFileTransfer = true
HasJobDeferral = true
HasReconnect = true
HasPodStarter = true
HasContainer = true
HasDocker = true
HasDockerURL = true
HasTransferInputRemaps = true
HasSelfCheckpointTransfers = true
HasPerFileEncryption = true
HasOsUser = true
HasSshd = true
HasIOProxy = true
HasJobNetworking = true
HasJobTransferPlugins = true
HasCommonFilesTransfer = 2
HasFileTransferPluginMethods = "data,http,https"
START = true
Requirements = START && WithinResourceLimits
Rank = 0
`)
	if err != nil {
		panic(err) // the text is above
	}
	return ad
}()

// Slot returns the ad that a slot of a new pod would have. seen is what a slot of
// another pod of the template advertised, or nil: versions, abilities and START of
// an execution point are better than what the site says of it. START is that of
// one size, so that it counts only for pods of the same shape, and for a while. The site's own START
// must hold in any case: no ad of an execution point widens it.
func (t Template) Slot(s Shape, seen *Seen) *classads.Ad {
	ad := base.Clone()
	if t.Version != "" {
		ad.SetString("CondorVersion", t.Version)
	}
	ad.Insert("WithinResourceLimits", t.limits(s))
	ad.SetBool("PartitionableSlot", t.Partitionable)
	ad.SetString("SlotType", map[bool]string{true: "Partitionable", false: "Static"}[t.Partitionable])
	ad.Update(t.slot)
	if seen != nil {
		said := ad.Clone()
		ad.Update(seen.ad)
		switch site, own := t.slot.Lookup("START"); {
		case seen.Shape != s.Name, seen.Old:
			for _, name := range []string{"START", classads.AttrRequirements, "WithinResourceLimits"} {
				if e, ok := said.Lookup(name); ok {
					ad.Insert(name, e)
				}
			}
		case own:
			ad.Insert(classads.AttrRequirements, both(ad, site))
		}
	}
	whole := t.SlotSize(s)
	size := [...]int64{whole.CPUs, whole.Memory, whole.Disk, whole.GPUs}
	for i, name := range sizes {
		for _, prefix := range prefixes {
			ad.SetInt(prefix+name, size[i])
		}
	}
	if t.contained {
		ad.SetInt("Payloads", s.Pod.Payloads)
		ad.SetInt("TotalSlotPayloads", s.Pod.Payloads)
	}
	if seen != nil {
		if list := seen.available(whole.GPUs); list != nil {
			ad.Insert("AvailableGPUs", list)
		}
	}
	return ad
}

// limits is what a job may request of a slot: what one payload container has. The
// startd adds such an expression to the Requirements of a slot (HTCondor
// src/condor_startd.V6/Reqexp.cpp: WithinResourceLimits), and
// condor_config.d/55-podstarter-size.conf says the same of a partitionable one, from
// which memory is cut in pieces. There a job takes all GPUs of its container.
func (t Template) limits(s Shape) *classads.Expr {
	size, memory, gpus := s.Size, "(TARGET.RequestMemory ?: 0)", "<="
	if t.contained {
		size.Disk = s.Pod.Disk // a volume of all containers
		memory, gpus = fmt.Sprintf("quantize(TARGET.RequestMemory ?: 0, {%d})", piece), "=="
	}
	e, err := classads.ParseExpr(fmt.Sprintf("(TARGET.RequestCpus ?: 1) <= %d && %s <= %d && (TARGET.RequestDisk ?: 0) <= %d && (TARGET.RequestGPUs ?: 0) %s %d",
		size.CPUs, memory, size.Memory, size.Disk, gpus, size.GPUs))
	if err != nil {
		panic(err) // the text is above
	}
	return e
}

// both returns an expression that holds if the ad's Requirements do, and another
// expression.
func both(ad *classads.Ad, other *classads.Expr) *classads.Expr {
	mine, ok := ad.Lookup(classads.AttrRequirements)
	if !ok {
		return other
	}
	e, err := classads.ParseExpr("(" + mine.String() + ") && (" + other.String() + ")")
	if err != nil {
		// Both are expressions; only their length together can be too much.
		return classads.BoolExpr(false)
	}
	return e
}

// sizes and prefixes make the names of the attributes that say how large a slot
// is, in the order of resources.Amount.
var (
	sizes    = [...]string{"Cpus", "Memory", "Disk", "GPUs"}
	prefixes = [...]string{"", "Total", "TotalSlot"}
)

// isSize reports whether a name is one of them.
func isSize(name string) bool {
	for _, s := range sizes {
		for _, p := range prefixes {
			if strings.EqualFold(name, p+s) {
				return true
			}
		}
	}
	return false
}
