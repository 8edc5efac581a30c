package k8sexec

import "testing"

func TestContainerInCgroups(t *testing.T) {
	id, other := testID(0xabc), testID(0xdef)
	tests := []struct{ name, text, want string }{
		{"version 2, own namespace of the reader", "0::/../" + id + "\n", id},
		{"systemd driver, containerd", "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope\n", id},
		{"systemd driver, CRI-O", "0::/kubepods.slice/kubepods-pod1.slice/crio-" + id + ".scope\n", id},
		{"version 1", "12:pids:/kubepods/burstable/pod1/" + id + "\n11:memory:/kubepods/burstable/pod1/" + id + "\n0::/\n", id},
		{"cgroup below the container's", "0::/../" + id + "/job\n", id},
		{"container in a container", "0::/docker/" + other + "/kubelet/kubepods/pod1/" + id + "\n", id},
		{"hierarchies differ", "2:cpu:/" + id + "\n1:memory:/" + other + "\n", ""},
		{"own namespace of the process", "0::/\n", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		if got := containerInCgroups(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzContainerInCgroups(f *testing.F) {
	f.Add("0::/../cri-containerd-" + testID(1) + ".scope\n")
	f.Fuzz(func(t *testing.T, text string) {
		if id := containerInCgroups(text); id != "" && len(id) != 64 {
			t.Errorf("ID %q", id)
		}
	})
}
