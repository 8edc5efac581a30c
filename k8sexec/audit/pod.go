package audit

import (
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// shortGrace is the grace period, in seconds, below which jobs get no time to end
// when the pod does.
const shortGrace = 2

// auditPod checks the manifest as a whole.
func (b *Inspector) auditPod(pod *corev1.Pod, r *report) {
	spec := &pod.Spec
	r.section("payload containers", func(f *findings) { b.checkPod(pod, f) }, "set up to run jobs: "+plural(b.Options.Containers))
	before := len(r.found)
	const what = "pod"
	if spec.HostPID {
		r.bad(what, "spec.hostPID: false", "jobs see the processes of the node")
	}
	if spec.HostIPC {
		r.bad(what, "spec.hostIPC: false", "jobs reach the shared memory of the node")
	}
	if spec.HostNetwork {
		r.warn(what, "spec.hostNetwork: false", "jobs have the node's network, with all that listens on its loopback address")
	}
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		r.warn(what, "spec.enableServiceLinks: false", "jobs find the addresses of the namespace's services in their environment")
	}
	if grace := spec.TerminationGracePeriodSeconds; grace != nil && *grace < shortGrace {
		r.warn(what, "spec.terminationGracePeriodSeconds: 5", "the grace period of %d s leaves the daemons no time to report the end of the pod", *grace)
	}
	b.auditUsers(pod, r)
	if len(r.found) == before {
		r.ok(what, "restarts its containers, and has network, processes and shared memory of its own")
	}
	b.auditVolumes(pod, r)
	if spec.HostUsers != nil && !*spec.HostUsers {
		r.ok("user namespace", "the pod has its own: its root is nobody on the node")
	} else {
		r.ok("user namespace", "the node's; with spec.hostUsers: false (Kubernetes 1.33) the pod would have its own")
	}
}

// auditUsers looks for other containers with the user ID of a payload: its jobs could
// kill their processes.
func (b *Inspector) auditUsers(pod *corev1.Pod, r *report) {
	for _, c := range podapi.Containers(pod) {
		if b.isPayload(c.Name) || c.SecurityContext == nil || c.SecurityContext.RunAsUser == nil {
			continue
		}
		uid := *c.SecurityContext.RunAsUser
		if n := uid - int64(b.Options.BaseUID); n >= 0 && n < int64(len(b.Options.Containers)) {
			r.bad("pod", options.KnobPayloadUID, "container %s runs as user %d, which is that of jobs in container %s", c.Name, uid, b.Options.Containers[n])
		}
	}
}

// auditVolumes makes sure that others cannot fill the volumes that starter and wrapper
// rely on, and that those cannot fill the node.
func (b *Inspector) auditVolumes(pod *corev1.Pod, r *report) {
	const what = "volumes"
	before := len(r.found)
	pilot := b.pilot(pod)
	if pilot == nil {
		return
	}
	for _, path := range []string{b.Options.ControlDir, b.Options.PrivateDir} {
		at, ok := placeOf(pilot, path)
		v := volumeOf(pod, at.volume)
		if !ok || v == nil {
			continue // the control directory's absence is a finding of checkVolumes
		}
		if v.EmptyDir != nil && (v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.IsZero()) {
			r.warn(what, "spec.volumes[name="+v.Name+"].emptyDir.sizeLimit: 64Mi", "volume %s, with %s, has no limit", v.Name, path)
		}
	}
	if len(r.found) == before {
		r.ok(what, "those of %s and %s are limited", b.Options.ControlDir, b.Options.PrivateDir)
	}
}

func volumeOf(pod *corev1.Pod, name string) *corev1.Volume {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == name {
			return &pod.Spec.Volumes[i]
		}
	}
	return nil
}

// auditContainer looks for secrets that a payload container could give away.
func (b *Inspector) auditContainer(pod *corev1.Pod, c *corev1.Container, r *report) {
	what := "container " + c.Name
	before := len(r.found)
	for _, m := range c.VolumeMounts {
		v := volumeOf(pod, m.Name)
		if v == nil {
			continue
		}
		mount := line(c.Name, "volumeMounts[name="+m.Name+"]: (remove it)")
		switch {
		case hasToken(v):
			r.bad(what, tokenLine(m, mount), "mounts a token of the cluster at %s, where jobs may read it", m.MountPath)
		case v.Secret != nil || isProjectedSecret(v):
			r.warn(what, mount, "mounts secret volume %s at %s", m.Name, m.MountPath)
		case v.HostPath != nil:
			r.warn(what, mount, "mounts the node's %s at %s", v.HostPath.Path, m.MountPath)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			r.bad(what, line(c.Name, "env[name="+e.Name+"]: (remove it)"), "has a secret in its environment, which jobs inherit as their image's")
		}
	}
	for _, e := range c.EnvFrom {
		if e.SecretRef != nil {
			r.bad(what, line(c.Name, "envFrom: (remove it)"), "has secret %s in its environment, which jobs inherit as their image's", e.SecretRef.Name)
		}
	}
	for name, p := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if p != nil && p.Exec != nil {
			r.bad(what, line(c.Name, name+": (remove it)"), "has a probe that runs a program of the user's image as root")
		}
	}
	b.auditOthers(pod, c, what, r)
	b.auditGraphics(c, what, r)
	if len(r.found) == before {
		r.ok(what, "holds no token or secret, and nothing of the node's")
	}
}

// tokenLine is the line to change: Kubernetes mounts a token unless the pod forbids it
// (kube-api-access-... by admission plugin ServiceAccount).
func tokenLine(m corev1.VolumeMount, mount string) string {
	if strings.HasPrefix(m.Name, "kube-api-access-") || filepath.Clean(m.MountPath) == "/var/run/secrets/kubernetes.io/serviceaccount" {
		return "spec.automountServiceAccountToken: false"
	}
	return mount
}

func hasToken(v *corev1.Volume) bool {
	if v.Projected == nil {
		return false
	}
	for _, s := range v.Projected.Sources {
		if s.ServiceAccountToken != nil {
			return true
		}
	}
	return false
}

func isProjectedSecret(v *corev1.Volume) bool {
	if v.Projected == nil {
		return false
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			return true
		}
	}
	return false
}
