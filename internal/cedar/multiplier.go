package cedar

import "time"

// Multiplier makes time limits on sockets longer, for slow networks and machines
// (TIMEOUT_MULTIPLIER; condor_io/sock.cpp:timeout). Below 2 it changes nothing.
type Multiplier int

// longestTimeout bounds a limit that was made longer.
const longestTimeout = 10 * 365 * 24 * time.Hour

// Of returns the limit that holds in place of d.
func (m Multiplier) Of(d time.Duration) time.Duration {
	switch {
	case m <= 1 || d <= 0:
		return d
	case d > longestTimeout/time.Duration(m):
		return longestTimeout
	}
	return d * time.Duration(m)
}

// SetMultiplier makes the limits of later calls of SetTimeout longer.
func (s *Stream) SetMultiplier(m Multiplier) { s.multiplier.Store(int64(m)) }

// Longer returns the limit that SetTimeout makes of d.
func (s *Stream) Longer(d time.Duration) time.Duration {
	return Multiplier(s.multiplier.Load()).Of(d)
}
