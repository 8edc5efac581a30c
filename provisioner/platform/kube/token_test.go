package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/template"
)

const tokenVolumes = `    volumes:
    - {name: credentials, secret: {secretName: pool-token}}
    - name: both
      projected: {sources: [{secret: {name: pool-token, items: [{key: token, path: t}]}}, {configMap: {name: c}}]}
    - {name: other, secret: {secretName: other}}
`

// tokenJob and tokenPod have the Secret of a token.
var (
	tokenJob = jobManifest + strings.ReplaceAll("\n"+tokenVolumes, "\n    ", "\n      ")
	tokenPod = podManifest + strings.ReplaceAll("\n"+tokenVolumes, "\n    ", "\n  ")
)

func withToken(manifest string) []template.Template {
	t := templates(manifest)
	t[0].Token = &template.Token{Secret: "pool-token", File: "token", Lifetime: time.Hour}
	return t
}

// tokens is an API server on which units have Secrets.
type tokens struct {
	*world
	minted  int
	mintErr error
	allowed bool
	refuse  error // creating Secrets
}

func newTokens(t *testing.T, manifest string) *tokens {
	t.Helper()
	w := &tokens{world: newWorld(t, jobManifest), allowed: true}
	w.manifest = manifest
	uids := 0
	w.client.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		switch o := a.(clienttesting.CreateAction).GetObject().(type) {
		case *authorizationv1.SelfSubjectAccessReview:
			if r := o.Spec.ResourceAttributes; r.Verb != "create" || r.Resource != "secrets" || r.Namespace != "ns" || r.Group != "" {
				t.Errorf("it asks for %+v", r)
			}
			o.Status.Allowed = w.allowed
			return true, o, nil
		case *corev1.Secret:
			if w.refuse != nil {
				return true, nil, w.refuse
			}
		case metav1.Object:
			uids++
			o.SetUID(types.UID(fmt.Sprint("uid-", uids)))
		}
		return false, nil, nil
	})
	// Nothing but creating is allowed.
	for _, verb := range []string{"get", "list", "watch", "update", "patch", "delete"} {
		w.client.PrependReactor(verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			t.Errorf("it does %s secrets", verb)
			return true, nil, errors.New("no right")
		})
	}
	w.cluster = w.again()
	return w
}

// again is a provisioner that starts anew.
func (w *tokens) again() *Cluster {
	c, err := New(w.t.Context(), w.client, "site", "ns", DefaultGPU, withToken(w.manifest), func(context.Context, template.Token) (string, error) {
		w.minted++
		return fmt.Sprint("token-", w.minted), w.mintErr
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// secret looks a Secret up past the reactors.
func (w *tokens) secret(name string) *corev1.Secret {
	o, err := w.client.Tracker().Get(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "ns", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o.(*corev1.Secret)
}

func TestTokenOfAUnit(t *testing.T) {
	for kind, manifest := range map[string]string{"Job": tokenJob, "Pod": tokenPod} {
		t.Run(kind, func(t *testing.T) {
			w := newTokens(t, manifest)
			if err := w.cluster.Create(t.Context(), spec1); err != nil {
				t.Fatal(err)
			}
			s := w.secret(spec1.Name)
			if s == nil || string(s.Data["token"]) != "token-1" || s.Immutable == nil || !*s.Immutable || s.Labels[labelProvisioner] != "site" {
				t.Fatalf("the Secret is %+v", s)
			}
			if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != kind || s.OwnerReferences[0].Name != spec1.Name || s.OwnerReferences[0].UID == "" || s.OwnerReferences[0].BlockOwnerDeletion != nil {
				t.Errorf("it belongs to %+v", s.OwnerReferences)
			}
			pod := w.pod(spec1.Name)
			v := pod.Spec.Volumes
			if v[0].Secret.SecretName != spec1.Name || v[1].Projected.Sources[0].Secret.Name != spec1.Name || v[2].Secret.SecretName != "other" {
				t.Errorf("the volumes are %+v", v)
			}
			// Nobody who reads pods sees it.
			if strings.Contains(fmt.Sprintf("%+v", pod), "token-1") {
				t.Error("the token is in the pod")
			}
			if err := w.cluster.Mend(t.Context()); err != nil || w.minted != 1 {
				t.Errorf("mending makes %d tokens, %v", w.minted, err)
			}
		})
	}
}

// A provisioner that ends between the unit and its Secret leaves a pod that waits.
func TestTokenIsMended(t *testing.T) {
	w := newTokens(t, tokenJob)
	w.refuse = apierrors.NewTimeoutError("no answer", 1)
	if err := w.cluster.Create(t.Context(), spec1); err == nil || errors.Is(err, platform.ErrDenied) {
		t.Fatalf("the error is %v", err)
	}
	w.refuse = nil
	next := w.again()
	if err := next.Mend(t.Context()); err != nil || w.secret(spec1.Name) == nil || w.minted != 2 {
		t.Errorf("the Secret is %v after %d tokens, %v", w.secret(spec1.Name), w.minted, err)
	}
	// It is there now, which the next one cannot know.
	next = w.again()
	for range 3 {
		if err := next.Mend(t.Context()); err != nil || w.minted != 3 {
			t.Errorf("%d tokens, %v", w.minted, err)
		}
	}
	if got := string(w.secret(spec1.Name).Data["token"]); got != "token-2" {
		t.Errorf("the token is %q", got)
	}
	// What runs has its Secret.
	w.Begin(spec1.Name)
	next = w.again()
	if err := next.Mend(t.Context()); err != nil || w.minted != 3 {
		t.Errorf("%d tokens, %v", w.minted, err)
	}
}

// A unit that may not have its Secret would wait for ever.
func TestTokenIsRefused(t *testing.T) {
	w := newTokens(t, tokenJob)
	w.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("exceeded quota"))
	err := w.cluster.Create(t.Context(), spec1)
	if !errors.Is(err, platform.ErrDenied) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("the error is %v", err)
	}
	if jobs, _ := w.client.BatchV1().Jobs("ns").List(t.Context(), metav1.ListOptions{}); len(jobs.Items) != 0 {
		t.Errorf("there are %d jobs", len(jobs.Items))
	}
}

// Without a token there is no unit.
func TestNoToken(t *testing.T) {
	w := newTokens(t, tokenJob)
	w.mintErr = errors.New("no key")
	if err := w.cluster.Create(t.Context(), spec1); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("the error is %v", err)
	}
	if all, err := w.cluster.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("there are %v, %v", all, err)
	}
}

func TestTokenWithoutTheRight(t *testing.T) {
	w := newTokens(t, tokenJob)
	w.allowed = false
	_, err := New(t.Context(), w.client, "site", "ns", DefaultGPU, withToken(tokenJob), func(context.Context, template.Token) (string, error) { return "", nil })
	if err == nil || !strings.Contains(err.Error(), "add deploy/components/provisioner-tokens") {
		t.Errorf("the error is %v", err)
	}
	if _, err := New(t.Context(), w.client, "site", "ns", DefaultGPU, templates(jobManifest), nil); err != nil {
		t.Errorf("without tokens no such right is needed: %v", err)
	}
}

func TestManifestsThatHaveNoToken(t *testing.T) {
	for want, text := range map[string]string{
		"no volume has the Secret pool-token":   jobManifest,
		"has the Secret pool-token as optional": strings.Replace(tokenJob, "secretName: pool-token", "secretName: pool-token, optional: true", 1),
		"takes other items":                     strings.Replace(tokenJob, "key: token", "key: password", 1),
	} {
		if _, err := parse(withToken(text)[0], DefaultGPU); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// A Secret that is there before its unit is another one's: that of a unit with the
// same name, which goes with it in a moment.
func TestTokenOfAnEarlierUnit(t *testing.T) {
	w := newTokens(t, tokenJob)
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: spec1.Name, Namespace: "ns"}}
	if err := w.client.Tracker().Add(old); err != nil {
		t.Fatal(err)
	}
	if err := w.cluster.Create(t.Context(), spec1); err == nil || errors.Is(err, platform.ErrDenied) {
		t.Errorf("the error is %v", err)
	}
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := w.cluster.jobs.Get(spec1.Name); err == nil {
			break // the watch has shown it
		} else if time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	if err := w.cluster.Mend(t.Context()); err == nil {
		t.Error("the other Secret counts")
	}
	if err := w.client.Tracker().Delete(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "ns", spec1.Name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.cluster.Mend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.secret(spec1.Name); s == nil || string(s.Data["token"]) != "token-3" {
		t.Errorf("the Secret is %+v", s)
	}
}
