package k8sexec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/opencontainers/go-digest"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/podapi"
)

// lesson is a container whose image is known for certain: its wrapper announced the
// nonce that was patched into the pod together with the image. Its status, when it
// appears, shows the image's digest.
//
// The certainty matters. The status of a pod may show a container of the old image
// beside the new spec, and a digest filed under the wrong tag would run the wrong
// program in somebody's name. So the status must have the container ID that the
// wrapper's process shows.
type lesson struct {
	container string // ID
	image     imageref.Image
}

// lessons are the open ones, at most two: the status of a container whose job was short
// may appear only during the next binding.
type lessons struct {
	lease *lease
	open  []lesson
}

// add opens a lesson if there is something to learn.
func (s *lessons) add(containerID string, img imageref.Image) {
	opt := s.lease.backend.opt
	if containerID == "" || !img.IsMoving() || !opt.ThrowawayTags || opt.DigestLifetime <= 0 {
		return
	}
	if _, known := s.lease.digests().lookup(img); known {
		return
	}
	s.open = append(s.open, lesson{containerID, img})
}

// addLast opens the lesson of the binding before.
func (s *lessons) addLast(known slot) {
	img, err := imageref.Parse(known.Image)
	if err == nil {
		s.add(known.ContainerID, img)
	}
}

// take learns what a state of the pod shows. It calls done with each digest, which is
// empty if the runtime does not report one.
func (s *lessons) take(pod *corev1.Pod, done func(lesson, digest.Digest)) {
	status := podapi.StatusOf(pod, s.lease.name)
	if status.ImageID == "" {
		return
	}
	var still []lesson
	for _, one := range s.open {
		if one.container != podapi.BareID(status.ContainerID) {
			still = append(still, one)
			continue
		}
		d := s.lease.learn(status, one.image)
		if d == "" {
			s.lease.backend.log.Debug("the runtime reports no digest of this repository", "image", one.image, "image_id", status.ImageID)
		}
		if done != nil {
			done(one, d)
		}
	}
	s.open = still
}
