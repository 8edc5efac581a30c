package audit

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// The knobs of the startd that say how much it offers.
const (
	knobCPUs   = "NUM_CPUS"
	knobMemory = "MEMORY"
	knobDisk   = "DISK"
)

// sizeFile is the file that sets them.
const sizeFile = "condor_config.d/55-podstarter-size.conf"

const (
	bytesPerMB = 1 << 20
	bytesPerKB = 1 << 10
)

// checkSizes compares what slots offer with what payload containers may use. A job that
// gets more from the startd than from the kubelet is held for using what it was promised.
func (b *Inspector) checkSizes(pod *corev1.Pod, f *findings) {
	b.checkVariables(pod, f)
	b.checkPilotMemory(pod, f)
	if b.Options.Offer == nil {
		return
	}
	offer := b.Options.Offer()
	if b.Options.Resize {
		b.checkMost(pod, offer.Job, f)
	}
	var cpus, memory, disk resource.Quantity // of containers for slots; those of spares are more
	all := map[corev1.ResourceName]bool{corev1.ResourceCPU: true, corev1.ResourceMemory: true, corev1.ResourceEphemeralStorage: true}
	for i, name := range b.Options.Containers {
		c := podapi.SpecOf(pod, name)
		if c == nil {
			return // reported already
		}
		if !b.Options.Resize {
			b.checkOne(c, offer.Job, f)
		}
		for resource := range all {
			if _, limited := c.Resources.Limits[resource]; !limited {
				delete(all, resource)
			}
		}
		if b.Options.Resize {
			// Limits change. What the scheduler keeps for all containers is what one of them may have.
			cpus.Add(*c.Resources.Requests.Cpu())
			memory.Add(*c.Resources.Requests.Memory())
		} else if i < len(b.Options.Containers)-b.Options.Spares {
			cpus.Add(*c.Resources.Limits.Cpu())
			memory.Add(*c.Resources.Limits.Memory())
		}
		if i < len(b.Options.Containers)-b.Options.Spares {
			disk.Add(*c.Resources.Limits.StorageEphemeral())
		}
	}
	bound := "limits"
	if b.Options.Resize {
		bound = "requests"
	}
	const more = "slots offer %s together, but the payload containers for them may use %s (the sum of resources.%s.%s)%s; let %s set %s, or set it to %s"
	if most := int64(math.Round(offer.All.CPUs)); all[corev1.ResourceCPU] && most > wholeCPUs(cpus, len(b.Options.Containers)-b.Options.Spares) {
		least := fmt.Sprint(wholeCPUs(cpus, len(b.Options.Containers)-b.Options.Spares))
		f.warn(knobCPUs, more, fmt.Sprintf("%d CPUs", most), cpus.String(), bound, corev1.ResourceCPU, ", so jobs are slower than they expect", sizeFile, knobCPUs, least).
			knobTo(knobCPUs + " = " + least)
	}
	if least := memory.Value() / bytesPerMB; all[corev1.ResourceMemory] && offer.All.MemoryMB > least {
		f.warn(knobMemory, more, mebibytes(offer.All.MemoryMB), mebibytes(least), bound, corev1.ResourceMemory, ", so jobs may be held for using what they were given", sizeFile, knobMemory, fmt.Sprint(least)).
			knobTo(fmt.Sprintf("%s = %d", knobMemory, least))
	}
	if least := disk.Value() / bytesPerKB; all[corev1.ResourceEphemeralStorage] && offer.All.DiskKB > least {
		f.warn(knobDisk, more, inMiB(offer.All.DiskKB), inMiB(least), "limits", corev1.ResourceEphemeralStorage, ", beyond which the kubelet evicts the pod", sizeFile, knobDisk, fmt.Sprint(least)).
			knobTo(fmt.Sprintf("%s = %d", knobDisk, least))
	}
	b.checkSandboxes(pod, offer.All, f)
}

// What a pilot container needs in MiB: twice what was measured (docs/developer/turnover.md, "Memory of a pilot"). docs/admin/size.md
// and deploy/glidein request it.
const (
	pilotMemoryMB   = 112 // daemons, monitor, keeper and the files of programs
	starterMemoryMB = 16
)

// checkPilotMemory compares the pilot's limit with what its daemons and the starters of all slots need.
func (b *Inspector) checkPilotMemory(pod *corev1.Pod, f *findings) {
	pilot := b.pilot(pod)
	if pilot == nil {
		return
	}
	limit, limited := pilot.Resources.Limits[corev1.ResourceMemory]
	jobs := int64(len(b.Options.Containers) - b.Options.Spares)
	need := pilotMemoryMB + starterMemoryMB*jobs
	if !limited || limit.Value()/bytesPerMB >= need {
		return
	}
	f.warn("resources.limits.memory", "the pilot may use %s, and needs up to %s with %d jobs at once: the kernel would kill a daemon or a starter, and jobs go back to the queue; raise its limit",
		mebibytes(limit.Value()/bytesPerMB), mebibytes(need), jobs).
		at(pilot.Name, fmt.Sprintf("resources.limits.memory: %dMi", need))
}

// checkOne compares what one job can get with the limits of a container that may have it.
func (b *Inspector) checkOne(c *corev1.Container, job options.Size, f *findings) {
	if limit, limited := c.Resources.Limits[corev1.ResourceMemory]; limited && job.MemoryMB > limit.Value()/bytesPerMB {
		f.warn(knobMemory, "a job can get a slot with %s, but container %s may use %s: a job that uses what its slot has is held; raise resources.limits.memory, or let %s make the slots smaller",
			mebibytes(job.MemoryMB), c.Name, mebibytes(limit.Value()/bytesPerMB), sizeFile).
			at(c.Name, fmt.Sprintf("resources.limits.memory: %dMi", job.MemoryMB))
	}
	if limit, limited := c.Resources.Limits[corev1.ResourceCPU]; limited && int64(job.CPUs) > wholeCPUs(limit, 1) {
		f.warn(knobCPUs, "a job can get a slot with %d CPUs, but container %s may use %s: the job is slower than it expects; raise resources.limits.cpu, or let %s make the slots smaller",
			int64(job.CPUs), c.Name, limit.String(), sizeFile).
			at(c.Name, fmt.Sprintf("resources.limits.cpu: %d", int64(job.CPUs)))
	}
}

// checkSandboxes compares the disk of all slots with the volume of sandboxes.
func (b *Inspector) checkSandboxes(pod *corev1.Pod, all options.Size, f *findings) {
	pilot := b.pilot(pod)
	dir := b.Options.Execute
	if b.Options.Scratch != "" {
		dir = b.Options.Scratch
	}
	if pilot == nil || dir == "" {
		return
	}
	at, ok := placeOf(pilot, dir)
	v := volumeOf(pod, at.volume)
	if !ok || v == nil || v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.IsZero() {
		return
	}
	if limit := v.EmptyDir.SizeLimit.Value() / bytesPerKB; all.DiskKB > limit {
		f.warn(knobDisk, "slots offer %s together, but volume %s, with the sandboxes, may have %s, beyond which the kubelet evicts the pod; raise its sizeLimit, or set %s to %d",
			inMiB(all.DiskKB), v.Name, inMiB(limit), knobDisk, limit).
			at("", fmt.Sprintf("volumes[name=%s].emptyDir.sizeLimit: %dKi", v.Name, all.DiskKB))
	}
}

// checkVariables looks for variables of the pilot with a limit that a payload container
// does not have: they say what the node has (kubelet_resources.go:
// defaultPodLimitsForDownwardAPI), or 0 for a sidecar.
func (b *Inspector) checkVariables(pod *corev1.Pod, f *findings) {
	pilot := b.pilot(pod)
	if pilot == nil {
		return
	}
	for _, e := range pilot.Env {
		if e.ValueFrom == nil || e.ValueFrom.ResourceFieldRef == nil {
			continue
		}
		ref := e.ValueFrom.ResourceFieldRef
		name, isLimit := strings.CutPrefix(ref.Resource, "limits.")
		c := podapi.SpecOf(pod, ref.ContainerName)
		if !isLimit || c == nil || !b.isPayload(c.Name) {
			continue
		}
		if _, limited := c.Resources.Limits[corev1.ResourceName(name)]; !limited {
			f.warn(options.KnobContainers, "variable %s of the pilot is to have resources.limits.%s of container %s, which has none: it says what the node has instead, or nothing; "+
				"give the container the limit, or take the variable away", e.Name, name, c.Name).
				at(pilot.Name, "env[name="+e.Name+"]: (remove it)")
		}
	}
}

// sizes is what checkSizes says if all is well.
func (b *Inspector) sizes(pod *corev1.Pod) string {
	c := podapi.SpecOf(pod, b.Options.Containers[0])
	if c == nil || b.Options.Offer == nil || len(c.Resources.Limits) == 0 {
		return "payload containers have no limits that slots could be beyond"
	}
	job := b.Options.Offer().Job
	if b.Options.Resize {
		return fmt.Sprintf("a job gets at most %v CPUs and %s, and its payload container as much", job.CPUs, mebibytes(job.MemoryMB))
	}
	return fmt.Sprintf("a job gets at most %v CPUs and %s, which a payload container may use", job.CPUs, mebibytes(job.MemoryMB))
}

// wholeCPUs is how many CPUs slots may offer of a limit: less than one counts as one for each
// slot.
func wholeCPUs(limit resource.Quantity, slots int) int64 {
	return max(limit.MilliValue()/1000, int64(slots))
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n) }

// inMiB is so many KiB as MiB.
func inMiB(n int64) string { return mebibytes(n / 1024) }

// sharedMemory is where programs have what they share.
const sharedMemory = "/dev/shm"

// checkSharedMemory warns of payload containers that share /dev/shm: one job can use up what
// there is for all, and finds what others let everybody read. Without a volume there, the
// containers of a pod have one of 64 MiB together (kubelet kuberuntime, containerd
// cri/server/sandbox_run_linux.go).
func (b *Inspector) checkSharedMemory(pod *corev1.Pod, f *findings) {
	for _, name := range b.Options.Containers {
		c := podapi.SpecOf(pod, name)
		if c == nil {
			continue
		}
		m, ok := mountOf(c, sharedMemory)
		own := "volumeMounts: {name: shm-" + name + ", mountPath: " + sharedMemory + "}"
		switch {
		case !ok || filepath.Clean(m.MountPath) != sharedMemory:
			f.warn(options.KnobContainers, "container %s has the pod's %s, which is of 64 MiB for all containers, the pilot as well; mount a volume of its own there (emptyDir, medium: Memory)", name, sharedMemory).
				at(name, own)
		case !b.isOfOne(pod, m.Name):
			f.warn(options.KnobContainers, "container %s has volume %s at %s, which is not its own empty directory: jobs find what others have there", name, m.Name, sharedMemory).
				at(name, own)
		}
	}
}
