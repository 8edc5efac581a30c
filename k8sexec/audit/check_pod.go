package audit

import (
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// checkPod compares the pod's spec with what bindings rely on. The API server cannot
// change most of it in a running pod: a mistake stays until the pod is made anew, so it
// is reported at once.
func (b *Inspector) checkPod(pod *corev1.Pod, f *findings) {
	b.checkRestarts(pod, f)
	if !b.Self.IsRoot() {
		b.checkRootless(pod, f)
	}
	for _, name := range b.Options.Containers {
		c := podapi.SpecOf(pod, name)
		if c == nil {
			b.checkAbsent(pod, name, f)
			continue
		}
		b.checkContainer(c, pod.Spec.SecurityContext, f)
		b.checkVolumes(pod, c, f)
	}
	b.checkSpares(pod, f)
	b.checkStop(pod, f)
}

// checkStop makes sure that a job in a sidecar learns of the end of its pod while it may
// retire; see pilotstop.
func (b *Inspector) checkStop(pod *corev1.Pod, f *findings) {
	hooked := func(c corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }
	for _, name := range b.Options.Containers {
		if podapi.IsSidecar(pod, name) && !slices.ContainsFunc(pod.Spec.Containers, hooked) {
			f.warn(options.KnobContainers, "payload container %s is a sidecar, which the kubelet tells last that the pod ends, and the pilot's container has no preStop hook; "+
				"a job that may retire (MAXJOBRETIREMENTTIME) is not asked to end", name).
				at("", "containers[name=pilot].lifecycle.preStop.exec.command: [/opt/podstarter/bin/condor_pod_starter, -pilot-stops]")
			return
		}
	}
}

// checkRestarts makes sure that the kubelet starts a payload container again, whatever
// became of its last image, and says in the pod's status why it cannot.
func (b *Inspector) checkRestarts(pod *corev1.Pod, f *findings) {
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyAlways:
	case corev1.RestartPolicyOnFailure:
		for _, name := range b.Options.Containers {
			if podapi.SpecOf(pod, name) != nil && !podapi.IsSidecar(pod, name) {
				f.bad(options.KnobBackend, "the pod's restartPolicy is %s, with which container %s would stay down if it ever ended with 0, and would keep the pod from ending; "+
					"make it a sidecar: put it below initContainers, with restartPolicy: Always of its own", pod.Spec.RestartPolicy, name).
					at("", "initContainers[name="+name+"].restartPolicy: Always")
			}
		}
	default:
		// kubelet_pods.go:convertToAPIContainerStatuses, container/helpers.go:ShouldContainerBeRestarted.
		f.bad(options.KnobBackend, "the pod's restartPolicy is %s, with which the kubelet does not say why an image cannot be pulled; set it to Always, "+
			"or, for a pod that is to end, to OnFailure with sidecars as payload containers", pod.Spec.RestartPolicy).
			at("", "restartPolicy: Always")
	}
}

// checkAbsent says what a pod has that lacks a payload container.
func (b *Inspector) checkAbsent(pod *corev1.Pod, name string, f *findings) {
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name }) {
		f.bad(options.KnobContainers, "init container %s ends before jobs run; a payload container there needs restartPolicy: Always of its own", name).
			at("", "initContainers[name="+name+"].restartPolicy: Always")
		return
	}
	var has []string
	for _, c := range podapi.Containers(pod) {
		has = append(has, c.Name)
	}
	f.bad(options.KnobContainers, "pod %s has no container %s, it has %s", pod.Name, name, quoted(has))
}

// checkContainer checks the settings that a payload container needs.
func (b *Inspector) checkContainer(c *corev1.Container, pod *corev1.PodSecurityContext, f *findings) {
	if len(c.Command) == 0 {
		f.bad(options.KnobContainers, "container %s has no command; without it the user's image decides what runs", c.Name).
			at(c.Name, "command: ["+wrapperPath+"]")
	} else if want := filepath.Join(b.Options.ControlDir, c.Name); !hasFlag(append(c.Command[1:], c.Args...), "control", want) {
		f.bad(options.KnobControlDir, "container %s must have the arguments -control %s, it has %s", c.Name, want, quoted(c.Args)).
			at(c.Name, "args: [-control, "+want+"]")
	}
	checkCommand(c, f)
	if c.WorkingDir == "" {
		f.bad(options.KnobContainers, "container %s has no workingDir; set it to /, or an image whose own does not exist cannot be run", c.Name).
			at(c.Name, "workingDir: /")
	}
	if c.ImagePullPolicy == corev1.PullAlways || c.ImagePullPolicy == corev1.PullNever {
		f.bad(options.KnobContainers, "the imagePullPolicy of container %s is %s; set it to IfNotPresent", c.Name, c.ImagePullPolicy).
			at(c.Name, "imagePullPolicy: IfNotPresent")
	}
	if c.Lifecycle != nil && (c.Lifecycle.PreStop != nil || c.Lifecycle.PostStart != nil) {
		f.bad(options.KnobContainers, "container %s has lifecycle hooks, which would run programs of the user's image as root; remove them", c.Name).
			at(c.Name, "lifecycle: (remove it)")
	}
	checkNonce(c, f)
	checkSecurity(c, pod, f)
}

// hasFlag looks for -name value or -name=value, with one dash or two.
func hasFlag(args []string, name, value string) bool {
	for i, arg := range args {
		bare := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		if bare == name && bare != arg && i+1 < len(args) && filepath.Clean(args[i+1]) == value {
			return true
		}
		if given, found := strings.CutPrefix(bare, name+"="); found && bare != arg && filepath.Clean(given) == value {
			return true
		}
	}
	return false
}

// checkNonce looks for the variable that ties a wrapper to its binding.
func checkNonce(c *corev1.Container, f *findings) {
	want := "metadata.annotations['" + podapi.NonceAnnotation + c.Name + "']"
	for _, e := range c.Env {
		if e.Name != payload.NonceEnv {
			continue
		}
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil || e.ValueFrom.FieldRef.FieldPath != want {
			f.bad(options.KnobContainers, "the variable %s of container %s must come from a fieldRef to %s", payload.NonceEnv, c.Name, want).
				at(c.Name, nonceLine(want))
		}
		return
	}
	f.bad(options.KnobContainers, "container %s lacks the variable %s with a fieldRef to %s", c.Name, payload.NonceEnv, want).
		at(c.Name, nonceLine(want))
}

// nonceLine is the manifest's line that gives the container its nonce.
func nonceLine(path string) string {
	return "env[name=" + payload.NonceEnv + "].valueFrom.fieldRef.fieldPath: " + path
}

// checkSecurity checks the settings that contain a hostile image.
func checkSecurity(c *corev1.Container, pod *corev1.PodSecurityContext, f *findings) {
	sc := c.SecurityContext
	if sc == nil || sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation {
		f.warn(options.KnobContainers, "allowPrivilegeEscalation of container %s is not false; set it, beside the wrapper's own no_new_privs", c.Name).
			at(c.Name, "securityContext.allowPrivilegeEscalation: false")
	}
	if sc != nil && sc.Privileged != nil && *sc.Privileged {
		f.warn(options.KnobContainers, "container %s is privileged; it should not be", c.Name).
			at(c.Name, "securityContext.privileged: false")
	}
	user := (*int64)(nil)
	if pod != nil {
		user = pod.RunAsUser
	}
	if sc != nil && sc.RunAsUser != nil {
		user = sc.RunAsUser
	}
	if user == nil || *user != 0 {
		f.bad(options.KnobPayloadUID, "container %s must have runAsUser 0: its wrapper switches to the payload's user, and an image's own user must not matter", c.Name).
			at(c.Name, "securityContext.runAsUser: 0")
	}
}
