package decision

import "time"

// DefaultPolicy is the policy that serves a pool well about which nothing else is
// known. It was chosen by simulation (docs/developer/provisioner-simulation.md).
var DefaultPolicy = Policy{
	Patience: time.Minute,
	Horizon:  30 * time.Minute,
	Start:    2 * time.Minute,
	Settle:   3 * time.Minute,
}

// DefaultIdle is after how long without a job a pod should end
// (STARTD_NOCLAIM_SHUTDOWN). It must be several times NEGOTIATOR_INTERVAL, since a
// pod that has come has to wait for the next cycle. Each pod wastes this time once,
// so that it decides more than anything else about what is wasted.
const DefaultIdle = 4 * time.Minute
