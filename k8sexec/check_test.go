package k8sexec

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-multierror"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podstarter/k8sexec/options"
)

func ptr[T any](v T) *T { return &v }

// goodPod is a pod without mistakes.
func (w *world) goodPod() *corev1.Pod {
	pod := testPod()
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.ShareProcessNamespace = ptr(true)
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "execute", MountPath: w.execute}, {Name: "control", MountPath: w.control}, {Name: "private", MountPath: w.private}}
	for i := 1; i < len(pod.Spec.Containers); i++ {
		c := &pod.Spec.Containers[i]
		c.Command, c.Args = []string{"/proc/slabinfo"}, []string{"-control", w.control + "/" + c.Name}
		c.WorkingDir, c.ImagePullPolicy = "/", corev1.PullIfNotPresent
		c.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr(int64(0)), AllowPrivilegeEscalation: ptr(false)}
		c.Env = []corev1.EnvVar{{Name: "POD_STARTER_NONCE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['podstarter/nonce-" + c.Name + "']"}}}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "execute", MountPath: w.execute}, {Name: "control", MountPath: w.control},
			{Name: "bin", MountPath: "/proc/slabinfo", SubPath: "condor_pod_wrapper", ReadOnly: true}}
	}
	return pod
}

func TestCheck(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	type result struct{ Mistakes, Warnings []string }
	tests := []struct {
		name   string
		change func(w *world, pod *corev1.Pod)
		want   result // knob and a part of the text, in order
	}{
		{name: "nothing wrong"},
		{"no such container", func(w *world, pod *corev1.Pod) { pod.Spec.Containers[2].Name = "other" },
			result{Mistakes: []string{`POD_STARTER_CONTAINERS: pod pilot-0 has no container payload-2, it has ["pilot" "payload" "other"]`}}},
		{"an init container", func(_ *world, pod *corev1.Pod) {
			pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers[2:], pod.Spec.Containers[:2]
		}, result{Mistakes: []string{"POD_STARTER_CONTAINERS: init container payload-2 ends before jobs run"}}},
		{"one sidecar", func(_ *world, pod *corev1.Pod) {
			last := pod.Spec.Containers[2]
			toSidecars(pod)
			pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.InitContainers[:1], append(pod.Spec.Containers, last)
		}, result{}},
		{"one sidecar, and a policy that knows none", func(w *world, pod *corev1.Pod) {
			last := pod.Spec.Containers[2]
			toSidecars(pod)
			pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.InitContainers[:1], append(pod.Spec.Containers, last)
			w.api.Deny = func(patch string) error {
				if strings.Contains(patch, "initContainers") {
					return denial("some-policy")
				}
				return nil
			}
		}, result{Mistakes: []string{"POD_STARTER_POD_NAME: cannot patch pod jobs/pilot-0: "}}},
		{"may not get", func(w *world, _ *corev1.Pod) {
			w.failVerb("get", apierrors.NewForbidden(pods, "pilot-0", errors.New("no")))
		},
			result{Mistakes: []string{"POD_STARTER_POD_NAME: the service account may not get pod jobs/pilot-0"}}},
		{"may not patch", func(w *world, _ *corev1.Pod) {
			w.failVerb("patch", apierrors.NewForbidden(pods, "pilot-0", errors.New("no")))
		}, result{Mistakes: []string{"POD_STARTER_POD_NAME: the service account may not patch pod jobs/pilot-0"}}},
		{"may not watch", func(w *world, _ *corev1.Pod) {
			w.failVerb("watch", apierrors.NewForbidden(pods, "", errors.New("no")))
		}, result{Mistakes: []string{"POD_STARTER_POD_NAME: the service account may not watch pod jobs/pilot-0"}}},
		{"no such pod", func(w *world, _ *corev1.Pod) { w.failVerb("get", apierrors.NewNotFound(pods, "pilot-0")) },
			result{Mistakes: []string{"POD_STARTER_POD_NAME: there is no pod jobs/pilot-0"}}},
		{"token not accepted", func(w *world, _ *corev1.Pod) { w.failVerb("get", apierrors.NewUnauthorized("no")) },
			result{Mistakes: []string{"POD_STARTER_KUBERNETES_DIR: the API server does not accept the token"}}},
		{"API server away", func(w *world, _ *corev1.Pod) { w.failVerb("get", context.DeadlineExceeded) },
			result{Mistakes: []string{"POD_STARTER_BACKEND: is pod, but the API server at https://127.0.0.1:1 does not answer"}}},
		{"control directory open", func(w *world, _ *corev1.Pod) { _ = os.Chmod(w.control, 0o755) },
			result{Mistakes: []string{"POD_STARTER_CONTROL_DIR: must be a directory that only root can enter"}}},
		{"private directory missing", func(w *world, _ *corev1.Pod) { _ = os.RemoveAll(w.private) },
			result{Mistakes: []string{"POD_STARTER_PRIVATE_DIR: must be a directory that only root can enter"}}},
		{"control volume not in the payload container", func(_ *world, pod *corev1.Pod) {
			c := &pod.Spec.Containers[1]
			c.VolumeMounts = append(c.VolumeMounts[:1:1], c.VolumeMounts[2])
		}, result{Mistakes: []string{"POD_STARTER_CONTROL_DIR: container payload mounts no volume at"}}},
		{"control volume is another", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].VolumeMounts[1].Name = "scratch" },
			result{Mistakes: []string{"POD_STARTER_CONTROL_DIR: container payload has volume scratch at"}}},
		{"EXECUTE elsewhere", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].VolumeMounts[0].MountPath = "/scratch" },
			result{Mistakes: []string{"EXECUTE: container payload mounts no volume at "}}},
		{"EXECUTE from another part of the volume", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].VolumeMounts[0].SubPath = "x" },
			result{Mistakes: []string{"EXECUTE: container payload has volume execute at "}}},
		{"EXECUTE read-only", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].VolumeMounts[0].ReadOnly = true },
			result{Mistakes: []string{"EXECUTE: container payload mounts /"}}},
		{"EXECUTE is the root of its volume", func(w *world, _ *corev1.Pod) { w.backend.opt.Execute = w.execute },
			result{Mistakes: []string{"EXECUTE: is the root of volume execute, which must be closed to root", "EXECUTE: is the root of volume execute"}}},
		{"wrapper where the image may have a link", func(_ *world, pod *corev1.Pod) {
			c := &pod.Spec.Containers[1]
			c.Command = []string{"/opt/podstarter/bin/condor_pod_wrapper"}
			c.VolumeMounts[2].MountPath, c.VolumeMounts[2].SubPath = "/opt/podstarter/bin", ""
		}, result{Mistakes: []string{"POD_STARTER_CONTAINERS: the command of container payload is /opt/podstarter/bin/condor_pod_wrapper; a user's image may have a symbolic link on the way"}}},
		{"command below a link of /proc", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Command = []string{"/proc/self/cwd"} },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: the command of container payload is /proc/self/cwd; a user's image"}}},
		{"command that is no mount", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Command = []string{"/proc/swaps"} },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: container payload mounts no file condor_pod_wrapper at /proc/swaps"}}},
		{"command by way of a link", func(_ *world, pod *corev1.Pod) {
			pod.Spec.Containers[1].Command = []string{"/opt/../proc/slabinfo"}
		}, result{Mistakes: []string{"POD_STARTER_CONTAINERS: the command of container payload is /opt/../proc/slabinfo; a user's image"}}},
		{"wrapper writable", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].VolumeMounts[2].ReadOnly = false },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: container payload mounts the wrapper's volume bin writable"}}},
		{"private volume shared", func(_ *world, pod *corev1.Pod) {
			c := &pod.Spec.Containers[1]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "private", MountPath: "/elsewhere", ReadOnly: true})
		}, result{Mistakes: []string{"POD_STARTER_PRIVATE_DIR: container payload mounts volume private"}}},
		{"no nonce", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Env = nil },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: container payload lacks the variable POD_STARTER_NONCE"}}},
		{"nonce of another container", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Env = pod.Spec.Containers[2].Env },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: the variable POD_STARTER_NONCE of container payload must come from a fieldRef to metadata.annotations['podstarter/nonce-payload']"}}},
		{"pulls always", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].ImagePullPolicy = corev1.PullAlways },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: the imagePullPolicy of container payload is Always"}}},
		{"command of the image", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Command = nil },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: container payload has no command"}}},
		{"control directory of another container", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].Args = pod.Spec.Containers[2].Args },
			result{Mistakes: []string{"POD_STARTER_CONTROL_DIR: container payload must have the arguments -control"}}},
		{"no root", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].SecurityContext.RunAsUser = nil },
			result{Mistakes: []string{"POD_STARTER_PAYLOAD_UID: container payload must have runAsUser 0"}}},
		{"no working directory", func(_ *world, pod *corev1.Pod) { pod.Spec.Containers[1].WorkingDir = "" },
			result{Mistakes: []string{"POD_STARTER_CONTAINERS: container payload has no workingDir"}}},
		{"hooks", func(_ *world, pod *corev1.Pod) {
			pod.Spec.Containers[1].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}
		}, result{Mistakes: []string{"POD_STARTER_CONTAINERS: container payload has lifecycle hooks"}}},
		{"never restarts", func(_ *world, pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever },
			result{Mistakes: []string{"POD_STARTER_BACKEND: the pod's restartPolicy is Never"}}},
		{name: "no shared PID namespace", change: func(_ *world, pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = nil }},
		{"warnings", func(_ *world, pod *corev1.Pod) {
			pod.Spec.Containers[1].SecurityContext.AllowPrivilegeEscalation = nil
			pod.Spec.Containers[2].SecurityContext.Privileged = ptr(true)
		}, result{Warnings: []string{
			"POD_STARTER_CONTAINERS: allowPrivilegeEscalation of container payload is not false", "POD_STARTER_CONTAINERS: container payload-2 is privileged"}}},
		{"several at once", func(_ *world, pod *corev1.Pod) {
			pod.Spec.Containers[1].Command = nil
			pod.Spec.Containers[2].Env = nil
		}, result{Mistakes: []string{"POD_STARTER_CONTAINERS: container payload has no command", "POD_STARTER_CONTAINERS: container payload-2 lacks"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.backend.opt.Execute = w.sandboxes()
			_ = os.Chmod(w.control, 0o700)
			_ = os.Chmod(w.private, 0o700)
			pod := w.goodPod()
			if tt.change != nil {
				tt.change(w, pod)
			}
			pod.ResourceVersion = "1"
			w.api.Pod = pod
			warnings, err := w.backend.Check(context.Background())
			var mistakes []string
			if err != nil {
				all := (*multierror.Error)(nil)
				if !errors.As(err, &all) {
					t.Fatalf("error %T", err)
				}
				for _, e := range all.Errors {
					mistakes = append(mistakes, e.Error())
				}
				if strings.Count(err.Error(), "\n") != len(mistakes)-1 {
					t.Errorf("not one line each:\n%v", err)
				}
			}
			got := result{shorten(mistakes, tt.want.Mistakes), shorten(warnings, tt.want.Warnings)}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(pod, w.api.Snapshot()); diff != "" {
				t.Errorf("the check changed the pod:\n%s", diff)
			}
		})
	}
}

// shorten cuts each line to the length of the beginning that is wanted.
func shorten(lines, want []string) []string {
	var short []string
	for i, line := range lines {
		if i < len(want) {
			line = line[:min(len(line), len(want[i]))]
		}
		short = append(short, line)
	}
	return short
}

func (w *world) failVerb(which string, err error) {
	w.api.Mu.Lock()
	defer w.api.Mu.Unlock()
	w.api.Fail = func(verb string, _ int) error {
		if verb == which {
			return err
		}
		return nil
	}
}

func TestNewNamesAllMistakes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := New(context.Background(), options.Options{Containers: []string{"payload", "payload", "../x"}, Reset: "never", DigestLifetime: -1, ControlDir: "relative",
		KubernetesDir: "/nonexistent"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, knob := range []string{options.KnobPodName, options.KnobPodNamespace, options.KnobBackend, options.KnobContainers, options.KnobPayloadUID, options.KnobControlDir, options.KnobPrivateDir, options.KnobBindTimeout,
		options.KnobDigestLifetime, options.KnobReset} {
		if !strings.Contains(err.Error(), knob+": ") {
			t.Errorf("%s is not named in\n%v", knob, err)
		}
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines != 11 {
		t.Errorf("%d lines:\n%v", lines, err)
	}
}

func TestNewTakesEnvironment(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	w := newWorld(t, func(o *options.Options) {
		o.Server, o.PodNamespace = "", ""
		o.KubernetesDir = t.TempDir()
		if err := os.WriteFile(o.KubernetesDir+"/namespace", []byte("jobs\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if w.backend.opt.Server != "https://[fd00::1]:443" || w.backend.opt.PodNamespace != "jobs" {
		t.Errorf("server %s, namespace %q", w.backend.opt.Server, w.backend.opt.PodNamespace)
	}
}

// TestClosedRoot: the container's root is kept from files of jobs only by a volume root
// that its owner may not search, others may, and nobody may write to.
func TestClosedRoot(t *testing.T) {
	w := newWorld(t, nil)
	w.backend.opt.Execute = w.sandboxes()
	_ = os.Chmod(w.control, 0o700)
	_ = os.Chmod(w.private, 0o700)
	pod := w.goodPod()
	pod.Spec.Containers = pod.Spec.Containers[:2]
	w.backend.opt.Containers = w.backend.opt.Containers[:1]
	pod.ResourceVersion = "1"
	w.api.Pod = pod
	for mode := range os.FileMode(0o1000) {
		if err := os.Chmod(w.execute, mode); err != nil {
			t.Fatal(err)
		}
		w.backend.root = os.Geteuid()
		_, err := w.backend.Check(context.Background())
		good := mode&0o700 == 0 && mode&0o022 == 0 && mode&0o001 != 0
		if good != (err == nil) {
			t.Errorf("mode %#o: %v", mode, err)
		}
		w.backend.root++
		_, err = w.backend.Check(context.Background())
		m := (*options.Mistake)(nil)
		if want := "spec.initContainers[name=prepare]: (chown 0:0 " + w.execute + "; chmod 0055 " + w.execute + ")"; !errors.As(err, &m) || m.Knob != options.KnobExecute || m.Line != want {
			t.Errorf("mode %#o, and another owner: %v, line %q, want %q", mode, err, m.Line, want)
		}
	}
}
