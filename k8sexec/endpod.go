package k8sexec

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// endSoon is the active deadline that ends a pod, in seconds since the pod was started:
// the smallest that the API server accepts for a pod without one (kubernetes
// pkg/apis/core/validation/validation.go:ValidatePodUpdate).
const endSoon = 1

// EndPod makes the kubelet end the pod by setting a deadline that has passed: the pod's
// phase becomes Failed with the reason DeadlineExceeded within some two seconds, and
// the kubelet starts nothing in it again, whatever its restartPolicy. EndPod does not
// touch a pod that is being deleted or has ended, and refuses one that ends with its pilot, which a
// deadline would make fail. A pull that hangs delays the end, as it
// delays the end by deletion: the kubelet looks at the deadline only when the pull has ended
// (docs/developer/kubelet-rules.md). EndPod needs the permissions get and patch.
func (b *Backend) EndPod(ctx context.Context) error {
	var pod *corev1.Pod
	err := b.pod.Call(ctx, "get", func(ctx context.Context, api podapi.API) (err error) {
		pod, err = api.Get(ctx)
		return err
	})
	if err != nil {
		return b.endFailed(err)
	}
	deadline := pod.Spec.ActiveDeadlineSeconds
	switch {
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded,
		deadline != nil && *deadline <= endSoon:
		b.log.Info("the pod is ending already", "pod", pod.Name, "phase", pod.Status.Phase)
		return nil
	}
	if policy := pod.Spec.RestartPolicy; policy == corev1.RestartPolicyOnFailure || policy == corev1.RestartPolicyNever {
		return fmt.Errorf("end pod %s/%s: its restartPolicy is %s, so that it ends by itself when its pilot does; set POD_STARTER_END_POD = False",
			b.opt.PodNamespace, b.opt.PodName, policy)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"activeDeadlineSeconds": endSoon}})
	if err != nil {
		return b.endFailed(err)
	}
	err = b.pod.Call(ctx, "patch", func(ctx context.Context, api podapi.API) error {
		_, err := api.Patch(ctx, patch, false)
		return err
	})
	if err != nil {
		return b.endFailed(err)
	}
	b.log.Info("the pod ends", "pod", pod.Name)
	return nil
}

func (b *Backend) endFailed(err error) error {
	return fmt.Errorf("end pod %s/%s: %w", b.opt.PodNamespace, b.opt.PodName, verdict.Of(err))
}
