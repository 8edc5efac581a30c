package job

import (
	"errors"
	"fmt"
	"math"
	"time"

	"podstarter/classads"
)

// ErrMissed is in the error chain if a job cannot start at the time that it asks
// for.
var ErrMissed = errors.New("the job cannot start at the time that it asks for")

// Deferral returns how long to delay a job's start: 0 if the job asks for no
// time, or is late but within its DeferralWindow. Errors wrap [ErrMissed]
// (condor_starter.V6.1/starter.cpp:jobWaitUntilExecuteTime).
func Deferral(ad *classads.Ad, now time.Time) (time.Duration, error) {
	if _, ok := ad.Lookup("DeferralTime"); !ok {
		return 0, nil
	}
	at, err := ad.GetInt("DeferralTime")
	if err != nil || at <= 0 || at > maxDeferral {
		return 0, fmt.Errorf("%w: DeferralTime is not a time in seconds since 1970", ErrMissed)
	}
	// DeferralOffset: seconds that this machine's clock is ahead of the submit
	// side's.
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

// maxDeferral bounds times in seconds, so that the difference of two fits into a
// [time.Duration].
const maxDeferral = int64(math.MaxInt64/time.Second) / 4
