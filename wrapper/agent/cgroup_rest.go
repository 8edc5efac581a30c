package agent

import "path/filepath"

// sampleRest reads all but memory, each controller where it is: a machine may have some in
// version 1 and others in version 2.
func (c *cgroup) sampleRest(s *cgroupSample) {
	if c.dirs["cpuacct"] == "" && c.dirs["cpu"] == "" {
		c.cpuV2(s)
	} else {
		c.cpuV1(s)
	}
	if c.dirs["blkio"] == "" {
		s.readIO(readLimited(c.file("", "io.stat")))
	} else {
		s.readBytes, s.writeBytes = readBlkio(readLimited(c.file("blkio", "blkio.throttle.io_service_bytes_recursive")))
		s.reads, s.writes = readBlkio(readLimited(c.file("blkio", "blkio.throttle.io_serviced_recursive")))
	}
	s.pids = number(c.pidsFile("pids.current"))
	s.pidsPeak = number(c.pidsFile("pids.peak"))
	// Before Linux 6.11, and in version 1, the group of the one that asked for a process counts;
	// since then, in version 2, the group whose limit was reached.
	s.pidsRefused = valueOr(flatKeyed(c.pidsFile("pids.events")), "max", 1)
}

// file is a file of a controller; empty if the group has none.
func (c *cgroup) file(controller, name string) string {
	dir, ok := c.dirs[controller]
	if !ok {
		return ""
	}
	return filepath.Join(dir, name)
}

// pidsFile is a file of the controller of processes; both versions have the same ones.
func (c *cgroup) pidsFile(name string) string {
	if c.dirs["pids"] != "" {
		return c.file("pids", name)
	}
	return c.file("", name)
}

// cpuV1 reads the files of cgroup version 1 (Linux, Documentation/scheduler/sched-bwc.rst,
// Documentation/admin-guide/cgroup-v1/cpuacct.rst).
func (c *cgroup) cpuV1(s *cgroupSample) {
	s.user = number(c.file("cpuacct", "cpuacct.usage_user"))
	s.system = number(c.file("cpuacct", "cpuacct.usage_sys"))
	cpu := flatKeyed(c.file("cpu", "cpu.stat"))
	s.throttled = valueOr(cpu, "throttled_time", 1)
	s.periods, s.throttledPeriods = valueOr(cpu, "nr_periods", 1), valueOr(cpu, "nr_throttled", 1)
}

// cpuV2 reads cpu.stat (Linux, Documentation/admin-guide/cgroup-v2.rst). The figures about
// throttling are there if the controller is enabled for the group. pids.peak exists since
// Linux 6.11.
func (c *cgroup) cpuV2(s *cgroupSample) {
	const microseconds = 1000
	cpu := flatKeyed(c.file("", "cpu.stat"))
	s.user = valueOr(cpu, "user_usec", microseconds)
	s.system = valueOr(cpu, "system_usec", microseconds)
	s.throttled = valueOr(cpu, "throttled_usec", microseconds)
	s.periods, s.throttledPeriods = valueOr(cpu, "nr_periods", 1), valueOr(cpu, "nr_throttled", 1)
}
