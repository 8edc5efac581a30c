package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReaped(t *testing.T) {
	const stat = "163 (a (b) c) S 155 163 163 0 -1 4194560 2027 23845 0 11 3 1 63 20 30 10 1 0 39844"
	if got, err := reapedIn(stat); err != nil || got != 830*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := reapedIn("1 (x) S 1 2"); err == nil {
		t.Error("a line that is too short was read")
	}
	// A child that ends is added.
	before, err := reaped(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	if after, err := reaped(os.Getpid()); err != nil || after <= before {
		t.Errorf("%v before a child, %v after it, %v", before, after, err)
	}
}

func TestMachineTime(t *testing.T) {
	got, err := machineIn("cpu  100 20 30 99999 500 6 4 0 0 0\ncpu0 1 2 3\n")
	if err != nil || got != 1600*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := machineIn("intr 1 2 3 4 5 6 7 8"); err == nil {
		t.Error("another line was read")
	}
	if _, err := machineTime(); err != nil {
		t.Error(err)
	}
}

func TestGroups(t *testing.T) {
	const pod = "/ours/kubepods/besteffort/pod3dd207f3-49cc-4007-8cfd-a90c3cd60d61"
	for name, c := range map[string]struct {
		text           string
		pod, container group
	}{
		"v1": {"9:memory:/else\n4:cpu,cpuacct:" + pod + "/4fd6\n0::/\n",
			"/sys/fs/cgroup/cpu,cpuacct" + pod + "/cpuacct.usage", "/sys/fs/cgroup/cpu,cpuacct" + pod + "/4fd6/cpuacct.usage"},
		"v1, unified first, in a group below": {"0::" + pod + "/4fd6\n2:cpuacct:" + pod + "/4fd6/below\n",
			"/sys/fs/cgroup/cpuacct" + pod + "/cpuacct.usage", "/sys/fs/cgroup/cpuacct" + pod + "/4fd6/cpuacct.usage"},
		"v2": {"0::" + pod + "/4fd6\n", "/sys/fs/cgroup" + pod + "/cpu.stat", "/sys/fs/cgroup" + pod + "/4fd6/cpu.stat"},
	} {
		gotPod, gotContainer, err := groupsOf(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]group{c.pod, c.container}, []group{gotPod, gotContainer}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, _, err := groupsOf("0::/system.slice\n"); err == nil {
		t.Error("a process outside of pods has a pod")
	}
}

func TestGroupTime(t *testing.T) {
	for text, want := range map[string]time.Duration{"1500\n": 1500, "usage_usec 12\nuser_usec 5\nsystem_usec 7\n": 12 * time.Microsecond} {
		if got, err := groupTime(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestUsageSince(t *testing.T) {
	got := usage{ofKubelet: 5, ofEtcd: 3}.since(usage{ofKubelet: 2, ofEtcd: 3})
	if diff := cmp.Diff(usage{ofKubelet: 3, ofEtcd: 0}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnswered(t *testing.T) {
	got, err := answeredIn("# HELP apiserver_request_total x\napiserver_request_total{code=\"200\",verb=\"PATCH\"} 12\napiserver_request_total{code=\"0\",verb=\"WATCH\"} 1.5e+01\napiserver_request_terminations_total{code=\"0\"} 7\n")
	if err != nil || got != 27 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := answeredIn("other 1\n"); err == nil {
		t.Error("metrics without the counter were read")
	}
}

func TestPSS(t *testing.T) {
	if got, err := pssIn("00400000-7ff [rollup]\nRss:   900 kB\nPss:        512 kB\nPss_Dirty: 1 kB\n"); err != nil || got != 512 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := pssIn("Rss: 1 kB\n"); err == nil {
		t.Error("a file without a size was read")
	}
	if _, err := pssOf(os.Getpid()); err != nil {
		t.Error(err)
	}
}
