package agent

import (
	"bytes"
	"path/filepath"
	"strings"
)

// sampleV2 reads the files of cgroup version 2 (Linux,
// Documentation/admin-guide/cgroup-v2.rst). memory.peak exists since Linux 5.19, pids.peak
// since 6.11.
func (c *cgroup) sampleV2(s *cgroupSample) {
	dir := c.dirs[""]
	file := func(name string) string { return filepath.Join(dir, name) }
	s.memory = number(file("memory.current"))
	s.peak = number(file("memory.peak"))
	s.limit = number(file("memory.max"))
	memory := flatKeyed(file("memory.stat"))
	if anon, shmem := valueOr(memory, "anon", 1), valueOr(memory, "shmem", 1); anon >= 0 {
		s.used = anon + max(shmem, 0)
	}
	s.cache = withoutShared(valueOr(memory, "file", 1), valueOr(memory, "shmem", 1))
	s.oomKills = valueOr(flatKeyed(file("memory.events")), "oom_kill", 1)
	const microseconds = 1000
	cpu := flatKeyed(file("cpu.stat"))
	s.user = valueOr(cpu, "user_usec", microseconds)
	s.system = valueOr(cpu, "system_usec", microseconds)
	s.throttled = valueOr(cpu, "throttled_usec", microseconds)
	s.pids = number(file("pids.current"))
	s.pidsPeak = number(file("pids.peak"))
	s.readIO(readLimited(file("io.stat")))
}

// readIO sums io.stat over all devices: "8:0 rbytes=1 wbytes=2 rios=3 wios=4
// dbytes=5 dios=6". An empty file means that there was no I/O.
func (s *cgroupSample) readIO(data []byte) {
	if data == nil {
		return
	}
	s.readBytes, s.writeBytes, s.reads, s.writes = 0, 0, 0, 0
	sums := map[string]*int64{"rbytes": &s.readBytes, "wbytes": &s.writeBytes, "rios": &s.reads, "wios": &s.writes}
	for line := range bytes.Lines(data) {
		for _, field := range strings.Fields(string(line)) {
			key, value, _ := strings.Cut(field, "=")
			if sum, ok := sums[key]; ok {
				*sum += max(parseNumber(value), 0)
			}
		}
	}
}
