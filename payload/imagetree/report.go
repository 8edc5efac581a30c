// Package imagetree writes the files of an image over the root of a container that is already
// running. The files come as a tar stream, and the container began with an image that is all but
// empty. So a container can have the files of an image that is in no registry.
//
// The wrapper's program does this inside the container, under the name [Program], as
// container-root without capabilities, and prints a [Report]. Whoever made the stream read an
// image that a user chose, so nothing in it is believed: a name cannot lead out of the
// container's own file system, a file cannot give rights to whoever executes it, and counts and
// sizes are bounded. What the container runtime has mounted stays as it is.
//
// The package imports the standard library and golang.org/x/sys only, since the wrapper imports it.
package imagetree

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is the name (argv[0]) under which the wrapper's program reads a tar stream from its
// standard input, writes the files below /, prints a [Report], and ends.
const Program = "condor_pod_imagetree"

// Limits bound what a stream may write.
type Limits struct {
	Bytes   int64 // contents of all files
	Entries int64 // files, directories and links
}

// Order is what [Program] is told to do.
type Order struct {
	Limits Limits
	// Account is added to the image's users; the zero value for none.
	Account Account
	// Again says that the files are those of an earlier job, whose account goes.
	Again bool
	// Layers says that the files are those of an image's layers, the lowest first: one may lie below what is a link by then, or
	// in a directory that no layer has, and entries with a [Record] remove what was written before them.
	Layers bool
}

// The arguments for [Order].Again and [Order].Layers.
const (
	again  = "again"
	layers = "layers"
)

// Args is the argument vector of [Program].
func (o Order) Args() []string {
	args := []string{Program, strconv.FormatInt(o.Limits.Bytes, 10), strconv.FormatInt(o.Limits.Entries, 10)}
	if o.Account != (Account{}) {
		args = append(args, o.Account.Name, strconv.Itoa(o.Account.UID), strconv.Itoa(o.Account.GID), o.Account.Home)
	}
	if o.Again {
		args = append(args, again)
	}
	if o.Layers {
		args = append(args, layers)
	}
	return args
}

func parseArgs(args []string) (Order, error) {
	const least, most = 3, 7
	var o Order
	usage := fmt.Errorf("usage: %s MAX-BYTES MAX-ENTRIES [USER UID GID HOME] [%s] [%s]", Program, again, layers)
	for n := len(args); n > least && n != most; n = len(args) {
		switch args[n-1] {
		case again:
			o.Again = true
		case layers:
			o.Layers = true
		default:
			return Order{}, usage
		}
		args = args[:n-1]
	}
	if len(args) != least && len(args) != most {
		return Order{}, usage
	}
	var err1, err2 error
	o.Limits.Bytes, err1 = strconv.ParseInt(args[1], 10, 64)
	o.Limits.Entries, err2 = strconv.ParseInt(args[2], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Order{}, fmt.Errorf("read the limits: %w", err)
	}
	if o.Limits.Bytes < 0 || o.Limits.Entries < 0 {
		return Order{}, fmt.Errorf("read the limits: %d bytes and %d entries are less than none", o.Limits.Bytes, o.Limits.Entries)
	}
	if len(args) == most {
		o.Account.Name, o.Account.Home = args[3], args[6]
		o.Account.UID, err1 = strconv.Atoi(args[4])
		o.Account.GID, err2 = strconv.Atoi(args[5])
		if err := errors.Join(err1, err2, o.Account.check()); err != nil {
			return Order{}, fmt.Errorf("read the account: %w", err)
		}
	}
	return o, nil
}

// Reason says in one word why an image was not written.
type Reason string

const (
	// Malformed: the stream is not what it should be, or a name in it is not safe.
	Malformed Reason = "malformed"
	// TooLarge: there is more than the [Limits] allow.
	TooLarge Reason = "too-large"
	// DiskFull: the node's disk, the container's quota, or its inodes.
	DiskFull Reason = "disk-full"
	// ReadOnly: the container's root file system cannot be written to.
	ReadOnly Reason = "read-only"
	// InTheWay: the container has something in an entry's place that cannot be removed.
	InTheWay Reason = "in-the-way"
	// Failed: the kernel refused something else.
	Failed Reason = "failed"
)

var reasons = []Reason{Malformed, TooLarge, DiskFull, ReadOnly, InTheWay, Failed}

// Report is how the writing ended.
type Report struct {
	// Entries and Bytes count what was written.
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Skipped counts device nodes, which an unprivileged container cannot have.
	Skipped int64 `json:"skipped,omitempty"`
	// Mounted are the first few paths of the image that were left out, because the container
	// runtime has mounted something there; MountedCount counts all entries left out.
	Mounted      []string `json:"mounted,omitempty"`
	MountedCount int64    `json:"mounted_count,omitempty"`
	// Reason is empty if all was written.
	Reason Reason `json:"reason,omitempty"`
	// Path is the entry at which the writing ended, as in the image.
	Path string `json:"path,omitempty"`
	// Errno is the system's reason; 0 if the system had none.
	Errno syscall.Errno `json:"errno,omitempty"`
	// Message is the reason in words.
	Message string `json:"message,omitempty"`
}

const (
	// maxReport bounds a report in bytes: what a program's captured output may have.
	maxReport = 32 << 10
	// maxMounted is how many paths a report names. Each text has at most maxText bytes, of which
	// JSON makes up to six times as many.
	maxMounted = 4
	maxText    = 512
)

// Decode reads a report. Its bytes come out of a container, so it accepts no more than
// [Program] prints.
func Decode(data []byte) (Report, error) {
	var r Report
	if len(data) > maxReport {
		return r, fmt.Errorf("a report about an image's files has %d bytes, and may have %d", len(data), maxReport)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Report{}, fmt.Errorf("decode a report about an image's files: %w", err)
	}
	if r.Reason != "" && !slices.Contains(reasons, r.Reason) {
		return Report{}, fmt.Errorf("a report about an image's files has the reason %.40q", r.Reason)
	}
	if min(r.Entries, r.Bytes, r.Skipped, r.MountedCount) < 0 || len(r.Mounted) > maxMounted {
		return Report{}, errors.New("a report about an image's files has impossible numbers")
	}
	for _, text := range append([]string{r.Path, r.Message}, r.Mounted...) {
		if text != printable(text) {
			return Report{}, fmt.Errorf("a report about an image's files has the text %.80q", text)
		}
	}
	return r, nil
}

// because is the report of a writing that ended at an entry.
func (r Report) because(at string, err error) Report {
	r.Reason, r.Errno = reasonOf(err)
	if f := (*failure)(nil); errors.As(err, &f) {
		r.Reason = f.reason
	}
	r.Path, r.Message = printable(at), printable(err.Error())
	return r
}

// Err is nil if all was written.
func (r Report) Err() error {
	if r.Reason == "" {
		return nil
	}
	return fmt.Errorf("write the image's file %q: %s", r.Path, r.Message)
}

// printable is text as a report may have it: a name in an image can have any byte.
func printable(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxText)], "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// reasonOf sorts the kernel's refusals.
func reasonOf(err error) (Reason, syscall.Errno) {
	var errno syscall.Errno
	_ = errors.As(err, &errno)
	switch errno {
	case unix.ENOSPC, unix.EDQUOT:
		return DiskFull, errno
	case unix.EROFS:
		return ReadOnly, errno
	case unix.ENAMETOOLONG, unix.ELOOP:
		return Malformed, errno
	case unix.EBUSY, unix.ENOTEMPTY, unix.EEXIST:
		return InTheWay, errno
	}
	return Failed, errno
}
