package puller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/privatedir"
)

// state is what one use of a puller leaves for the next. Its lease guards it. The zero
// value knows nothing, which costs one GET.
type state struct {
	// PodUID distinguishes a pod from a later one of the same name.
	PodUID string `json:"pod_uid,omitempty"`
	// Spec is the image string in the pod's spec; empty if it is not known for certain.
	Spec string `json:"spec,omitempty"`
	// Withdrawn is the image string that failed, and that Spec has replaced since.
	Withdrawn string `json:"withdrawn,omitempty"`
	// Good is the image string of the container that ran last.
	Good string `json:"good,omitempty"`
	// ContainerID is that of the container that was seen last.
	ContainerID string `json:"container_id,omitempty"`
	// Fetching is the image that a starter fetches, or that was on its way when the
	// starter gave up or died: the kubelet goes on.
	Fetching string `json:"fetching,omitempty"`
}

// maxState bounds the file: a few strings, none longer than an image.
const maxState = 8 * imageref.MaxText

// takeLock guards the choice of a puller. It is held for some reads and writes only.
const takeLock = "pullers.lock"

// puller is one that belongs to this process until release.
type puller struct {
	*Pullers
	name    options.Puller
	private *os.Root
	lock    *os.File
	known   state
	left    string // what an earlier starter left the kubelet at, if anything
}

func (p *puller) release() {
	_ = p.lock.Close()
	_ = p.private.Close()
}

// tryTake leases the first puller that is free, unless another starter fetches the image
// already. It says what the others do if it gets none.
func (p *Pullers) tryTake(private *os.Root, req Request, out, occupied map[options.Puller]bool) (one *puller, others string, err error) {
	unlock, err := lockFile(private, takeLock, unix.LOCK_EX)
	if err != nil {
		return nil, "", err
	}
	defer unlock.Close()
	var free []*puller
	defer func() {
		for _, f := range free {
			_ = f.lock.Close()
		}
	}()
	var doing []string
	image := req.Image.String()
	for _, name := range p.Names {
		if out[name] {
			continue
		}
		lock, err := lockFile(private, "lease."+file(name), unix.LOCK_EX|unix.LOCK_NB)
		known := readState(private, name)
		switch {
		case err == nil && !occupied[name]:
			free = append(free, &puller{Pullers: p, name: name, private: private, lock: lock, known: known})
			continue
		case err == nil:
			_ = lock.Close()
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, "", err
		case known.Fetching == image:
			return nil, fmt.Sprintf("puller %s fetches it for another job", name), nil
		}
		doing = append(doing, fmt.Sprintf("%s fetches %s", name, known.Fetching))
	}
	// The one that had it may have released it since the last look.
	if len(free) == 0 || req.There() {
		return nil, strings.Join(doing, ", "), nil
	}
	one, free = best(free, req.Spec)
	one.left, one.known.Fetching = one.known.Fetching, image
	if err := one.note(); err != nil {
		_ = one.lock.Close()
		return nil, "", err
	}
	return one, "", nil
}

// best prefers a puller that has the image string already, and one whose last pull came
// to an end.
func best(free []*puller, spec string) (one *puller, rest []*puller) {
	at := 0
	rank := func(p *puller) int {
		switch {
		case p.known.Fetching != "":
			return 0
		case p.known.Spec == spec:
			return 2
		}
		return 1
	}
	for i := range free {
		if rank(free[i]) > rank(free[at]) {
			at = i
		}
	}
	one = free[at]
	return one, append(free[:at:at], free[at+1:]...)
}

// note writes the puller's state.
func (p *puller) note() error { return privatedir.WriteJSON(p.private, file(p.name)+".json", p.known) }

// noteOrWarn is for states without which the next use costs one GET more.
func (p *puller) noteOrWarn() {
	if err := p.note(); err != nil {
		p.Log.Warn("cannot note what a puller has", "puller", p.name, "error", err)
	}
}

// readState reads what is known; nothing, if the file cannot be read.
func readState(private *os.Root, name options.Puller) state {
	data, err := privatedir.Read(private, file(name)+".json", maxState)
	if err != nil {
		return state{}
	}
	return decodeState(data)
}

func decodeState(data []byte) (s state) {
	if json.Unmarshal(data, &s) != nil {
		return state{}
	}
	return s
}

// file is the stem of a puller's files. No payload container's name has a dot.
func file(name options.Puller) string { return "puller." + name.Pod + "." + name.Container }

// lockFile locks a file of the private directory. It is never removed: two starters
// could then hold locks on two files of that name.
func lockFile(private *os.Root, name string, how int) (*os.File, error) {
	f, err := private.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) || how&unix.LOCK_NB != 0 {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return f, nil
}
