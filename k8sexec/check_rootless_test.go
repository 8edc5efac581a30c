package k8sexec

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-multierror"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/audit"
	"podstarter/k8sexec/options"
	"podstarter/payload"
)

// rootlessPod is a pod without mistakes, for a pilot that is user 1000, group 1000, and
// in group 10000.
func (w *world) rootlessPod() *corev1.Pod {
	pod := w.goodPod()
	pod.Spec.ShareProcessNamespace = nil
	pod.Spec.Containers = pod.Spec.Containers[:2]
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "execute", MountPath: "/execute"}, {Name: "control", MountPath: w.control}, {Name: "scratch", MountPath: w.execute}}
	c := &pod.Spec.Containers[1]
	c.Args = append(c.Args, "-pilot", "1000:10000")
	c.VolumeMounts[0] = corev1.VolumeMount{Name: "scratch", MountPath: w.execute}
	return pod
}

// TestCheckRootless: the check refuses whatever would let a job with the pilot's user
// ID get at the pilot.
func TestCheckRootless(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make files of other users")
	}
	tests := []struct {
		name   string
		change func(w *world, pod *corev1.Pod)
		want   []string
	}{
		{name: "nothing wrong"},
		{"sees the pilot's processes", func(_ *world, pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = ptr(true) },
			[]string{"POD_STARTER_BACKEND: the pod's containers share a PID namespace"}},
		{"sees the node's processes", func(_ *world, pod *corev1.Pod) { pod.Spec.HostPID = true },
			[]string{"POD_STARTER_BACKEND: the pod's containers share a PID namespace"}},
		{"two payload containers", func(w *world, pod *corev1.Pod) {
			second := pod.Spec.Containers[1].DeepCopy()
			second.Name, second.Args[1] = "payload-2", w.control+"/payload-2"
			second.Env[0].ValueFrom.FieldRef.FieldPath = "metadata.annotations['podstarter/nonce-payload-2']"
			pod.Spec.Containers = append(pod.Spec.Containers, *second)
			w.backend.opt.Containers = []string{"payload", "payload-2"}
		}, []string{"POD_STARTER_CONTAINERS: names 2 payload containers, but the pilot is user 1000"}},
		{"no scratch directory", func(w *world, pod *corev1.Pod) {
			w.backend.opt.Scratch = ""
			pod.Spec.Containers[1].VolumeMounts[0] = corev1.VolumeMount{Name: "execute", MountPath: "/execute"}
		}, []string{"POD_STARTER_SCRATCH_DIR: is empty, but the pilot is user 1000",
			"POD_STARTER_SCRATCH_DIR: containers pilot and payload both mount volume execute", "EXECUTE: is the root of volume execute"}},
		{"EXECUTE in the payload container", func(_ *world, pod *corev1.Pod) {
			c := &pod.Spec.Containers[1]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "execute", MountPath: "/elsewhere"})
		}, []string{"POD_STARTER_SCRATCH_DIR: containers pilot and payload both mount volume execute"}},
		{"EXECUTE to be read only", func(_ *world, pod *corev1.Pod) {
			c := &pod.Spec.Containers[1]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "execute", MountPath: "/elsewhere", ReadOnly: true})
		}, nil},
		{"EXECUTE on the scratch volume", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[0].VolumeMounts[0].Name = "scratch" },
			[]string{"EXECUTE: is on volume scratch, like POD_STARTER_SCRATCH_DIR"}},
		{"scratch volume open to root", func(w *world, _ *corev1.Pod) { _ = os.Chmod(w.execute, 0o755) },
			[]string{"POD_STARTER_SCRATCH_DIR: /"}},
		{"scratch volume writable for all", func(w *world, _ *corev1.Pod) { _ = os.Chmod(w.execute, 0o077) },
			[]string{"POD_STARTER_SCRATCH_DIR: /"}},
		{"scratch directory is the volume's root", func(w *world, _ *corev1.Pod) { w.backend.opt.Scratch = w.execute },
			[]string{"POD_STARTER_SCRATCH_DIR: is the root of volume scratch, which must be closed to root"}},
		{"scratch volume not in the payload container", func(_ *world, pod *corev1.Pod) {
			c := &pod.Spec.Containers[1]
			c.VolumeMounts = c.VolumeMounts[1:]
		}, []string{"POD_STARTER_SCRATCH_DIR: container payload mounts no volume at "}},
		{"wrapper does not know the pilot", func(_ *world, pod *corev1.Pod) {
			c := &pod.Spec.Containers[1]
			c.Args = c.Args[:2]
		}, []string{"POD_STARTER_CONTROL_DIR: container payload must have the arguments -pilot 1000:GROUP"}},
		{"wrapper knows another pilot", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Args[3] = "1001:10000" },
			[]string{"POD_STARTER_CONTROL_DIR: container payload must have the arguments -pilot 1000:GROUP"}},
		{"group that the job has", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Args[3] = "1000:1000" },
			[]string{"POD_STARTER_CONTROL_DIR: group 1000 in the arguments of container payload"}},
		{"group that the pilot lacks", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Args[3] = "1000:10001" },
			[]string{"POD_STARTER_CONTROL_DIR: group 10001 in the arguments of container payload"}},
		{"control directory of everybody", func(w *world, _ *corev1.Pod) { _ = os.Chmod(w.control, 0o755) },
			[]string{"POD_STARTER_CONTROL_DIR: " /* path */}},
		{"control directory of the user", func(w *world, _ *corev1.Pod) { _ = os.Chown(w.control, 1000, 10000) },
			[]string{"POD_STARTER_CONTROL_DIR: "}},
		{"control directory of the first group", func(w *world, _ *corev1.Pod) { _ = os.Chown(w.control, 0, 1000) },
			[]string{"POD_STARTER_CONTROL_DIR: "}},
		{"control directory closed", func(w *world, _ *corev1.Pod) { _ = os.Chmod(w.control, 0o700) },
			[]string{"POD_STARTER_CONTROL_DIR: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(o *options.Options) { o.Execute, o.Containers = "/execute", []string{"payload"} })
			w.backend.opt.Scratch = w.sandboxes()
			w.backend.self = audit.Identity{UID: 1000, GID: 1000, Groups: []int{1000, 10000}}
			_ = os.Chown(w.control, 0, 10000)
			_ = os.Chmod(w.control, 0o750)
			_ = os.Chmod(w.private, 0o700)
			pod := w.rootlessPod()
			if tt.change != nil {
				tt.change(w, pod)
			}
			pod.ResourceVersion = "1"
			w.api.Pod = pod
			_, err := w.backend.Check(context.Background())
			var mistakes []string
			if all := (*multierror.Error)(nil); errors.As(err, &all) {
				for _, e := range all.Errors {
					mistakes = append(mistakes, e.Error())
				}
			}
			if diff := cmp.Diff(tt.want, shorten(mistakes, tt.want)); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnerWithoutRoot: the payload is the pilot's own user.
func TestOwnerWithoutRoot(t *testing.T) {
	w := newWorld(t, nil)
	w.backend.self = audit.Identity{UID: 1000, GID: 100}
	l, err := w.backend.Lease(context.Background(), payload.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Release(context.Background()) }()
	if uid, gid := l.Owner(); uid != 1000 || gid != 100 {
		t.Errorf("user %d, group %d", uid, gid)
	}
}
