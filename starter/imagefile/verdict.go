package imagefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"

	"podstarter/condor/image"
	"podstarter/payload"
	"podstarter/payload/imagetree"
	"podstarter/starter/hostprog"
	"podstarter/starter/settings"
	"podstarter/unpacker/fault"
)

// timeKnob bounds the copying as it bounds the pull of an image.
var timeKnob = settings.KnobBindTimeout.Name

// complaint is the last line of an unpacker that failed.
type complaint struct {
	Reason  fault.Reason `json:"reason"`
	Message string       `json:"message"`
}

// words are what an unpacker has said.
type words struct {
	whole      bool      // it wrote the whole image
	complaint  complaint // the zero value if it did not complain
	unconfined []string
}

// outOfMemory is how a Go program exits that got no memory: it has no other message then.
const outOfMemory = 2

// hear reads what the unpacker said and how it ended. It read a hostile image, so what it says
// is not believed further than that the image cannot be used.
func hear(o hostprog.Outcome) words {
	w := words{whole: o.Status.Exited() && o.Status.ExitStatus() == 0 && !o.Late}
	lines := bytes.Split(bytes.TrimSpace(o.Stderr), []byte("\n"))
	first := struct {
		Unconfined []string `json:"unconfined"`
	}{}
	if json.Unmarshal(lines[0], &first) == nil {
		for _, what := range first.Unconfined[:min(len(first.Unconfined), 8)] {
			w.unconfined = append(w.unconfined, plain(what))
		}
	}
	if w.whole {
		return w
	}
	var c complaint
	switch {
	case json.Unmarshal(lines[len(lines)-1], &c) == nil && c.Reason != "":
		w.complaint = complaint{c.Reason, plain(c.Message)}
	case o.Status.Exited() && o.Status.ExitStatus() == outOfMemory && (bytes.Contains(o.Stderr, []byte("out of memory")) || bytes.Contains(o.Stderr, []byte("cannot allocate memory"))):
		w.complaint = complaint{fault.TooLarge, "to read the image takes more memory than a program may have; build the image again"}
	}
	return w
}

// plain is text that can stand in a hold reason.
func plain(text string) string {
	const most = 800
	text = strings.ToValidUTF8(text[:min(len(text), most)], "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// verdict is nil if there was no complaint, or if the unpacker only could not write: the
// container's end knows why.
func (c complaint) verdict(written string) error {
	switch c.Reason {
	case "", fault.Write:
		return nil
	case fault.Confinement:
		return siteTrouble("image %.300q cannot be used on this node: %s", written, c.Message)
	case fault.Read:
		return elsewhere("image %.300q cannot be used on this node: %s", written, c.Message)
	case fault.TooLarge:
		return hold(image.SubcodeFileTooLarge, "image %.300q is too large for a container here: %s", written, c.Message)
	case fault.Architecture:
		return hold(image.SubcodePlatform, "image %.300q cannot be used: %s", written, c.Message)
	}
	return hold(image.SubcodeBadFile, "image %.300q cannot be used: %s", written, c.Message)
}

// reportOf is what the container's end of the pipe said.
func reportOf(exit payload.Exit) (imagetree.Report, error) {
	status := syscall.WaitStatus(exit.WaitStatus)
	switch {
	case exit.Killed != "":
		return imagetree.Report{}, fmt.Errorf("what writes the files was killed: %.100q", exit.Killed)
	case status.Signaled():
		return imagetree.Report{}, fmt.Errorf("what writes the files died of signal %d, perhaps because the container has too little memory", status.Signal())
	case status.ExitStatus() != 0:
		return imagetree.Report{}, fmt.Errorf("what writes the files ended with exit code %d: %.300q", status.ExitStatus(), exit.Output)
	}
	return imagetree.Decode(exit.Output)
}

// ofReport is what it means to the job that the files could not be written.
func ofReport(written string, r imagetree.Report) error {
	err := r.Err()
	switch r.Reason {
	case imagetree.TooLarge:
		return hold(image.SubcodeFileTooLarge, "image %.300q is too large for a container here: %w", written, err)
	case imagetree.Malformed:
		return hold(image.SubcodeBadFile, "image %.300q cannot be used: %w; build the image again", written, err)
	case imagetree.DiskFull:
		return siteTrouble("the node has no room for image %.300q: %w, after %d bytes; the disk of its containers is full", written, err, r.Bytes)
	case imagetree.ReadOnly:
		return siteTrouble("image %.300q cannot be copied into the container: %w; take readOnlyRootFilesystem out of the payload container's manifest", written, err)
	case imagetree.InTheWay:
		return siteTrouble("image %.300q cannot be copied into the container: %w; what is in the way came with the image of %s, or was mounted there by the pod's manifest", written, err, image.KnobCarrier)
	}
	if r.Errno == syscall.ENOSYS {
		return siteTrouble("image %.300q cannot be copied into the container: %w; the node's kernel is too old, it takes Linux 5.6", written, err)
	}
	return elsewhere("image %.300q cannot be copied into the container: %w", written, err)
}
