package k8sexec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/privatedir"
)

// slot is what one binding of a payload container leaves for the next, which then need
// not ask the API server before it patches. It is kept in the private directory, and
// the container's lease guards it. The zero value knows nothing, which is always safe:
// it costs one GET.
type slot struct {
	// PodUID distinguishes a pod from a later one of the same name.
	PodUID string `json:"pod_uid,omitempty"`
	// Node is the pod's.
	Node string `json:"node,omitempty"`
	// DefaultImage is the image the container was created with.
	DefaultImage string `json:"default_image,omitempty"`
	// Sidecar says that the container is one of the pod's initContainers.
	Sidecar bool `json:"sidecar,omitempty"`
	// Spec is the image string in the pod's spec; empty when it is not known for
	// certain, for instance because a starter died during its patch.
	Spec string `json:"spec,omitempty"`
	// Withdrawn is the image string that failed, and that Spec has replaced since.
	Withdrawn string `json:"withdrawn,omitempty"`
	// PlainOnly says that a throw-away tag was refused here.
	PlainOnly bool `json:"plain_only,omitempty"`
	// Proven says that the wrapper has run in this container of the pod, and that since
	// then no image has been blamed only for that reason; see lease.settle.
	Proven bool `json:"proven,omitempty"`

	// InUse says that a starter has begun to bind the container and has not given it
	// back. If nobody holds the lease, that starter died with its job.
	InUse bool `json:"in_use,omitempty"`
	// Unproven says that the container was reset after such a death, and that nobody
	// has waited for the end of its processes.
	Unproven bool `json:"unproven,omitempty"`

	// Of the last binding that succeeded:

	Image       string `json:"image,omitempty"` // as asked, spelled out
	Owner       string `json:"owner,omitempty"`
	Nonce       string `json:"nonce,omitempty"`
	Boot        string `json:"boot,omitempty"`
	ContainerID string `json:"container_id,omitempty"` // empty if it could not be found out
	// Files are those that were written over the image's; see filled.
	Files string    `json:"files,omitempty"`
	Bound time.Time `json:"bound,omitzero"`
	// Grace is the pod's grace period, in nanoseconds.
	Grace time.Duration `json:"grace,omitempty"`

	// Fresh says that this binding was made ahead, and that no job has had the container
	// since. Its Boot and ContainerID are not known then, and it may not have announced itself.
	Fresh bool `json:"fresh,omitempty"`
	// Ahead says that a starter was about to make the container new, and that nobody knows
	// whether it did.
	Ahead bool `json:"ahead,omitempty"`
	// Program is the pod's command, of a binding made ahead.
	Program string `json:"program,omitempty"`

	// Job is the image of the latest job that was bound here, and Started the time. They
	// outlive bindings.
	Job     string    `json:"job,omitempty"`
	Started time.Time `json:"started,omitzero"`
}

// maxSlotFile bounds the file: a handful of strings, none longer than an image.
const maxSlotFile = 16 * imageref.MaxText

func slotFile(container string) string { return "slot." + container + ".json" }

// readSlot reads what is known. An unreadable file must not keep a job from running.
func readSlot(dir *os.Root, container string) (slot, error) {
	data, err := privatedir.Read(dir, slotFile(container), maxSlotFile)
	if errors.Is(err, fs.ErrNotExist) {
		return slot{}, nil
	}
	if err != nil {
		return slot{}, err
	}
	return decodeSlot(data)
}

func decodeSlot(data []byte) (slot, error) {
	var s slot
	if err := json.Unmarshal(data, &s); err != nil {
		return slot{}, fmt.Errorf("decode what is known of the payload container: %w", err)
	}
	return s, nil
}

func (s slot) write(dir *os.Root, container string) error {
	return privatedir.WriteJSON(dir, slotFile(container), s)
}

// unbound is the slot from the moment that a patch may have changed the pod: it keeps
// what outlives bindings, and drops the rest, which may not be true any more.
func (s slot) unbound() slot {
	return slot{PodUID: s.PodUID, Node: s.Node, DefaultImage: s.DefaultImage, Sidecar: s.Sidecar, PlainOnly: s.PlainOnly, Proven: s.Proven, InUse: s.InUse,
		Job: s.Job, Started: s.Started}
}

// isAtRest says whether no container of this pod was made anew lately, so that the
// kubelet has nothing left to look at. own is what was known of this lease's container
// before the binding. If nothing is known, the answer is no.
func (l *lease) isAtRest(own slot) bool {
	for _, name := range l.backend.opt.Containers {
		s := own
		if name != l.name {
			var err error
			if s, err = readSlot(l.private, name); err != nil {
				return false
			}
			if s == (slot{}) {
				continue // never bound
			}
		}
		// A binding that is under way or has failed has no time.
		if age := time.Since(s.Bound); s.Bound.IsZero() || age < l.backend.timing.rest {
			return false
		}
	}
	return true
}
