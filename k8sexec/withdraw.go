package k8sexec

import (
	"context"

	"podstarter/k8sexec/jointpatch"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// withdraw puts the pod's own image in the place of one that did not come to a container.
// Otherwise the kubelet would try it again and again after the job has gone, and each try
// that hangs would keep all slots of the pod waiting. Nobody waits for the container.
func (l *lease) withdraw(ctx context.Context) {
	b := l.backend
	known, err := readSlot(l.private, l.name)
	if err != nil || known.Spec == "" || known.DefaultImage == "" || !known.Bound.IsZero() {
		return // nothing is there to withdraw, or not known for certain
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.pod.Times.Call)
	defer cancel()
	nonce := podapi.NewNonce()
	p, err := l.choose(ctx, payload.BindRequest{Activation: "withdrawn"}, nonce, &known)
	if err != nil || p.spec == known.Spec || digestIn(known.Spec) != "" && digestIn(known.Spec) == p.digest {
		return
	}
	api, err := b.connect()
	if err == nil {
		_, err = jointpatch.Patch(ctx, l.private, api, p.binding(l.name, nonce, known)) // once: the next binding does as well
	}
	if err != nil {
		b.log.Warn("cannot take back an image that did not come", "container", l.name, "image", known.Spec, "error", err)
		p.spec = "" // the pod may have either
	}
	known.Spec, known.Withdrawn = p.spec, known.Spec
	l.note(known)
}
