package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

// TestMappings: a page of a file counts once, however many processes have it; what a process has changed is its own.
func TestMappings(t *testing.T) {
	mapping := func(head, rss, pss, anonymous string) string {
		return head + "\nSize: 100 kB\nRss: " + rss + " kB\nPss: " + pss + " kB\nShared_Clean: 7 kB\nAnonymous: " + anonymous + " kB\nVmFlags: rd ex\n"
	}
	const code, data = "5500-5600 r-xp 00000000 fe:00 4711 /usr/sbin/condor_startd", "5600-5700 rw-p 00010000 fe:00 4711 /usr/sbin/condor_startd"
	files := map[string]int64{}
	own, pss := mappings(mapping(code, "40", "20", "0")+mapping(data, "10", "9", "8")+mapping("7f00-7f10 rw-p 00000000 00:00 0 [heap]", "30", "30", "30"), files)
	if own != 38 || pss != 59 {
		t.Errorf("own %d KiB and PSS %d KiB, want 38 and 59", own, pss)
	}
	// The same file at another address.
	other := strings.Replace(code, "5500-5600", "7500-7600", 1)
	own, _ = mappings(mapping(other, "50", "25", "0")+mapping("7f00-7f10 rw-p 00000000 00:00 0", "5", "5", "5"), files)
	var sum int64
	for _, n := range files {
		sum += n
	}
	if own != 5 || sum != 52 {
		t.Errorf("own %d KiB and %d KiB of files, want 5 and 52: %v", own, sum, files)
	}
}

func TestMemoryGroup(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"version 1", "5:cpu,cpuacct:/x\n4:memory:/kubepods/pod1/abc\n0::/\n", "/sys/fs/cgroup/memory/kubepods/pod1/abc"},
		{"version 2", "0::/kubepods/pod1/abc\n", "/sys/fs/cgroup/kubepods/pod1/abc"},
		{"none", "1:name=systemd:/\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := memoryGroup(tc.text)
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestMemoryTable(t *testing.T) {
	got := memoryTable([]pilotMemory{{side: harness.Ours, slots: 4, running: footprint{daemons: 1024, helpers: 512, starters: 2048, files: 10240, pss: 9216, charged: 20480}}})
	const want = "| ours, a job in each slot | 4 | 1.0 | 0.5 | 2.0 | 10.0 | 13.5 | 9.0 | 20.0 |"
	if diff := cmp.Diff(want, strings.Split(got, "\n")[3]); diff != "" {
		t.Error(diff)
	}
}
