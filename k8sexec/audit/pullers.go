package audit

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// auditPullers checks the pods that get images onto the pilot's node.
func (b *Inspector) auditPullers(ctx context.Context, pod *corev1.Pod, r *report) {
	for _, name := range b.Options.Pullers {
		before := len(r.found)
		what := "puller " + name.String()
		api, err := b.ConnectTo(name.Pod)
		var puller *corev1.Pod
		if err == nil {
			puller, err = api.Get(ctx)
		}
		if err != nil {
			r.bad(what, options.KnobPullers+", or kubectl apply -k deploy/puller", "cannot be used: %s", verdict.OfAPI(err).Message)
			continue
		}
		patch, err := podapi.AnnotationPatch("podstarter/check", "x")
		if err == nil {
			_, err = api.Patch(ctx, patch, true)
		}
		if err != nil {
			r.bad(what, "the Role in deploy/puller; with deploy/policy also the label podstarter/pilot: "+pod.Name+" on the puller",
				"this token may not patch it: %s", verdict.OfAPI(err).Message)
		}
		b.auditPuller(pod, puller, name, what, r)
		if len(r.found) == before {
			r.ok(what, "on this node, with nothing in it that an image could reach")
		}
	}
}

// auditPuller checks the manifest of a puller. It has the images of users, and must run
// nothing of them.
func (b *Inspector) auditPuller(pod, puller *corev1.Pod, name options.Puller, what string, r *report) {
	if puller.Spec.NodeName != pod.Spec.NodeName {
		r.bad(what, "spec.affinity.podAffinity", "it is on node %q and this pod on %q, so that what it pulls is of no use here", puller.Spec.NodeName, pod.Spec.NodeName)
	}
	if puller.Spec.ServiceAccountName != pod.Spec.ServiceAccountName || !slices.Equal(puller.Spec.ImagePullSecrets, pod.Spec.ImagePullSecrets) {
		r.warn(what, "spec.serviceAccountName, spec.imagePullSecrets", "it has another service account or other imagePullSecrets than this pod: what it may pull is not what this pod may use")
	}
	if puller.Spec.AutomountServiceAccountToken == nil || *puller.Spec.AutomountServiceAccountToken {
		r.bad(what, "spec.automountServiceAccountToken: false", "it has a token of the service account, which no puller needs")
	}
	if puller.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		r.bad(what, "spec.restartPolicy: Always", "its container stays down after the first image that cannot be started")
	}
	c := podapi.SpecOf(puller, name.Container)
	if c == nil {
		r.bad(what, options.KnobPullers, "the pod has no container %s", name.Container)
		return
	}
	if !slices.Equal(c.Command, []string{"/proc/slabinfo"}) || !slices.Equal(c.Args, []string{"-hold"}) {
		r.bad(what, line(c.Name, "command: [/proc/slabinfo]")+", args: [-hold]", "it runs a program of the image: %v %v", c.Command, c.Args)
	}
	if c.ImagePullPolicy != corev1.PullIfNotPresent {
		r.bad(what, line(c.Name, "imagePullPolicy: IfNotPresent"), "its imagePullPolicy is %s", c.ImagePullPolicy)
	}
	if len(c.VolumeMounts) != 1 {
		r.warn(what, line(c.Name, "volumeMounts"), "it has other volumes than the wrapper's")
	}
	if s := c.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		r.warn(what, line(c.Name, "securityContext"), "it should have runAsNonRoot: true and allowPrivilegeEscalation: false")
	}
}
