package k8sexec

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"podstarter/k8sexec/imageref"
	"podstarter/payload"
)

// takeFresh gives the container that was made ahead, if it runs the image that is asked
// for. One that has not announced itself yet gets a moment: it is in one of the
// kubelet's next turns, and a patch would be in a later one. If it does not come, the
// binding goes on as if it had failed, which known then says.
func (l *lease) takeFresh(ctx context.Context, req payload.BindRequest, known *slot) *container {
	if !known.Fresh {
		return nil
	}
	b := l.backend
	ready := *known
	known.Fresh = false
	img, err := l.wanted(req.Image, ready)
	if err != nil || !l.isReady(img, ready) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.timing.recall)
	defer cancel()
	client, err := payload.Dial(ctx, payload.Options{Dir: l.controlDir(), Nonce: ready.Nonce, Log: b.log})
	if err == nil {
		if err = b.genuine(client, l.name, ready.Program); err != nil {
			_ = client.Close()
		}
	}
	if err != nil {
		b.log.Info("container that was made ahead cannot be used, making a new one", "container", l.name, "image", img, "error", err)
		known.Nonce = "" // it came to no container, as far as anybody knows
		return nil
	}
	c := newContainer(l, client, plan{image: img, spec: ready.Spec, digest: digestIn(ready.Spec)}, ready)
	c.how = payload.Ahead
	known.Owner, known.Boot, known.ContainerID, known.Proven = req.Owner, client.Hello().Boot, c.id, true
	known.Job = known.Image
	l.warmed(req.Written, img, c.digest)
	return c
}

// isReady says whether the container was made ahead with that image. It may not have
// announced itself yet.
func (l *lease) isReady(img imageref.Image, known slot) bool {
	return known.Fresh && known.Nonce != "" && known.Image == img.String() && l.stillCurrent(img, known)
}

// tick is the most by which the time of a file may lie behind the clock (time(7), jiffies).
const tick = 10 * time.Millisecond

// isAnnounced says whether a wrapper has put its socket there since the container was
// bound. It asks nobody, since a wrapper talks to one starter at a time.
func (b *Backend) isAnnounced(container string, known slot) bool {
	info, err := os.Lstat(filepath.Join(b.opt.ControlDir, container, payload.SocketName))
	return err == nil && info.ModTime().After(known.Bound.Add(-tick))
}

// isOverdue says whether a container that was made ahead should have announced itself.
func (b *Backend) isOverdue(container string, known slot) bool {
	age := time.Since(known.Bound)
	return (age < 0 || age > b.timing.ahead) && !b.isAnnounced(container, known)
}
