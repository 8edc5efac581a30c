package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podstarter/k8sexec/options"
)

// said are the findings of a check, each as text and what to change.
func said(t *testing.T, f findings) (all []string) {
	t.Helper()
	if f.mistakes != nil {
		t.Errorf("mistakes: %v", f.mistakes)
	}
	for _, m := range f.warnings {
		all = append(all, m.Error()+" | "+m.Fix())
	}
	return all
}

// sized is the pod of deploy/glidein with so many payload containers, all with these limits.
func sized(t *testing.T, containers int, limits corev1.ResourceList) (*corev1.Pod, []string) {
	t.Helper()
	pod := deployed(t, "glidein", "pod.yaml")
	names := []string{"payload"}
	first := &pod.Spec.Containers[1]
	first.Resources.Limits = limits
	for _, name := range []string{"payload-2", "payload-3", "payload-4"}[:containers-1] {
		c := first.DeepCopy()
		c.Name = name
		pod.Spec.Containers = append(pod.Spec.Containers, *c)
		names = append(names, name)
	}
	return pod, names
}

func limits(cpu, memory, disk string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourceEphemeralStorage: disk} {
		if value != "" {
			list[name] = resource.MustParse(value)
		}
	}
	return list
}

func TestSizes(t *testing.T) {
	const gi = 1 << 20 // KiB
	for _, tt := range []struct {
		name       string
		containers int
		spares     int
		resize     bool
		limits     corev1.ResourceList
		offer      options.Offer
		edit       func(pod *corev1.Pod)
		want       []string
	}{
		{name: "as deployed", containers: 1, limits: limits("1", "2Gi", "10Gi"),
			offer: options.Offer{Job: options.Size{CPUs: 1, MemoryMB: 2048}, All: options.Size{CPUs: 1, MemoryMB: 2048, DiskKB: 10 * gi}}},
		{name: "nobody knows", containers: 1, limits: limits("1", "2Gi", "10Gi")},
		{name: "a pilot with too little memory", containers: 4, spares: 1, limits: limits("1", "2Gi", "10Gi"),
			edit: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("150Mi")
			},
			want: []string{"resources.limits.memory: the pilot may use 150 MiB, and needs up to 160 MiB with 3 jobs at once: the kernel would kill a daemon or a starter, and jobs go back to the queue; " +
				"raise its limit | spec.containers[name=pilot].resources.limits.memory: 160Mi"}},
		{name: "a pilot with just enough", containers: 4, spares: 1, limits: limits("1", "2Gi", "10Gi"),
			edit: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("160Mi")
			}},
		{name: "a pilot without a limit", containers: 1, limits: limits("1", "2Gi", "10Gi"),
			edit: func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Limits = nil }},
		{name: "what the node has", containers: 2, limits: limits("2", "2Gi", "10Gi"),
			offer: options.Offer{Job: options.Size{CPUs: 64, MemoryMB: 128000}, All: options.Size{CPUs: 128, MemoryMB: 256000}},
			want: []string{
				"MEMORY: a job can get a slot with 128000 MiB, but container payload may use 2048 MiB: a job that uses what its slot has is held; raise resources.limits.memory, or let condor_config.d/55-podstarter-size.conf make the slots smaller | spec.containers[name=payload].resources.limits.memory: 128000Mi",
				"NUM_CPUS: a job can get a slot with 64 CPUs, but container payload may use 2: the job is slower than it expects; raise resources.limits.cpu, or let condor_config.d/55-podstarter-size.conf make the slots smaller | spec.containers[name=payload].resources.limits.cpu: 64",
				"MEMORY: a job can get a slot with 128000 MiB, but container payload-2 may use 2048 MiB: a job that uses what its slot has is held; raise resources.limits.memory, or let condor_config.d/55-podstarter-size.conf make the slots smaller | spec.containers[name=payload-2].resources.limits.memory: 128000Mi",
				"NUM_CPUS: a job can get a slot with 64 CPUs, but container payload-2 may use 2: the job is slower than it expects; raise resources.limits.cpu, or let condor_config.d/55-podstarter-size.conf make the slots smaller | spec.containers[name=payload-2].resources.limits.cpu: 64",
				"NUM_CPUS: slots offer 128 CPUs together, but the payload containers for them may use 4 (the sum of resources.limits.cpu), so jobs are slower than they expect; let condor_config.d/55-podstarter-size.conf set NUM_CPUS, or set it to 4 | NUM_CPUS = 4",
				"MEMORY: slots offer 256000 MiB together, but the payload containers for them may use 4096 MiB (the sum of resources.limits.memory), so jobs may be held for using what they were given; let condor_config.d/55-podstarter-size.conf set MEMORY, or set it to 4096 | MEMORY = 4096",
			}},
		{name: "spares counted as well", containers: 3, spares: 2, limits: limits("", "2Gi", ""),
			offer: options.Offer{Job: options.Size{CPUs: 1, MemoryMB: 2048}, All: options.Size{CPUs: 3, MemoryMB: 6144, DiskKB: 100 * gi}},
			edit:  func(pod *corev1.Pod) { pod.Spec.Containers[0].Env = nil },
			want: []string{"MEMORY: slots offer 6144 MiB together, but the payload containers for them may use 2048 MiB (the sum of resources.limits.memory), so jobs may be held for using what they were given; " +
				"let condor_config.d/55-podstarter-size.conf set MEMORY, or set it to 2048 | MEMORY = 2048"}},
		{name: "less than a CPU", containers: 4, limits: limits("500m", "1000M", ""),
			offer: options.Offer{Job: options.Size{CPUs: 1, MemoryMB: 953}, All: options.Size{CPUs: 4, MemoryMB: 3814}},
			edit:  func(pod *corev1.Pod) { pod.Spec.Containers[0].Env = nil }},
		{name: "disk", containers: 1, limits: limits("1", "2Gi", "10Gi"),
			offer: options.Offer{Job: options.Size{CPUs: 1, MemoryMB: 2048}, All: options.Size{CPUs: 1, MemoryMB: 2048, DiskKB: 20 * gi}},
			edit: func(pod *corev1.Pod) {
				limit := resource.MustParse("5Gi")
				pod.Spec.Volumes[0].EmptyDir.SizeLimit = &limit
			},
			want: []string{
				"DISK: slots offer 20480 MiB together, but the payload containers for them may use 10240 MiB (the sum of resources.limits.ephemeral-storage), beyond which the kubelet evicts the pod; let condor_config.d/55-podstarter-size.conf set DISK, or set it to 10485760 | DISK = 10485760",
				"DISK: slots offer 20480 MiB together, but volume execute, with the sandboxes, may have 5120 MiB, beyond which the kubelet evicts the pod; raise its sizeLimit, or set DISK to 5242880 | spec.volumes[name=execute].emptyDir.sizeLimit: 20971520Ki",
			}},
		{name: "resized", containers: 2, resize: true, limits: limits("1", "2Gi", "10Gi"),
			offer: options.Offer{Job: options.Size{CPUs: 2, MemoryMB: 4096}, All: options.Size{CPUs: 2, MemoryMB: 4096}},
			edit: func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{"resize.podstarter/cpu": "2", "resize.podstarter/memory": "4Gi"}
			}},
		{name: "resized, more than is kept", containers: 2, resize: true, limits: limits("8", "8Gi", "10Gi"),
			offer: options.Offer{Job: options.Size{CPUs: 2, MemoryMB: 8192}, All: options.Size{CPUs: 2, MemoryMB: 8192}},
			edit: func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{"resize.podstarter/cpu": "2", "resize.podstarter/memory": "4Gi"}
			},
			want: []string{
				`POD_STARTER_RESIZE: a job can get a slot with memory 8Gi, but the pod's annotation resize.podstarter/memory lets its container have "4Gi": such jobs go back to the queue | metadata.annotations: {resize.podstarter/memory: "8Gi"}`,
				"MEMORY: slots offer 8192 MiB together, but the payload containers for them may use 4096 MiB (the sum of resources.requests.memory), so jobs may be held for using what they were given; " +
					"let condor_config.d/55-podstarter-size.conf set MEMORY, or set it to 4096 | MEMORY = 4096",
			}},
		{name: "variables without limits", containers: 1, limits: limits("1", "", "10Gi"),
			offer: options.Offer{Job: options.Size{CPUs: 1, MemoryMB: 64000}, All: options.Size{CPUs: 1, MemoryMB: 64000}},
			want: []string{"POD_STARTER_CONTAINERS: variable PAYLOAD_MEMORY_KB of the pilot is to have resources.limits.memory of container payload, which has none: " +
				"it says what the node has instead, or nothing; give the container the limit, or take the variable away | spec.containers[name=pilot].env[name=PAYLOAD_MEMORY_KB]: (remove it)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod, names := sized(t, tt.containers, tt.limits)
			if tt.edit != nil {
				tt.edit(pod)
			}
			b := &Inspector{Options: options.Options{Containers: names, Spares: tt.spares, Resize: tt.resize, Execute: "/var/lib/condor/execute/jobs", Offer: func() options.Offer { return tt.offer }}}
			var f findings
			b.checkSizes(pod, &f)
			if diff := cmp.Diff(tt.want, said(t, f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSharedMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(pod *corev1.Pod)
		want []string
	}{
		{"a volume for all", func(*corev1.Pod) {}, []string{
			"POD_STARTER_CONTAINERS: container payload has volume shm-payload at /dev/shm, which is not its own empty directory: jobs find what others have there | spec.containers[name=payload].volumeMounts: {name: shm-payload, mountPath: /dev/shm}",
			"POD_STARTER_CONTAINERS: container payload-2 has volume shm-payload at /dev/shm, which is not its own empty directory: jobs find what others have there | spec.containers[name=payload-2].volumeMounts: {name: shm-payload-2, mountPath: /dev/shm}",
		}},
		{"the pod's", func(pod *corev1.Pod) { pod.Spec.Containers[2].VolumeMounts = nil }, []string{
			"POD_STARTER_CONTAINERS: container payload-2 has the pod's /dev/shm, which is of 64 MiB for all containers, the pilot as well; mount a volume of its own there (emptyDir, medium: Memory) | spec.containers[name=payload-2].volumeMounts: {name: shm-payload-2, mountPath: /dev/shm}",
		}},
		{"one for each", func(pod *corev1.Pod) {
			v := *volumeOf(pod, "shm-payload")
			v.Name = "shm-payload-2"
			pod.Spec.Volumes = append(pod.Spec.Volumes, v)
			pod.Spec.Containers[2].VolumeMounts = []corev1.VolumeMount{{Name: v.Name, MountPath: "/dev/shm/"}}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod, names := sized(t, 2, nil)
			tt.edit(pod)
			b := &Inspector{Options: options.Options{Containers: names}}
			var f findings
			b.checkSharedMemory(pod, &f)
			if diff := cmp.Diff(tt.want, said(t, f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
