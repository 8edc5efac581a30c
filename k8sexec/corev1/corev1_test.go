package corev1

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// whole are the types that must have all fields, because two values of them are compared.
var whole = map[reflect.Type]bool{
	reflect.TypeFor[VolumeMount](): true, reflect.TypeFor[SecurityContext](): true, reflect.TypeFor[SeccompProfile](): true,
	reflect.TypeFor[Capabilities](): true, reflect.TypeFor[ResourceClaim](): true, reflect.TypeFor[LocalObjectReference](): true,
}

// TestFields: each field has the name, the name in JSON and the kind that Kubernetes' own type has.
func TestFields(t *testing.T) {
	alike(t, "Pod", reflect.TypeFor[Pod](), reflect.TypeFor[apiv1.Pod]())
	alike(t, "Status", reflect.TypeFor[Status](), reflect.TypeFor[metav1.Status]())
}

func alike(t *testing.T, path string, ours, theirs reflect.Type) {
	t.Helper()
	switch {
	case ours == theirs, ours == reflect.TypeFor[json.RawMessage](), ours == reflect.TypeFor[time.Time]() && theirs == reflect.TypeFor[metav1.Time]():
		return
	case ours.Kind() == reflect.Int && theirs.Kind() == reflect.Int32: // wider
		return
	case ours.Kind() != theirs.Kind():
		t.Errorf("%s is a %s, and %s is a %s", path, ours.Kind(), theirs, theirs.Kind())
		return
	}
	switch ours.Kind() {
	case reflect.Pointer, reflect.Slice:
		alike(t, path, ours.Elem(), theirs.Elem())
	case reflect.Map:
		alike(t, path+" key", ours.Key(), theirs.Key())
		alike(t, path+" value", ours.Elem(), theirs.Elem())
	case reflect.Struct:
		for f := range fields(ours) {
			at := path + "." + f.Name
			like, ok := theirs.FieldByName(f.Name)
			if !ok {
				t.Errorf("%s has no field %s", theirs, f.Name)
				continue
			}
			if one, other := jsonName(f), jsonName(like); one != other {
				t.Errorf("%s is %q in JSON, and that of %s is %q", at, one, theirs, other)
			}
			alike(t, at, f.Type, like.Type)
		}
		for f := range fields(theirs) {
			if _, ok := ours.FieldByName(f.Name); whole[ours] && !ok {
				t.Errorf("%s lacks field %s of %s", path, f.Name, theirs)
			}
		}
	}
}

func fields(of reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range of.NumField() {
			if !yield(of.Field(i)) {
				return
			}
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// TestConstants: each constant has the value that Kubernetes' own has.
func TestConstants(t *testing.T) {
	for _, c := range []struct{ ours, theirs any }{
		{RestartPolicyAlways, apiv1.RestartPolicyAlways}, {RestartPolicyOnFailure, apiv1.RestartPolicyOnFailure}, {RestartPolicyNever, apiv1.RestartPolicyNever},
		{DefaultTerminationGracePeriodSeconds, apiv1.DefaultTerminationGracePeriodSeconds}, {TolerationOpExists, apiv1.TolerationOpExists},
		{PodSucceeded, apiv1.PodSucceeded}, {PodFailed, apiv1.PodFailed}, {PodQOSGuaranteed, apiv1.PodQOSGuaranteed},
		{DisruptionTarget, apiv1.DisruptionTarget}, {PodResizePending, apiv1.PodResizePending}, {PodResizeInProgress, apiv1.PodResizeInProgress},
		{ConditionTrue, apiv1.ConditionTrue}, {ContainerRestartPolicyAlways, apiv1.ContainerRestartPolicyAlways}, {NotRequired, apiv1.NotRequired},
		{PullAlways, apiv1.PullAlways}, {PullNever, apiv1.PullNever}, {PullIfNotPresent, apiv1.PullIfNotPresent},
		{ResourceCPU, apiv1.ResourceCPU}, {ResourceMemory, apiv1.ResourceMemory}, {ResourceEphemeralStorage, apiv1.ResourceEphemeralStorage},
		{ResourceHugePagesPrefix, apiv1.ResourceHugePagesPrefix}, {StatusReasonForbidden, metav1.StatusReasonForbidden},
		{StatusReasonNotFound, metav1.StatusReasonNotFound}, {StatusReasonConflict, metav1.StatusReasonConflict}, {StatusReasonGone, metav1.StatusReasonGone},
		{StatusReasonInvalid, metav1.StatusReasonInvalid}, {StatusReasonServerTimeout, metav1.StatusReasonServerTimeout},
		{StatusReasonTimeout, metav1.StatusReasonTimeout}, {StatusReasonTooManyRequests, metav1.StatusReasonTooManyRequests},
		{StatusReasonExpired, metav1.StatusReasonExpired}, {StatusReasonInternalError, metav1.StatusReasonInternalError},
		{StatusReasonServiceUnavailable, metav1.StatusReasonServiceUnavailable},
	} {
		one, other := reflect.ValueOf(c.ours), reflect.ValueOf(c.theirs)
		if !one.CanConvert(other.Type()) || one.Convert(other.Type()).Interface() != c.theirs {
			t.Errorf("%v of %T, want %v of %T", c.ours, c.ours, c.theirs, c.theirs)
		}
	}
}

// TestDecode: what a real pod says is read as Kubernetes' own type reads it.
func TestDecode(t *testing.T) {
	const text = `{"kind":"Pod","metadata":{"name":"pilot-0","uid":"u","deletionTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"manager":"kubelet"}],"annotations":{"a":"b"}},
		"spec":{"containers":[{"name":"payload","resources":{"limits":{"cpu":"1500m","memory":"1Gi"}},"securityContext":{"seLinuxOptions":{"level":"s0"},"capabilities":{"drop":["ALL"]}},
		"env":[{"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"5Gi"}},{"name":"nfs","nfs":{"server":"x","path":"/"}}]},
		"status":{"phase":"Failed","containerStatuses":[{"name":"payload","state":{"terminated":{"exitCode":137,"finishedAt":"2026-01-02T03:04:05Z"}},"restartCount":2}]}}`
	var pod Pod
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := []any{pod.Name, pod.UID, *pod.DeletionTimestamp, pod.Annotations["a"], c.Resources.Limits.Cpu().MilliValue(), c.Resources.Limits.Memory().Value(),
		c.Resources.Limits.StorageEphemeral().IsZero(), string(c.SecurityContext.SELinuxOptions), c.SecurityContext.Capabilities.Drop, c.Env[0].ValueFrom.SecretKeyRef.Name,
		pod.Spec.Volumes[0].EmptyDir.SizeLimit.String(), pod.Spec.Volumes[1].VolumeSource, pod.Status.Phase, pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt}
	want := []any{"pilot-0", UID("u"), at, "b", int64(1500), int64(1 << 30), true, `{"level":"s0"}`, []Capability{"ALL"}, "s", "5Gi", VolumeSource{}, PodFailed, at}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIsForbidden(t *testing.T) {
	for err, want := range map[error]bool{
		&StatusError{Status: Status{Reason: StatusReasonForbidden}}: true,
		&StatusError{Status: Status{Code: http.StatusForbidden}}:    true,
		&StatusError{Status: Status{Code: http.StatusUnauthorized}}: false,
		os.ErrPermission: false,
	} {
		if got := IsForbidden(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
