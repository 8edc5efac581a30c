package job

import (
	"errors"
	"fmt"
	"math"
	"time"

	"podstarter/classads"
)

// ErrMissed is in the chain of the error of a job whose time to start cannot be
// kept.
var ErrMissed = errors.New("the job cannot start at the time that it asks for")

// Deferral returns how long a job's start is to be put off: 0 for one that asks
// for no time, and for one that is late within its DeferralWindow. The errors are
// [ErrMissed] (condor_starter.V6.1/starter.cpp:jobWaitUntilExecuteTime).
func Deferral(ad *classads.Ad, now time.Time) (time.Duration, error) {
	if _, ok := ad.Lookup("DeferralTime"); !ok {
		return 0, nil
	}
	at, err := ad.GetInt("DeferralTime")
	if err != nil || at <= 0 || at > maxDeferral {
		return 0, fmt.Errorf("%w: DeferralTime is no time in seconds since 1970", ErrMissed)
	}
	// DeferralOffset is by how much the clock of this machine is ahead of the
	// submit side's.
	offset := max(-maxDeferral, min(ad.IntOr("DeferralOffset", 0), maxDeferral))
	wait := at - (now.Unix() - offset)
	if wait >= 0 {
		return time.Duration(wait) * time.Second, nil
	}
	if window := ad.IntOr("DeferralWindow", 0); -wait > window {
		return 0, fmt.Errorf("%w: it is %d s late, and DeferralWindow allows %d s", ErrMissed, -wait, window)
	}
	return 0, nil
}

// maxDeferral bounds a time in seconds, so that a difference of two is a
// [time.Duration].
const maxDeferral = int64(math.MaxInt64/time.Second) / 4
