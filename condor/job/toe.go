package job

import (
	"syscall"
	"time"

	"podstarter/classads"
	"podstarter/condor/version"
)

// attrToE is the ticket of execution, which says how a job ended. Releases from
// 24.8 on do not have it; older shadows write it into the event log ("Job
// terminated of its own accord at ...").
const attrToE = "ToE"

// WantsToE reports whether a starter of this version sends it.
func WantsToE(starter version.Version) bool { return !starter.AtLeast(24, 8, 0) }

// PublishToE writes the ticket for a job that ended by itself
// (condor_starter.V6.1/os_proc.cpp:OsProc::JobReaper of 23.9,
// condor_utils/ToE.cpp).
func PublishToE(ad *classads.Ad, status syscall.WaitStatus, ended time.Time) {
	toe := classads.NewAd()
	toe.SetString("Who", "itself")
	toe.SetString("How", "OF_ITS_OWN_ACCORD")
	toe.SetInt("HowCode", 0)
	toe.SetInt("When", ended.Unix())
	toe.SetBool("ExitBySignal", status.Signaled())
	if status.Signaled() {
		toe.SetInt("ExitSignal", int64(status.Signal()))
	} else {
		toe.SetInt("ExitCode", int64(status.ExitStatus()))
	}
	ad.SetAd(attrToE, toe)
}

// ForwardToE copies the ticket that the startd appended to the job's ad in the
// sandbox when it was told to end the job. The job can write there as well, so
// only attributes of a ticket are copied.
func ForwardToE(ad, fromSandbox *classads.Ad) {
	told, err := fromSandbox.GetAd(attrToE)
	if err != nil {
		return
	}
	toe := classads.NewAd()
	for _, name := range []string{"Who", "How"} {
		text, err := told.GetString(name)
		if err != nil || len(text) > maxToEWord {
			return
		}
		toe.SetString(name, text)
	}
	for _, name := range []string{"HowCode", "When"} {
		n, err := told.GetInt(name)
		if err != nil {
			return
		}
		toe.SetInt(name, n)
	}
	ad.SetAd(attrToE, toe)
}

const maxToEWord = 256
