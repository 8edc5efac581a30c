package agent

import (
	"bytes"
	"path/filepath"
	"strings"
)

// noLimit is the least value of memory.limit_in_bytes that means "no limit":
// the kernel shows the largest multiple of the page size, which is at most 64
// KiB.
const noLimit = 1<<63 - 1<<16

// sampleV1 reads the files of cgroup version 1 (Linux,
// Documentation/admin-guide/cgroup-v1/). oom_kill exists since Linux 4.13.
func (c *cgroup) sampleV1(s *cgroupSample) {
	file := func(controller, name string) string {
		dir, ok := c.dirs[controller]
		if !ok {
			return ""
		}
		return filepath.Join(dir, name)
	}
	s.memory = number(file("memory", "memory.usage_in_bytes"))
	s.peak = number(file("memory", "memory.max_usage_in_bytes"))
	if s.limit = number(file("memory", "memory.limit_in_bytes")); s.limit >= noLimit {
		s.limit = -1
	}
	memory := flatKeyed(file("memory", "memory.stat"))
	if rss, shmem := valueOr(memory, "total_rss", 1), valueOr(memory, "total_shmem", 1); rss >= 0 {
		s.used = rss + max(shmem, 0)
	}
	s.cache = withoutShared(valueOr(memory, "total_cache", 1), valueOr(memory, "total_shmem", 1))
	s.oomKills = valueOr(flatKeyed(file("memory", "memory.oom_control")), "oom_kill", 1)
	s.user = number(file("cpuacct", "cpuacct.usage_user"))
	s.system = number(file("cpuacct", "cpuacct.usage_sys"))
	s.throttled = valueOr(flatKeyed(file("cpu", "cpu.stat")), "throttled_time", 1)
	s.pids = number(file("pids", "pids.current"))
	s.pidsPeak = number(file("pids", "pids.peak"))
	s.readBytes, s.writeBytes = readBlkio(readLimited(file("blkio", "blkio.throttle.io_service_bytes_recursive")))
	s.reads, s.writes = readBlkio(readLimited(file("blkio", "blkio.throttle.io_serviced_recursive")))
}

// withoutShared subtracts shared memory from page cache: the kernel counts it as both.
func withoutShared(cache, shmem int64) int64 {
	if cache < 0 {
		return -1
	}
	return max(0, cache-max(shmem, 0))
}

// readBlkio sums lines of "8:0 Read 1" and "8:0 Write 2" over all devices.
func readBlkio(data []byte) (read, write int64) {
	if data == nil {
		return -1, -1
	}
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			continue
		}
		switch n := max(parseNumber(fields[2]), 0); fields[1] {
		case "Read":
			read += n
		case "Write":
			write += n
		}
	}
	return read, write
}
