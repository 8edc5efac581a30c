package startd

import (
	"fmt"

	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
)

// Vacate is a startd's order to end the job, command STARTER_VACATE_JOB. The
// order is the same for removal, hold and eviction by the submit side: only the
// shadow knows which it is.
type Vacate struct {
	Reason        string
	Code, Subcode int
	// Soft lets the job end by itself after a signal.
	Soft bool
}

// ShouldVacate reports whether the job goes back to the queue; otherwise the
// startd wants it on hold.
func (v Vacate) ShouldVacate() bool { return shadow.ShouldVacate(v.Code, v.Subcode) }

// maxReason bounds the reason in bytes; longer ones are cut.
const maxReason = 8 << 10

// ReadVacate reads the payload of STARTER_VACATE_JOB (1500), which was
// STARTER_HOLD_JOB before 24.9.2. The caller must answer with the number 1
// before it acts on the order
// (condor_starter.V6.1/starter.cpp:remoteVacateCommand).
func ReadVacate(s *cedar.Stream) (Vacate, error) {
	var v Vacate
	var err error
	if v.Reason, err = s.GetString(); err != nil {
		return v, fmt.Errorf("reading an order to vacate: %w", err)
	}
	if len(v.Reason) > maxReason {
		v.Reason = v.Reason[:maxReason]
	}
	var soft int
	for _, n := range []*int{&v.Code, &v.Subcode, &soft} {
		if *n, err = s.GetInt32(); err != nil {
			return v, fmt.Errorf("reading an order to vacate: %w", err)
		}
	}
	v.Soft = soft != 0
	if err := s.EndOfMessage(); err != nil {
		return v, fmt.Errorf("reading an order to vacate: %w", err)
	}
	return v, nil
}

// ReadSignal reads the payload of DC_RAISESIGNAL (60000): the number of a
// signal of the operating system or, from 100 on, of a signal between daemons,
// such as [cedar.DCSigSuspend]. It is not answered.
func ReadSignal(s *cedar.Stream) (int, error) {
	n, err := s.GetInt32()
	if err == nil {
		err = s.EndOfMessage()
	}
	if err == nil && n <= 0 {
		err = fmt.Errorf("%d is not a signal", n)
	}
	if err != nil {
		return 0, fmt.Errorf("reading a signal: %w", err)
	}
	return n, nil
}
