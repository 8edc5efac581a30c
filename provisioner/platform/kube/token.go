package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-multierror"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/template"
)

// Mint makes a token.
type Mint func(ctx context.Context, t template.Token) (string, error)

// atOnce is how many Secrets one call of Mend makes; each is a run of a tool.
const atOnce = 20

// checkToken checks that a manifest has the Secret of a token in a volume, so that
// the pod does not begin without it.
func checkToken(pod *corev1.PodSpec, t *template.Token) error {
	if t == nil {
		return nil
	}
	found := false
	for i := range pod.Volumes {
		for _, s := range secrets(&pod.Volumes[i], t.Secret) {
			found = true
			if s.optional != nil && *s.optional {
				return fmt.Errorf("the volume %s has the Secret %s as optional; a pod could begin before its token is there, so take that out", pod.Volumes[i].Name, t.Secret)
			}
			if len(s.items) > 0 && !slices.ContainsFunc(s.items, func(k corev1.KeyToPath) bool { return k.Key == t.File }) {
				return fmt.Errorf("the volume %s takes other items of the Secret %s than the token's file %s", pod.Volumes[i].Name, t.Secret, t.File)
			}
		}
	}
	if !found {
		return fmt.Errorf("no volume has the Secret %s, in which each pod's token is to come", t.Secret)
	}
	return nil
}

// reference is where a volume names a Secret.
type reference struct {
	name     *string
	items    []corev1.KeyToPath
	optional *bool
}

// secrets returns the references of a volume to a Secret.
func secrets(v *corev1.Volume, name string) []reference {
	var all []reference
	if s := v.Secret; s != nil && s.SecretName == name {
		all = append(all, reference{&s.SecretName, s.Items, s.Optional})
	}
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			if s := v.Projected.Sources[i].Secret; s != nil && s.Name == name {
				all = append(all, reference{&s.Name, s.Items, s.Optional})
			}
		}
	}
	return all
}

// own makes the volumes of a unit have its own Secret, which is called as the unit.
func (m manifest) own(pod *corev1.PodSpec, unit string) {
	if m.token == nil {
		return
	}
	for i := range pod.Volumes {
		for _, s := range secrets(&pod.Volumes[i], m.token.Secret) {
			*s.name = unit
		}
	}
}

// mayKeepTokens asks whether Secrets may be created, if a template needs that.
// Otherwise the first pod would tell, in the middle of the night.
func (c *Cluster) mayKeepTokens(ctx context.Context) error {
	for name, m := range c.manifests {
		if m.token == nil {
			continue
		}
		if c.mint == nil {
			return fmt.Errorf("the template %s has a token, and nothing here makes tokens", name)
		}
		review, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: c.namespace, Verb: "create", Resource: "secrets"}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("asking whether secrets may be created in the namespace %s: %w", c.namespace, err)
		}
		if !review.Status.Allowed {
			return fmt.Errorf("the template %s has a token, which needs the right to create secrets in the namespace %s; add deploy/components/provisioner-tokens, or take the token out", name, c.namespace)
		}
		return nil
	}
	return nil
}

// token makes the token of a new unit, or returns an empty string if units of the
// manifest have none.
func (c *Cluster) token(ctx context.Context, m manifest) (string, error) {
	if m.token == nil {
		return "", nil
	}
	return c.mint(ctx, *m.token)
}

func ownedBy(o metav1.Object, kind schema.GroupVersionKind) metav1.OwnerReference {
	// Not as a controller, which it is not; and without a block on the owner's
	// deletion, which would need a further right.
	return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: o.GetName(), UID: o.GetUID()}
}

// keep makes the Secret of a unit that is there. The unit is its owner, so that it
// goes with it; this is why the unit comes first, and its pod waits. A unit whose
// Secret is refused would wait for ever, so it is withdrawn. fresh says that the unit
// was made just now, so that a Secret with its name is that of an earlier unit, and
// goes with it.
func (c *Cluster) keep(ctx context.Context, m manifest, s platform.Spec, owner metav1.OwnerReference, token string, fresh bool) error {
	immutable := true
	secret := &corev1.Secret{Type: corev1.SecretTypeOpaque, Immutable: &immutable, Data: map[string][]byte{m.token.File: []byte(token)}}
	meta(&secret.ObjectMeta, c.name, c.namespace, s)
	secret.OwnerReferences = []metav1.OwnerReference{owner}
	_, err := c.client.CoreV1().Secrets(c.namespace).Create(ctx, secret, metav1.CreateOptions{})
	c.mu.Lock()
	usurped := apierrors.IsAlreadyExists(err) && (fresh || c.usurped[s.Name])
	switch {
	case usurped:
		c.usurped[s.Name] = true
	case err == nil || apierrors.IsAlreadyExists(err):
		c.secured[s.Name] = true
		delete(c.usurped, s.Name)
	}
	c.mu.Unlock()
	switch {
	case usurped:
		return fmt.Errorf("making the Secret with the token of %s, which is tried again: an earlier pod's Secret has the name: %w", s.Name, err)
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		err = fmt.Errorf("%w: making the Secret with the token of %s: %w", platform.ErrDenied, s.Name, err)
		if away := c.Withdraw(ctx, s.Name); away != nil {
			err = errors.Join(err, fmt.Errorf("withdrawing %s, which waits for it: %w", s.Name, away))
		}
		return err
	}
	return fmt.Errorf("making the Secret with the token of %s, which is tried again: %w", s.Name, err)
}

// Mend implements platform.Mender: it makes the Secrets of units that have not begun
// and may have none. Secrets cannot be read here, so that after a restart it tries
// this once for each.
func (c *Cluster) Mend(ctx context.Context) error {
	open, err := c.unsecured()
	if err != nil {
		return err
	}
	var wrong *multierror.Error
	for _, u := range open[:min(len(open), atOnce)] {
		m := c.manifests[u.spec.Template]
		token, err := c.token(ctx, m)
		if err != nil {
			return multierror.Append(wrong, err).ErrorOrNil()
		}
		if err := c.keep(ctx, m, u.spec, u.owner, token, false); err != nil {
			wrong = multierror.Append(wrong, err)
		}
	}
	return wrong.ErrorOrNil()
}

// bare is a unit that may have no Secret.
type bare struct {
	spec  platform.Spec
	owner metav1.OwnerReference
}

// unsecured returns the units that have not begun and whose Secret may be missing,
// and forgets those that are gone.
func (c *Cluster) unsecured() ([]bare, error) {
	ours := labels.SelectorFromSet(labels.Set{labelProvisioner: c.name})
	jobs, err := c.jobs.List(ours)
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	pods, err := c.pods.List(ours)
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	owners := map[string]metav1.OwnerReference{}
	for _, j := range jobs {
		owners[j.Name] = ownedBy(j, batchv1.SchemeGroupVersion.WithKind("Job"))
	}
	for _, p := range pods {
		if owner(p) == p.Name {
			owners[p.Name] = ownedBy(p, corev1.SchemeGroupVersion.WithKind("Pod"))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var open []bare
	there := map[string]bool{}
	for _, u := range units(jobs, pods, c.now()) {
		there[u.Name] = true
		o, owned := owners[u.Name]
		if u.Phase == platform.Pending && owned && c.manifests[u.Template].token != nil && !c.secured[u.Name] {
			open = append(open, bare{u.Spec, o})
		}
	}
	for _, names := range []map[string]bool{c.secured, c.usurped} {
		for name := range names {
			if _, new := c.made[name]; !there[name] && !new {
				delete(names, name)
			}
		}
	}
	return open, nil
}
