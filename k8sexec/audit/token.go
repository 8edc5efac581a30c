package audit

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/privatedir"
)

// maxToken bounds what is read of the token's file; tokens have some 1.2 KiB.
const maxToken = 64 << 10

// claims are the parts of a service account's token that matter here (KEP-1205).
type claims struct {
	Expires    int64 `json:"exp"`
	Kubernetes struct {
		Namespace string
		Pod       struct{ Name, UID string }
	} `json:"kubernetes.io"`
}

// readClaims reads a token's claims. It does not check the signature, which only the
// API server can judge.
func readClaims(token string) (claims, bool) {
	var c claims
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return c, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, false
	}
	return c, json.Unmarshal(text, &c) == nil
}

// auditToken checks the pilot's token itself.
func (b *Inspector) auditToken(r *report, now time.Time) {
	const what, fix = "token", "spec.volumes[projected].sources[serviceAccountToken]"
	path := filepath.Join(b.Options.KubernetesDir, "token")
	dir, err := os.OpenRoot(b.Options.KubernetesDir)
	if err != nil {
		r.bad(what, options.KnobKubernetesDir, "%v", err)
		return
	}
	defer dir.Close()
	text, err := privatedir.Read(dir, "token", maxToken)
	if err != nil {
		r.bad(what, options.KnobKubernetesDir, "%v", err)
		return
	}
	if info, err := dir.Stat("token"); err == nil && info.Mode().Perm()&0o077 != 0 {
		r.warn(what, "spec.volumes[projected].defaultMode: 0400", "%s has mode %#o; only root needs it", path, info.Mode().Perm())
	}
	c, ok := readClaims(string(text))
	switch {
	case !ok:
		r.warn(what, fix, "%s is not a service account token that names the pod it is bound to", path)
	case c.Kubernetes.Pod.Name == "":
		r.warn(what, fix, "%s is bound to no pod: it outlives this pod, and no policy can confine it to its own pod", path)
	case c.Kubernetes.Pod.Name != b.Options.PodName || c.Kubernetes.Namespace != b.Options.PodNamespace:
		r.bad(what, options.KnobPodName, "%s is bound to pod %s/%s, and this should be pod %s/%s", path, c.Kubernetes.Namespace, c.Kubernetes.Pod.Name, b.Options.PodNamespace, b.Options.PodName)
	case c.Expires == 0:
		r.warn(what, fix, "%s never expires", path)
	case now.Unix() >= c.Expires:
		r.bad(what, fix, "%s has expired at %s, and the kubelet has not renewed it", path, time.Unix(c.Expires, 0).UTC().Format(time.RFC3339))
	default:
		r.ok(what, "is bound to this pod, and expires")
	}
}
