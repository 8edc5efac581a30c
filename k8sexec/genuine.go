package k8sexec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// genuine makes sure that the process that announced itself runs the file that the
// pod's command names, and not one that an image put in its place: the second of two
// defences, see package audit. The check needs a pilot that can see and inspect the
// process; a pilot without root cannot.
func (b *Backend) genuine(client *payload.Client, container, program string) error {
	if !client.SharesPIDNamespace() || program == "" {
		return nil
	}
	runs, err := os.Readlink(filepath.Join(b.proc, strconv.Itoa(client.Hello().PID), "exe"))
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil
	case err != nil:
		return fmt.Errorf("find out which program the wrapper of container %s runs: %w", container, err)
	}
	// A wrapper whose file was replaced in its volume keeps running.
	if runs = strings.TrimSuffix(runs, " (deleted)"); runs != program {
		return fmt.Errorf("what announced itself in container %s runs %q and not the pod's command %s: the image has put a program in the wrapper's place", container, runs, program)
	}
	return nil
}

// programOf is the program that the pod's command names for a container; empty if it has none.
func programOf(pod *corev1.Pod, container string) string {
	if c := podapi.SpecOf(pod, container); c != nil && len(c.Command) > 0 {
		return c.Command[0]
	}
	return ""
}
