// Package memcg reads the memory figures of a payload's control group, and watches them for
// a starter. The wrapper opens the files in its container and passes them on; the kernel
// then answers whoever holds them. So a starter can look, at its own pace, at a group
// in which the kernel has killed everything: with version 2 and memory.oom.group, which the
// kubelet sets, that includes the wrapper.
//
// The package is used on both sides of the socket, and therefore imports only the standard
// library, golang.org/x/sys and rescue, which has the same restriction.
package memcg

import (
	"bytes"
	"strconv"
	"strings"
)

// Figures are one reading, in bytes unless said otherwise. A figure that the kernel does not
// offer, and a limit that is not set, is -1.
type Figures struct {
	Current int64 // all that is charged, page cache included
	Peak    int64 // the highest Current that the kernel saw
	Limit   int64 // the least of the group's own and those of groups above it that can be seen

	Anon   int64 // anonymous memory, which only swapping or killing gets back
	Shared int64 // shared memory: tmpfs, System V, anonymous mappings that are shared
	Cache  int64 // page cache without Shared; the kernel frees it before it kills anything
	Kernel int64 // the kernel's own memory for the group: page tables, sockets, inodes …
	Swap   int64 // swapped out

	Hits     int64 // times that an allocation was about to fail at this group's limit (version 2)
	High     int64 // times that memory.high slowed the group down (version 2)
	OOMKills int64 // processes of the group that the kernel killed for want of memory, for whichever limit
}

// None are figures of which none is known.
func None() Figures { return Figures{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1} }

// Own is anonymous and shared memory; -1 if it is not known.
func (f Figures) Own() int64 {
	if f.Anon < 0 {
		return -1
	}
	return f.Anon + max(f.Shared, 0)
}

// Files of a memory control group.
const (
	current1 = "memory.usage_in_bytes"
	peak1    = "memory.max_usage_in_bytes"
	limit1   = "memory.limit_in_bytes"
	oom1     = "memory.oom_control"

	current2 = "memory.current"
	// Peak2 takes a write since Linux 6.12: whoever reads through the same open file
	// then gets the highest use since.
	Peak2   = "memory.peak"
	limit2  = "memory.max"
	events2 = "memory.events"
	swap2   = "memory.swap.current"

	stat = "memory.stat"
)

// Names are the files of a version, 1 or 2, that [Read] reads; a kernel may lack some.
func Names(version int) []string {
	if version == 1 {
		return []string{current1, stat, peak1, limit1, oom1}
	}
	return []string{current2, stat, events2, Peak2, limit2, swap2}
}

// noLimit is the least value of memory.limit_in_bytes that means "no limit": the kernel
// shows the largest multiple of the page size, which is at most 64 KiB.
const noLimit = 1<<63 - 1<<16

// Read takes the figures from the files of a version (Linux, Documentation/admin-guide/
// cgroup-v1/memory.rst, cgroup-v2.rst). read gives the content of one of [Names], nil if
// there is none. oom_kill of version 1 exists since Linux 4.13, memory.peak since 5.19.
func Read(version int, read func(name string) []byte) Figures {
	f := None()
	keyed := FlatKeyed(read(stat))
	if version == 1 {
		f.Current, f.Peak = Number(read(current1)), Number(read(peak1))
		f.Limit = Limit(version, read)
		f.Anon, f.Shared = value(keyed, "total_rss"), value(keyed, "total_shmem")
		f.Cache = withoutShared(value(keyed, "total_cache"), f.Shared)
		f.Swap = value(keyed, "total_swap")
		f.OOMKills = value(FlatKeyed(read(oom1)), "oom_kill")
		return f
	}
	f.Current, f.Peak, f.Limit = Number(read(current2)), Number(read(Peak2)), Limit(version, read)
	f.Anon, f.Shared = value(keyed, "anon"), value(keyed, "shmem")
	f.Cache = withoutShared(value(keyed, "file"), f.Shared)
	f.Kernel = value(keyed, "kernel")
	f.Swap = Number(read(swap2))
	events := FlatKeyed(read(events2))
	f.Hits, f.High, f.OOMKills = value(events, "oom"), value(events, "high"), value(events, "oom_kill")
	return f
}

// Limit is the limit of a group in bytes, read as by [Read]; -1 without one. Version 1 also
// tells the least of those above.
func Limit(version int, read func(name string) []byte) int64 {
	if version == 1 {
		return Least(Number(read(limit1)), value(FlatKeyed(read(stat)), "hierarchical_memory_limit"))
	}
	return Least(Number(read(limit2)))
}

// withoutShared subtracts shared memory from page cache: the kernel counts it as both.
func withoutShared(cache, shared int64) int64 {
	if cache < 0 {
		return -1
	}
	return max(0, cache-max(shared, 0))
}

// Least is the lowest of some limits; -1, and the values that version 1 shows, are no limit.
func Least(limits ...int64) int64 {
	least := int64(-1)
	for _, l := range limits {
		if l >= 0 && l < noLimit && (least < 0 || l < least) {
			least = l
		}
	}
	return least
}

// Number is a file with one number; "max" and everything else that is not a number gives -1.
func Number(data []byte) int64 { return number(strings.TrimSpace(string(data))) }

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// FlatKeyed is a file of "key value" lines.
func FlatKeyed(data []byte) map[string]int64 {
	values := make(map[string]int64)
	for line := range bytes.Lines(data) {
		key, text, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		if n := number(text); ok && n >= 0 {
			values[key] = n
		}
	}
	return values
}

func value(values map[string]int64, key string) int64 {
	if n, ok := values[key]; ok {
		return n
	}
	return -1
}
