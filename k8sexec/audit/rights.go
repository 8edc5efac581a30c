package audit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// excess are rights that a pilot should not have, each with the harm that it allows.
func (b *Inspector) excess() []struct {
	podapi.Right
	harm string
} {
	ns, rbac := b.Options.PodNamespace, "rbac.authorization.k8s.io"
	return []struct {
		podapi.Right
		harm string
	}{
		{podapi.Right{Verb: "*", Group: "*", Resource: "*"}, "everything in the cluster"},
		{podapi.Right{Verb: "get", Resource: "secrets"}, "read every password of the cluster"},
		{podapi.Right{Verb: "create", Resource: "pods"}, "run anything anywhere"},
		{podapi.Right{Namespace: ns, Verb: "*", Group: "*", Resource: "*"}, "everything in the namespace"},
		{podapi.Right{Namespace: ns, Verb: "get", Resource: "secrets"}, "read every password of the namespace"},
		{podapi.Right{Namespace: ns, Verb: "list", Resource: "secrets"}, "read every password of the namespace"},
		{podapi.Right{Namespace: ns, Verb: "create", Resource: "pods"}, "run anything, as any service account of the namespace"},
		{podapi.Right{Namespace: ns, Verb: "delete", Resource: "pods"}, "end other pods"},
		{podapi.Right{Namespace: ns, Verb: "update", Resource: "pods"}, "replace other pods"},
		{podapi.Right{Namespace: ns, Verb: "create", Resource: "pods", Subresource: "exec"}, "run programs in other pods"},
		{podapi.Right{Namespace: ns, Verb: "patch", Resource: "pods", Subresource: "ephemeralcontainers"}, "put containers into other pods"},
		{podapi.Right{Namespace: ns, Verb: "patch", Resource: "pods", Subresource: "status"}, "forge what the kubelet says"},
		{podapi.Right{Namespace: ns, Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, "become any service account of the namespace"},
		{podapi.Right{Namespace: ns, Verb: "patch", Group: rbac, Resource: "roles"}, "give itself rights"},
		{podapi.Right{Namespace: ns, Verb: "create", Group: rbac, Resource: "rolebindings"}, "give itself rights"},
	}
}

// auditRights looks for rights that the pilot does not need, and checks whether a
// policy confines the one that it does need.
func (b *Inspector) auditRights(ctx context.Context, pod *corev1.Pod, r *report) {
	const what = "rights beyond those"
	api, err := b.Connect()
	if err != nil {
		return
	}
	account := pod.Spec.ServiceAccountName
	fix := fmt.Sprintf("the Roles bound to service account %s", account)
	before := len(r.found)
	for _, e := range b.excess() {
		may, err := api.May(ctx, e.Right)
		if err != nil {
			r.warn(what, "allow selfsubjectaccessreviews to authenticated users, as the ClusterRole system:basic-user does", "cannot be found out: %s", verdict.OfAPI(err).Message)
			return
		}
		if may {
			r.warn(what, fix, "service account %s may %s, that is, %s", account, e.Right, e.harm)
		}
		if may && e.Verb == "*" {
			break // the others follow from it
		}
	}
	if len(r.found) == before {
		r.ok(what, "none of the %d that would do harm", len(b.excess()))
	}
	all, err := api.May(ctx, podapi.Right{Namespace: b.Options.PodNamespace, Verb: "patch", Resource: "pods"})
	if err != nil {
		return
	}
	b.auditPolicy(ctx, pod, all, r)
	if all {
		b.auditNeighbour(ctx, pod, api, r)
	}
}

// applyPolicy is the command that makes a policy confine the token. A policy that does
// not know the pilot's account lets everything through.
func (b *Inspector) applyPolicy(pod *corev1.Pod) string {
	return fmt.Sprintf("kubectl apply -k deploy/policy, with system:serviceaccount:%s:%s in its condition is-pilot", b.Options.PodNamespace, pod.Spec.ServiceAccountName)
}

// auditNeighbour tries to patch another pod. A token whose Role names no pod can do
// that unless a policy denies it. It is a dry run.
func (b *Inspector) auditNeighbour(ctx context.Context, pod *corev1.Pod, api podapi.API, r *report) {
	const what = "other pods"
	fix := "resourceNames in the Role, or " + b.applyPolicy(pod)
	name, err := api.Neighbour(ctx)
	switch {
	case err != nil:
		r.warn(what, fix, "the Role lets this token patch every pod of the namespace; cannot find out whether a policy denies that: %s", verdict.OfAPI(err).Message)
		return
	case name == "":
		r.warn(what, fix, "the Role lets this token patch every pod of the namespace; there is no other pod on which to test whether a policy denies that")
		return
	}
	patch, err := podapi.AnnotationPatch("podstarter/check", "x")
	if err == nil {
		err = api.TryPatchOf(ctx, name, patch)
	}
	switch {
	case err == nil:
		r.bad(what, fix, "this token may patch pod %s and all others of the namespace: a pilot can take over any of them", name)
	case verdict.IsAdmission(verdict.Worded(err)):
		r.ok(what, "the Role names none, but a policy keeps this token from pod %s", name)
	default:
		r.warn(what, fix, "cannot find out whether this token may patch pod %s: %s", name, verdict.OfAPI(err).Message)
	}
}

// auditPolicy tries patches that a policy should deny. They are dry runs.
func (b *Inspector) auditPolicy(ctx context.Context, pod *corev1.Pod, all bool, r *report) {
	const what = "admission policy"
	fix := b.applyPolicy(pod)
	tolerations := append(append([]corev1.Toleration{}, pod.Spec.Tolerations...), corev1.Toleration{Key: "podstarter/check", Operator: corev1.TolerationOpExists})
	attempts := []struct {
		what  string
		patch any
	}{
		{"labels", meta(map[string]any{"labels": map[string]string{"podstarter-check": "x"}})},
		{"others' annotations", meta(map[string]any{"annotations": map[string]string{"check.invalid/x": "x"}})},
		{"tolerations", map[string]any{"spec": map[string]any{"tolerations": tolerations}}},
	}
	if pilot := b.pilot(pod); pilot != nil {
		attempts = append(attempts, struct {
			what  string
			patch any
		}{"the image of container " + pilot.Name, containerImage(pilot.Name, "check.invalid/x:1")})
	}
	var may []string
	for _, a := range attempts {
		switch err := b.tryPatch(ctx, a.patch); {
		case err == nil:
			may = append(may, a.what)
		case !verdict.IsAdmission(verdict.Worded(err)):
			r.warn(what, fix, "cannot find out whether a patch of %s is denied: %s", a.what, verdict.OfAPI(err).Message)
			return
		}
	}
	switch {
	case len(may) > 0 && all:
		r.warn(what, fix, "no admission policy confines this token, and its Role names no pod: it may change every pod of the namespace, and %s of its own", plural(may))
	case len(may) > 0:
		r.warn(what, fix, "no admission policy confines this token: it may change %s of this pod", plural(may))
	case all:
		r.ok(what, "denies what a pilot need not change")
	default:
		r.ok(what, "denies what a pilot need not change, and the Role names this pod alone")
	}
}

func meta(fields map[string]any) any { return map[string]any{"metadata": fields} }

func containerImage(name, image string) any {
	return map[string]any{"spec": map[string]any{"containers": []map[string]string{{"name": name, "image": image}}}}
}

// pilot is the first container that is not a payload container. A sidecar is none: it must
// run before the pod's own containers, and the pod ends without it.
func (b *Inspector) pilot(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; !b.isPayload(c.Name) {
			return c
		}
	}
	return nil
}
