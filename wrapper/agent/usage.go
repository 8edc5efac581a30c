package agent

import (
	"os"
	"time"

	"podstarter/payload"
)

// tick is the unit of CPU time in /proc, USER_HZ, which is 100 on every
// architecture Go runs on (times(2), sysconf(_SC_CLK_TCK)).
const tick = time.Second / 100

// usage looks at the payload.
func (a *agent) usage() *payload.ContainerUsage {
	u := &payload.ContainerUsage{Time: time.Now().UTC()}
	if r := a.run; r != nil {
		u.UserCPU, u.SystemCPU, u.MaxRSS = r.userCPU, r.systemCPU, r.largestResident()
		u.Cgroup = a.cgroupUsage(r)
	}
	f := a.target.Load()
	if f == nil {
		return u
	}
	members, err := f.All()
	if err != nil {
		a.log.print("look at the payload: %v", err)
	}
	for _, p := range members {
		if !p.Dead() {
			u.Processes++
			u.Threads += p.Threads
		}
		u.RSS += p.ResidentPages * int64(os.Getpagesize())
		u.ImageSize += int64(p.VirtualBytes)
		u.UserCPU += time.Duration(p.UserTicks+p.WaitedUserTicks) * tick
		u.SystemCPU += time.Duration(p.SystemTicks+p.WaitedSystemTicks) * tick
	}
	return u
}
