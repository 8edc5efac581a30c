package cedar

import (
	"fmt"
	"strings"
)

// Level is the permission that a peer needs to run a command
// (condor_includes/condor_perms.h: DCpermission).
type Level int

// The levels of HTCondor; their numbers are its own.
const (
	Allow           Level = 0 // everybody
	Read            Level = 1
	Write           Level = 2
	Negotiator      Level = 3
	Administrator   Level = 4
	Config          Level = 5
	Daemon          Level = 6
	ClientLevel     Level = 9 // what a client demands of a server
	AdvertiseStartd Level = 10
	AdvertiseSchedd Level = 11
	AdvertiseMaster Level = 12
)

var levelNames = [...]string{
	Allow: "ALLOW", Read: "READ", Write: "WRITE", Negotiator: "NEGOTIATOR", Administrator: "ADMINISTRATOR",
	Config: "CONFIG", Daemon: "DAEMON", ClientLevel: "CLIENT", AdvertiseStartd: "ADVERTISE_STARTD",
	AdvertiseSchedd: "ADVERTISE_SCHEDD", AdvertiseMaster: "ADVERTISE_MASTER",
}

// String returns the name that the configuration uses.
func (l Level) String() string {
	if l >= 0 && int(l) < len(levelNames) && levelNames[l] != "" {
		return levelNames[l]
	}
	return fmt.Sprintf("level %d", int(l))
}

// Levels is a set of levels.
type Levels uint32

// LevelsOf returns the set of the levels given and of those they imply.
func LevelsOf(levels ...Level) Levels {
	set := Levels(1 << Allow)
	for _, l := range levels {
		if l < 0 || l > AdvertiseMaster {
			continue
		}
		set |= 1 << l
		switch l {
		case Daemon, Administrator:
			set |= 1<<Write | 1<<Read
		case Write, Negotiator, Config, AdvertiseStartd, AdvertiseSchedd, AdvertiseMaster:
			set |= 1 << Read
		}
	}
	return set
}

// Has reports whether the set holds a level. Every set holds Allow.
func (s Levels) Has(l Level) bool {
	return l == Allow || l > 0 && l <= AdvertiseMaster && s&(1<<l) != 0
}

// String lists the levels.
func (s Levels) String() string {
	var names []string
	for l := Allow; l <= AdvertiseMaster; l++ {
		if s&(1<<l) != 0 {
			names = append(names, l.String())
		}
	}
	return strings.Join(names, ",")
}
