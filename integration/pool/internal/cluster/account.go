package cluster

import (
	"context"
	"net/http"
)

// A BoundAccount is a service account with a token that is bound to a pod, as the kubelet mounts one.
type BoundAccount struct {
	Namespace, Name string
	Pod, PodUID     string
}

// impersonate are the headers with which the administrator acts as the account.
func (b BoundAccount) impersonate() http.Header {
	const extra = "Impersonate-Extra-Authentication.kubernetes.io%2fpod-"
	return http.Header{
		"Impersonate-User":  {"system:serviceaccount:" + b.Namespace + ":" + b.Name},
		"Impersonate-Group": {"system:serviceaccounts", "system:serviceaccounts:" + b.Namespace, "system:authenticated"},
		extra + "name":      {b.Pod},
		extra + "uid":       {b.PodUID},
	}
}

// TryPatch asks, as the account, whether its pod may be patched; nothing is changed.
func (a *API) TryPatch(ctx context.Context, as BoundAccount, patch Object) error {
	p, err := path("Pod", as.Pod)
	if err != nil {
		return err
	}
	return a.do(ctx, as.impersonate(), http.MethodPatch, p+"?dryRun=All", "application/strategic-merge-patch+json", patch, nil)
}
