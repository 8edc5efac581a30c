package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// settle finds out whether the image or the pod is to blame for a failure that either
// can cause. It ignores whatever the image may have written, and how often the failure
// happened. Instead it binds the site's own image, the one that the pod was created
// with. If the wrapper works with that, the job's image is at fault, and the pod takes
// the next job; if not, no job will run here.
//
// If the default image cannot be tried, and the wrapper has worked in this container,
// settle blames the image, once; otherwise the job goes elsewhere. One image's failure
// does not condemn the pod.
//
// The error is the cause of ctx's end.
func (l *lease) settle(ctx context.Context, req payload.BindRequest, j verdict.Judgement) (verdict.Judgement, error) {
	b := l.backend
	known, err := readSlot(l.private, l.name)
	if err != nil {
		b.log.Warn("cannot read what is known of the payload container", "container", l.name, "error", err)
	}
	if isDefault(req) {
		return j, nil
	}
	if isDefaultImage(j.Failure.Image, known) {
		return j.OnPod("It is the pod's default image."), nil
	}
	b.log.Info("trying the default image, to see whether image or pod is to blame", "container", l.name, "image", j.Failure.Image, "default", known.DefaultImage, "error", &j.Failure)
	req.Report(fmt.Sprintf("container %s: %s; trying the pod's default image, to see whether image or pod is to blame", l.name, j.Failure.Reason))
	c, err := l.bindInTime(ctx, payload.BindRequest{Activation: req.Activation, Report: req.Report})
	if err == nil {
		c.close()
		if j.Cleared != verdict.ToUser {
			j.Class, j.Says = j.Cleared, j.OfImage+" The pod's default image can be started."
			return j, nil
		}
		return l.blameImage(j, "With the pod's default image it works."), nil
	}
	f := (*verdict.Failure)(nil)
	if !errors.As(err, &f) {
		return j, err
	}
	other := verdict.Judge(*f)
	b.log.Warn("the default image cannot be bound either", "container", l.name, "blame", other.Verdict().Blame, "error", f)
	switch {
	case other.Suspect, other.Class == verdict.ToPilot:
		return j.OnPod("The pod's default image fails, too."), nil
	case known.Proven && j.Cleared == verdict.ToUser:
		if known, err = readSlot(l.private, l.name); err == nil {
			known.Proven = false
			l.note(known)
		}
		return l.blameImage(j, "With other images it has worked here."), nil
	}
	j.Class, j.Subcode = verdict.ToElsewhere, 0
	j.Says = fmt.Sprintf("%s It could not be found out whether the image or the pod is to blame, since the pod's default image cannot be tried at the moment (%s).", j.OfImage, f.Reason)
	return j, nil
}

// blameImage makes the judgement on an image that keeps the wrapper from working.
func (l *lease) blameImage(j verdict.Judgement, why string) verdict.Judgement {
	opt := l.backend.opt
	places := []string{"its wrapper", opt.ControlDir}
	if opt.Execute != "" {
		places = append(places, opt.Execute)
	}
	last := len(places) - 1
	j.Class, j.Subcode = verdict.ToUser, verdict.SubcodeBadImage
	j.Says = fmt.Sprintf("%s %s The pod's volumes go over the image: it must have no link, file, volume or closed directory on the way to %s or %s, and no variable that keeps a program in Go from starting.",
		j.OfImage, why, strings.Join(places[:last], ", "), places[last])
	return j
}

// isDefaultImage says whether the pod was created with the image of this name.
func isDefaultImage(name string, known slot) bool {
	img, err := imageref.Parse(known.DefaultImage)
	return err == nil && img.String() == name
}
