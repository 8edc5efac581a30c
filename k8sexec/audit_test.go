package k8sexec

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// device has the first payload container ask for a device; the startd is told of those of told.
func (a *auditWorld) device(name corev1.ResourceName, told ...string) {
	a.pod.Spec.Containers[1].Resources.Limits = corev1.ResourceList{name: resource.MustParse("1")}
	a.backend.opt.GPUContainers = told
}

// auditWorld is a pod without any findings, under a policy.
type auditWorld struct {
	*world
	pod  *corev1.Pod
	dir  string // of the token
	exec string
}

func newAuditWorld(t *testing.T) *auditWorld {
	a := &auditWorld{dir: t.TempDir()}
	a.world = newWorld(t, func(o *options.Options) { o.KubernetesDir = a.dir })
	a.exec = a.sandboxes()
	if os.Geteuid() != 0 {
		// Only root can look into a directory that is closed to its owner.
		a.backend.opt.Scratch, a.exec = a.exec, t.TempDir()
	}
	a.backend.opt.Execute = a.exec
	_ = os.Chmod(a.control, 0o700)
	_ = os.Chmod(a.private, 0o700)
	a.token(`{"exp":4000000000,"kubernetes.io":{"namespace":"jobs","pod":{"name":"pilot-0","uid":"uid-1"}}}`)
	a.api.Deny = func(patch string) error {
		if strings.Contains(patch, "labels") || strings.Contains(patch, "check.invalid") || strings.Contains(patch, "tolerations") {
			return denial("podstarter-pilot")
		}
		return nil
	}
	self := filepath.Join(a.proc, "self")
	_ = os.MkdirAll(filepath.Join(self, "ns"), 0o700)
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err != nil || os.Symlink(namespace, filepath.Join(self, "ns/pid")) != nil {
		t.Fatal("no namespace of processes", err)
	}
	a.setContainer(1)
	a.status("self", "CapPrm:\t00000000000405eb\nCapBnd:\t00000000000405eb\nSeccomp:\t2\n")
	a.status(fmt.Sprint(os.Getpid()), "CapPrm:\t00000000000001e0\nCapBnd:\t00000000000001e0\nSeccomp:\t2\n")
	a.pod = a.goodPod()
	a.pod.Annotations = map[string]string{}
	for i, name := range a.backend.opt.Containers {
		a.pod.Annotations[podapi.NonceAnnotation+name] = "nonce"
		c := &a.pod.Spec.Containers[i+1]
		c.Env = append(c.Env, corev1.EnvVar{Name: "NVIDIA_VISIBLE_DEVICES", Value: "void"})
	}
	a.pod.Spec.EnableServiceLinks = ptr(false)
	a.pod.Spec.ServiceAccountName = "glidein"
	limit := resource.MustParse("64Mi")
	for _, name := range []string{"execute", "control", "private", "bin"} {
		a.pod.Spec.Volumes = append(a.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}})
	}
	for i, name := range a.backend.opt.Containers {
		a.volume(i+1, corev1.Volume{Name: "shm-" + name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}, "/dev/shm")
	}
	a.pod.ResourceVersion = "1"
	return a
}

func (a *auditWorld) token(claims string) {
	text := "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	if err := os.WriteFile(filepath.Join(a.dir, "token"), []byte(text), 0o400); err != nil {
		_ = os.Remove(filepath.Join(a.dir, "token"))
		_ = os.WriteFile(filepath.Join(a.dir, "token"), []byte(text), 0o400)
	}
}

func (a *auditWorld) status(process, text string) {
	if err := os.WriteFile(filepath.Join(a.proc, process, "status"), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *auditWorld) wrappers(change ...func(*payload.Hello)) {
	for _, name := range a.backend.opt.Containers {
		startWrapper(a.t, a.control, name, "nonce", "boot", change...)
	}
}

// anyPod gives the pilot a Role that names no pod; answer is the answer to a patch of
// another pod.
func (a *auditWorld) anyPod(answer error) {
	a.api.NeighbourPod = "other"
	a.api.Rights = func(q podapi.Right) bool {
		return q == podapi.Right{Namespace: "jobs", Verb: "patch", Resource: "pods"}
	}
	a.failVerb("patch of other", answer)
}

func denial(policy string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: "pods \"p\" is forbidden: ValidatingAdmissionPolicy '" + policy + "' with binding 'b' denied request: no"}}
}

func (a *auditWorld) volume(container int, v corev1.Volume, at string) {
	a.pod.Spec.Volumes = append(a.pod.Spec.Volumes, v)
	c := &a.pod.Spec.Containers[container]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: at})
}

const applyPolicy = "kubectl apply -k deploy/policy, with system:serviceaccount:jobs:glidein in its condition is-pilot"

func TestAudit(t *testing.T) {
	projected := corev1.Volume{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}}
	older := func(h *payload.Hello) { h.Version = "older" }
	type result []string // grade, what: fix
	tests := []struct {
		name   string
		change func(*auditWorld)
		hello  func(*payload.Hello)
		want   result
		// inContainers: the case is none for a pod whose payload containers are sidecars.
		inContainers bool
	}{
		{name: "nothing wrong"},
		{name: "token of another pod", change: func(a *auditWorld) {
			a.token(`{"exp":4000000000,"kubernetes.io":{"namespace":"jobs","pod":{"name":"pilot-1"}}}`)
		}, want: result{"bad token: POD_STARTER_POD_NAME"}},
		{name: "token of no pod", change: func(a *auditWorld) { a.token(`{"exp":4000000000,"kubernetes.io":{"namespace":"jobs"}}`) },
			want: result{"warn token: spec.volumes[projected].sources[serviceAccountToken]"}},
		{name: "token that is over", change: func(a *auditWorld) {
			a.token(`{"exp":1,"kubernetes.io":{"namespace":"jobs","pod":{"name":"pilot-0"}}}`)
		}, want: result{"bad token: spec.volumes[projected].sources[serviceAccountToken]"}},
		{name: "token that everybody may read", change: func(a *auditWorld) { _ = os.Chmod(filepath.Join(a.dir, "token"), 0o644) },
			want: result{"warn token: spec.volumes[projected].defaultMode: 0400"}},
		{name: "no token", change: func(a *auditWorld) { _ = os.Remove(filepath.Join(a.dir, "token")) },
			want: result{"bad token: POD_STARTER_KUBERNETES_DIR"}},
		{name: "secrets", change: func(a *auditWorld) {
			a.api.Rights = func(q podapi.Right) bool { return q.Resource == "secrets" && q.Verb == "list" }
		},
			want: result{"warn rights beyond those: the Roles bound to service account glidein"}},
		{name: "administrator", change: func(a *auditWorld) { a.api.Rights = func(podapi.Right) bool { return true } },
			want: result{"warn rights beyond those: the Roles bound to service account glidein",
				"warn other pods: resourceNames in the Role, or " + applyPolicy}},
		{name: "rights are not told", change: func(a *auditWorld) { a.failVerb("may", denial("x")) },
			want: result{"warn rights beyond those: allow selfsubjectaccessreviews to authenticated users, as the ClusterRole system:basic-user does"}},
		{name: "neighbours open", change: func(a *auditWorld) { a.anyPod(nil) },
			want: result{"bad other pods: resourceNames in the Role, or " + applyPolicy}},
		{name: "neighbours closed by a policy", change: func(a *auditWorld) { a.anyPod(denial("podstarter-pilot")) }},
		{name: "neighbours closed otherwise", change: func(a *auditWorld) { a.anyPod(context.DeadlineExceeded) },
			want: result{"warn other pods: resourceNames in the Role, or " + applyPolicy}},
		{name: "no neighbour", change: func(a *auditWorld) { a.anyPod(nil); a.api.NeighbourPod = "" },
			want: result{"warn other pods: resourceNames in the Role, or " + applyPolicy}},
		{name: "no policy", change: func(a *auditWorld) { a.api.Deny = nil }, want: result{"warn admission policy: " + applyPolicy}},
		{name: "images refused", change: func(a *auditWorld) {
			deny := a.api.Deny
			a.api.Deny = func(patch string) error {
				if strings.Contains(patch, "@sha256:") {
					return denial("no-digests")
				}
				return deny(patch)
			}
		}, want: result{"warn patches: POD_STARTER_THROWAWAY_TAGS = False", "warn patches: POD_STARTER_THROWAWAY_TAGS = False"}},
		{name: "default image refused", change: func(a *auditWorld) {
			deny := a.api.Deny
			a.api.Deny = func(patch string) error {
				if strings.Contains(patch, `{"name":"payload","image":"registry.example.com/site/default:podstarter-check"`) {
					return denial("podstarter-images")
				}
				return deny(patch)
			}
		}, want: result{"bad patches: the cluster's policies on images, or spec.containers[name=payload].image"}},
		{name: "node's namespaces", change: func(a *auditWorld) {
			a.pod.Spec.HostPID, a.pod.Spec.HostIPC, a.pod.Spec.HostNetwork = true, true, true
		}, want: result{"bad pod: spec.hostPID: false", "bad pod: spec.hostIPC: false", "warn pod: spec.hostNetwork: false"}},
		{name: "service links, no grace", change: func(a *auditWorld) {
			a.pod.Spec.EnableServiceLinks, a.pod.Spec.TerminationGracePeriodSeconds = nil, ptr(int64(0))
		}, want: result{"warn pod: spec.enableServiceLinks: false", "warn pod: spec.terminationGracePeriodSeconds: 5"}},
		{name: "never restarts", change: func(a *auditWorld) { a.pod.Spec.RestartPolicy = corev1.RestartPolicyNever },
			want: result{"bad payload containers: spec.restartPolicy: Always"}},
		{name: "ends", inContainers: true, change: func(a *auditWorld) { a.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure },
			want: result{"bad payload containers: spec.initContainers[name=payload].restartPolicy: Always",
				"bad payload containers: spec.initContainers[name=payload-2].restartPolicy: Always"}},
		{name: "ends, with sidecars", change: func(a *auditWorld) {
			a.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			toSidecars(a.pod)
		}},
		{name: "sidecars, and nobody says that the pilot stops", inContainers: true, change: func(a *auditWorld) {
			toSidecars(a.pod)
			a.pod.Spec.Containers[0].Lifecycle = nil
		}, want: result{"warn payload containers: spec.containers[name=pilot].lifecycle.preStop.exec.command: [/opt/podstarter/bin/condor_pod_starter, -pilot-stops]"}},
		{name: "ends, with one sidecar", inContainers: true, change: func(a *auditWorld) {
			a.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			last := a.pod.Spec.Containers[2]
			toSidecars(a.pod)
			a.pod.Spec.InitContainers, a.pod.Spec.Containers = a.pod.Spec.InitContainers[:1], append(a.pod.Spec.Containers, last)
		}, want: result{"bad payload containers: spec.initContainers[name=payload-2].restartPolicy: Always"}},
		{name: "escalation", change: func(a *auditWorld) { a.pod.Spec.Containers[1].SecurityContext.AllowPrivilegeEscalation = nil },
			want: result{"warn payload containers: spec.containers[name=payload].securityContext.allowPrivilegeEscalation: false"}},
		{name: "no nonce", change: func(a *auditWorld) { a.pod.Spec.Containers[2].Env = a.pod.Spec.Containers[2].Env[1:] },
			want: result{"bad payload containers: spec.containers[name=payload-2].env[name=POD_STARTER_NONCE].valueFrom.fieldRef.fieldPath: metadata.annotations['podstarter/nonce-payload-2']"}},
		{name: "shared user", change: func(a *auditWorld) {
			a.pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr(int64(10002))}
		}, want: result{"bad pod: POD_STARTER_PAYLOAD_UID"}},
		{name: "no limit", change: func(a *auditWorld) { a.pod.Spec.Volumes[1].EmptyDir.SizeLimit = nil },
			want: result{"warn volumes: spec.volumes[name=control].emptyDir.sizeLimit: 64Mi"}},
		{name: "token in a payload container", change: func(a *auditWorld) { a.volume(1, projected, "/var/run/secrets/kubernetes.io/serviceaccount") },
			want: result{"bad container payload: spec.automountServiceAccountToken: false"}},
		{name: "secret and node in a payload container", change: func(a *auditWorld) {
			a.volume(2, corev1.Volume{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}, "/s")
			a.volume(2, corev1.Volume{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}, "/h")
			a.pod.Spec.Containers[2].Env = append(a.pod.Spec.Containers[2].Env, corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}})
		}, want: result{"warn container payload-2: spec.containers[name=payload-2].volumeMounts[name=s]: (remove it)",
			"warn container payload-2: spec.containers[name=payload-2].volumeMounts[name=h]: (remove it)",
			"bad container payload-2: spec.containers[name=payload-2].env[name=PASSWORD]: (remove it)"}},
		{name: "another volume that jobs write to", change: func(a *auditWorld) {
			a.volume(2, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, "/data")
		}, want: result{"warn container payload-2: spec.containers[name=payload-2].volumeMounts[name=data].readOnly: true"}},
		{name: "probe", change: func(a *auditWorld) {
			a.pod.Spec.Containers[1].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}}
		}, want: result{"bad container payload: spec.containers[name=payload].livenessProbe: (remove it)"}},
		{name: "graphics", change: func(a *auditWorld) { a.pod.Spec.Containers[1].Env = a.pod.Spec.Containers[1].Env[:1] },
			want: result{"warn container payload: spec.containers[name=payload].env[name=NVIDIA_VISIBLE_DEVICES].value: void"}},
		{name: "graphics that were asked for", change: func(a *auditWorld) {
			a.pod.Spec.Containers[1].Env = a.pod.Spec.Containers[1].Env[:1]
			a.device("nvidia.com/gpu", "payload")
		}},
		{name: "slice of graphics that the startd is not told of", change: func(a *auditWorld) {
			a.pod.Spec.Containers[1].Env = a.pod.Spec.Containers[1].Env[:1]
			a.device("nvidia.com/mig-1g.5gb")
		}, want: result{"warn container payload: POD_STARTER_GPU_CONTAINERS"}},
		{name: "graphics, and a variable in the plugin's place", change: func(a *auditWorld) { a.device("nvidia.com/gpu", "payload") },
			want: result{"bad container payload: spec.containers[name=payload].env[name=NVIDIA_VISIBLE_DEVICES]: (remove it)"}},
		{name: "graphics of another maker", change: func(a *auditWorld) { a.device("amd.com/gpu", "payload") }},
		{name: "graphics of another maker that the startd is not told of", change: func(a *auditWorld) { a.device("gpu.intel.com/xe") },
			want: result{"warn container payload: POD_STARTER_GPU_CONTAINERS"}},
		{name: "graphics of another maker, without the variable", change: func(a *auditWorld) {
			a.pod.Spec.Containers[1].Env = a.pod.Spec.Containers[1].Env[:1]
			a.device("gpu.intel.com/i915", "payload")
		}, want: result{"warn container payload: spec.containers[name=payload].env[name=NVIDIA_VISIBLE_DEVICES].value: void"}},
		{name: "graphics by a claim", change: func(a *auditWorld) {
			a.pod.Spec.Containers[1].Env = a.pod.Spec.Containers[1].Env[:1]
			a.pod.Spec.Containers[1].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
			a.backend.opt.GPUContainers = []string{"payload"}
		}},
		{name: "graphics that nobody asked for", change: func(a *auditWorld) { a.backend.opt.GPUContainers = []string{"payload"} },
			want: result{"bad container payload: spec.containers[name=payload].resources.limits[nvidia.com/gpu]: 1, or POD_STARTER_GPU_CONTAINERS"}},
		{name: "spares", change: func(a *auditWorld) { a.backend.opt.Spares = 1 }},
		{name: "spares with a device", change: func(a *auditWorld) {
			a.backend.opt.Spares = 1
			a.pod.Spec.Containers[2].Resources.Limits = corev1.ResourceList{"example.com/device": resource.MustParse("1")}
		}, want: result{"bad payload containers: spec.containers[name=payload-2].resources.limits[example.com/device]: (remove it)"}},
		{name: "spares, and several containers may not be patched at once", change: func(a *auditWorld) {
			a.backend.opt.Spares = 1
			deny := a.api.Deny
			a.api.Deny = func(patch string) error {
				if strings.Count(patch, `"image"`) > 1 {
					return denial("one-at-a-time")
				}
				return deny(patch)
			}
		}, want: result{"bad patches: the cluster's policies, or POD_STARTER_SPARES = 0"}},
		{name: "spares, named in another order than the pod's", change: func(a *auditWorld) {
			a.backend.opt.Spares = 1
			slices.Reverse(a.backend.opt.Containers)
		}},
		{name: "old wrapper", hello: older, want: result{
			"warn wrapper in payload: spec.containers[name=payload].command, or the init container that copies the wrapper",
			"warn wrapper in payload-2: spec.containers[name=payload-2].command, or the init container that copies the wrapper"}},
		{name: "wrapper of another binding", hello: func(h *payload.Hello) { h.Nonce = "other" }, want: result{
			"warn wrapper in payload: spec.containers[name=payload].env[name=POD_STARTER_NONCE].valueFrom.fieldRef.fieldPath: metadata.annotations['podstarter/nonce-payload']",
			"warn wrapper in payload-2: spec.containers[name=payload-2].env[name=POD_STARTER_NONCE].valueFrom.fieldRef.fieldPath: metadata.annotations['podstarter/nonce-payload-2']"}},
		{name: "equal capabilities", change: func(a *auditWorld) { a.status("self", "CapPrm:\t00000000000001e0\n") }, want: result{
			"bad wrapper in payload: spec.containers[name=PILOT].securityContext.capabilities.add: (one that the payload container lacks, such as DAC_OVERRIDE)",
			"bad wrapper in payload-2: spec.containers[name=PILOT].securityContext.capabilities.add: (one that the payload container lacks, such as DAC_OVERRIDE)"}},
		{name: "loose wrapper", hello: func(h *payload.Hello) {
			if h.NoNewPrivs = false; h.Boot == "boot" {
				h.Boot = "loose"
			}
		}, change: func(a *auditWorld) {
			a.backend.opt.Containers = a.backend.opt.Containers[:1]
			a.pod.Spec.Containers = a.pod.Spec.Containers[:2]
			a.status(fmt.Sprint(os.Getpid()), "CapPrm:\t0000000000200120\nCapBnd:\t0000000000200120\nSeccomp:\t0\n")
		}, want: result{
			"warn wrapper in payload: spec.containers[name=payload].securityContext.allowPrivilegeEscalation: false",
			"bad wrapper in payload: spec.containers[name=payload].securityContext.capabilities.add: [SETUID]",
			"bad wrapper in payload: spec.containers[name=payload].securityContext.capabilities.add: [SETGID]",
			"warn wrapper in payload: spec.containers[name=payload].securityContext.capabilities: {drop: [ALL], add: [KILL, SETGID, SETPCAP, SETUID]}",
			"warn wrapper in payload: spec.containers[name=payload].securityContext.seccompProfile.type: RuntimeDefault"}},
		{name: "unseen wrapper", hello: func(h *payload.Hello) { h.PIDNamespace = "pid:[1]" }, change: func(a *auditWorld) {
			a.pod.Spec.Containers[1].SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
			a.pod.Spec.Containers[2].SecurityContext.SeccompProfile = &corev1.SeccompProfile{}
		}, want: result{
			"warn wrapper in payload: spec.containers[name=payload].securityContext.seccompProfile.type: RuntimeDefault",
			"warn wrapper in payload: the container runtime",
			"warn wrapper in payload-2: spec.containers[name=payload-2].securityContext.capabilities: {drop: [ALL], add: [KILL, SETGID, SETPCAP, SETUID]}",
			"warn wrapper in payload-2: the container runtime"}},
		{name: "sandboxes out of reach", change: func(a *auditWorld) { _ = os.Chmod(a.exec, 0o700) },
			want: result{"bad sandboxes: chmod 0755 EXECUTE"}},
		{name: "sandboxes anybody's", change: func(a *auditWorld) { _ = os.Chmod(a.exec, 0o777) },
			want: result{"bad sandboxes: chmod 0755 EXECUTE"}},
	}
	for _, tt := range tests {
		run := func(t *testing.T, sidecars bool) {
			a := newAuditWorld(t)
			if tt.hello != nil {
				a.backend.timing.leaseWait = time.Second
			}
			if tt.change != nil {
				tt.change(a)
			}
			if tt.hello != nil {
				a.wrappers(tt.hello)
			} else {
				a.wrappers()
			}
			want := slices.Clone(tt.want)
			if sidecars {
				toSidecars(a.pod)
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], "spec.containers[name=payload", "spec.initContainers[name=payload")
				}
			}
			a.api.Pod = a.pod
			var got result
			for _, f := range a.backend.Audit(context.Background()) {
				if f.Grade == payload.OK != (f.Fix == "") {
					t.Errorf("fix %q of %v", f.Fix, f)
				}
				if f.Grade != payload.OK {
					got = append(got, fmt.Sprintf("%s %s: %s", f.Grade, f.What, strings.ReplaceAll(f.Fix, a.exec, "EXECUTE")))
				}
				if f.Detail == "" {
					t.Errorf("%v says nothing", f)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(a.pod, a.api.Snapshot()); diff != "" {
				t.Errorf("the audit changed the pod:\n%s", diff)
			}
		}
		t.Run(tt.name, func(t *testing.T) { run(t, false) })
		if !tt.inContainers {
			t.Run(tt.name+", sidecars", func(t *testing.T) { run(t, true) })
		}
	}
}

// Without a pod the audit finds little, but reports it.
func TestAuditWithoutAPI(t *testing.T) {
	a := newAuditWorld(t)
	a.failVerb("get", denial("x"))
	found := a.backend.Audit(context.Background())
	last := found[len(found)-1]
	if last.Grade != payload.Bad || last.What != "API server" || last.Fix == "" {
		t.Errorf("%+v", last)
	}
}

func TestNoWrapper(t *testing.T) {
	a := newAuditWorld(t)
	a.api.Pod = a.pod
	bad := 0
	for _, f := range a.backend.Audit(context.Background()) {
		if f.Grade == payload.Bad {
			bad++
			if !strings.HasPrefix(f.What, "wrapper in payload") || !strings.Contains(f.Detail, "running") {
				t.Errorf("%+v", f)
			}
		}
	}
	if bad != len(a.backend.opt.Containers) {
		t.Errorf("%d findings", bad)
	}
}

// TestAuditOutOfTime: containers that nobody looked at are not said to be broken.
func TestAuditOutOfTime(t *testing.T) {
	a := newAuditWorld(t)
	a.wrappers()
	a.api.Pod = a.pod
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.api.Rights = func(podapi.Right) bool { cancel(); return false }
	late := false
	for _, f := range a.backend.Audit(ctx) {
		if strings.HasPrefix(f.What, "wrapper") || f.Grade == payload.Bad {
			t.Errorf("%+v", f)
		}
		late = late || f.What == "time" && f.Grade == payload.Warn && strings.Contains(f.Detail, "payload, payload-2")
	}
	if !late {
		t.Error("the audit does not say that its time was over")
	}
}
