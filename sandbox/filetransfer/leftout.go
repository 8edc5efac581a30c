package filetransfer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"podstarter/sandbox/beneath"
	"podstarter/sandbox/jobfiles"
)

// maxLeftName bounds a name in the text about what was left out, in bytes. Five of them
// fit into a generic event of the job's event log.
const maxLeftName = 120

// leftOutText tells a user what was left out of an upload, in one line of at most 1000
// bytes; it is empty if nothing was.
func leftOutText(kind jobfiles.Kind, left jobfiles.LeftOut) string {
	if left.Count == 0 {
		return ""
	}
	of := "output"
	if kind == jobfiles.Checkpoint {
		of = "checkpoint"
	}
	list := make([]string, len(left.First))
	for i, m := range left.First {
		if list[i] = leftName(m.Name) + " (" + leftReason(m.Err) + ")"; m.Name == "." {
			list[i] = "all of it, as the job's sandbox itself cannot be listed (" + leftReason(m.Err) + ")"
		}
	}
	slices.Sort(list) // names come in the order of the file system
	more := ""
	if n := left.Count - len(left.First); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("Left out of the job's %s, because it cannot be sent: %s%s.", of, strings.Join(list, ", "), more)
}

// leftName is a name that fits into a line of the event log.
func leftName(name string) string {
	name = strings.ToValidUTF8(oneLine(name), "?")
	if len(name) <= maxLeftName {
		return name
	}
	const half = (maxLeftName - len("...")) / 2
	return strings.ToValidUTF8(name[:half]+"..."+name[len(name)-half:], "")
}

func leftReason(err error) string {
	if errors.Is(err, beneath.ErrOutside) {
		return "leads out of the job's sandbox"
	}
	return strerror(errno(err))
}
