// Command condor_pod_unpacker turns a container image, which is a SIF, a squashfs, a directory, or a tar archive of the
// layers that a registry has, into a tar stream on its standard output.
//
//	condor_pod_unpacker [-fd N] [-arch ARCH] [-layers N] [-require-landlock] [-progress TIME] [-describe] [bounds] <IMAGE
//
// Every byte of a SIF may be hostile, and what reads it is a lot of code. So this is a program of its
// own, without rights: before it reads the first byte it gives up the file system, the network and
// other processes. Run it as a user with no rights, and give it a time limit.
//
// The exit code is 0 only if the whole stream was written. Otherwise the last line on
// standard error is a JSON object with "reason" (package fault) and "message". If the kernel ends the program, or Go's
// runtime does because no memory is left, there is no such line. A line with "unconfined" may come first; it lists what
// the kernel could not take away. Lines between them have a [progress].
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/internal/buildinfo"
	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
	"podstarter/unpacker/tree"
)

// outBuffer joins headers and small files; the blocks of large ones pass it by.
const outBuffer = 64 << 10

func main() {
	debug.SetMemoryLimit(memoryTarget)
	debug.SetTraceback("none")
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options are what the command line says.
type options struct {
	fd              int
	arch            string
	layers          int
	bounds          tarstream.Bounds
	describe        bool
	requireLandlock bool
	version         bool
	progress        time.Duration // until the first word about it; 0 for none
	confined        bool
	tree            bool // the image is a directory
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("condor_pod_unpacker", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.fd, "fd", 0, "`DESCRIPTOR` of the image, opened for reading")
	flags.StringVar(&o.arch, "arch", runtime.GOARCH, "`ARCHITECTURE` that a SIF must be for, in Go's words; empty for any")
	flags.IntVar(&o.layers, "layers", 0, "the image is a tar archive of so `MANY` layers, the lowest first; it may be a pipe")
	flags.Int64Var(&o.bounds.Bytes, "max-bytes", 200<<30, "the most `BYTES` that all files together may have, unpacked")
	flags.Int64Var(&o.bounds.Entries, "max-entries", 10_000_000, "the most `FILES` and directories")
	flags.IntVar(&o.bounds.Depth, "max-depth", 255, "the most `NAMES` in a path, at most 1000")
	flags.IntVar(&o.bounds.Target, "max-link", 4096, "the longest target of a symbolic link, in `BYTES`")
	flags.BoolVar(&o.describe, "describe", false, "print a JSON object about a SIF or squashfs instead of the stream")
	flags.BoolVar(&o.requireLandlock, "require-landlock", false, "fail if the kernel cannot confine this program completely")
	flags.DurationVar(&o.progress, "progress", 0, "say on standard error how far the stream is after this `TIME`, and on and on after twice as long, at most a minute; 0 for never")
	flags.BoolVar(&o.version, "version", false, "print the version")
	flags.BoolVar(&o.confined, again[1:], false, "for the program itself: it has started itself again, confined")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = errors.New("condor_pod_unpacker takes no arguments except flags; the image is a descriptor")
	case o.fd < 0 || o.fd == 1 || o.fd == 2:
		err = errors.New("-fd must be 0 or above 2")
	case o.layers < 0, o.layers > 0 && o.describe:
		err = errors.New("-layers is negative, or with -describe, which reads no layers")
	case o.progress < 0:
		err = errors.New("-progress is negative")
	case o.bounds.Bytes < 0 || o.bounds.Entries < 0 || o.bounds.Depth < 0 || o.bounds.Target < 0 || o.bounds.Depth > tree.MaxDepth:
		err = errors.New("a bound is negative, or -max-depth is above 1000")
	}
	if err != nil {
		fmt.Fprintln(usage, err)
	}
	return o, err
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err != nil {
		return 2
	}
	if o.version {
		fmt.Fprintln(stdout, buildinfo.Version())
		return 0
	}
	if err := attempt(o, args, stdout, stderr); err != nil {
		report(stderr, err)
		return 1
	}
	return 0
}

// attempt confines this process and does its work. A panic is an error of the image.
func attempt(o options, args []string, stdout, stderr io.Writer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Malformed, "unpack the image: the program did not expect what is in it: %.500v", r)
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(o.fd, &st); err != nil {
		return fault.New(fault.Read, "look at descriptor %d, which should be the image: %w", o.fd, err)
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFREG && (kind != unix.S_IFDIR || o.layers > 0) && (kind != unix.S_IFIFO || o.layers == 0) {
		return fault.New(fault.NoImage, "look at descriptor %d, which should be the image: it is neither a file nor a directory", o.fd)
	}
	o.tree = kind == unix.S_IFDIR
	if err := restrict(o, args, stderr); err != nil {
		return err
	}
	return unpack(o, st.Size, stdout, stderr)
}

// restrict confines this process, which may mean that it starts again and never returns.
func restrict(o options, args []string, stderr io.Writer) error {
	var missing []string
	if o.confined {
		missing = confined(o)
	} else {
		missing = prepare(o, args)
		missing = append(missing, filtered(o)...)
	}
	if len(missing) == 0 {
		return nil
	}
	if o.requireLandlock {
		return fault.New(fault.Confinement, "confine the program before it reads the image: %s", strings.Join(missing, "; "))
	}
	line(stderr, map[string]any{"unconfined": missing})
	return nil
}

// unpack writes the stream, or the description.
func unpack(o options, size int64, stdout, stderr io.Writer) error {
	out := bufio.NewWriterSize(stdout, outBuffer)
	if o.describe {
		d, err := describe(o, size)
		if err != nil {
			return err
		}
		line(out, d)
	} else if err := stream(o, size, out, stderr); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fault.New(fault.Write, "write to standard output: %w", err)
	}
	return nil
}

// advice is what the reader of a message can do.
var advice = map[fault.Reason]string{
	fault.Truncated:              "copy or download the image again",
	fault.Encrypted:              "decrypt the image, or build it without encryption",
	fault.Ext3:                   "build the image again with a current version of Apptainer, which makes a squashfs",
	fault.Architecture:           "use an image for this architecture, or a machine of the image's",
	fault.NoImage:                "give a SIF, a squashfs or a directory with an unpacked image",
	fault.UnsupportedCompression: "build the image again with gzip, xz, lz4 or zstd",
	fault.TooLarge:               "use a smaller image, or raise the bound",
	fault.Malformed:              "build the image again",
	fault.Read:                   "see whether the image's file system works, and whether everybody may read all of the image",
	fault.Write:                  "see why the program that takes the stream ended",
	fault.Confinement:            "use a kernel with Landlock (Linux 5.13), or leave out -require-landlock",
}

// report writes the last line.
func report(w io.Writer, err error) {
	reason := fault.Of(err)
	line(w, map[string]any{"reason": reason, "message": fmt.Sprintf("%v; %s", err, advice[reason])})
}

// line writes one JSON object.
func line(w io.Writer, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{"reason":"malformed","message":"the message cannot be written as JSON"}`)
	}
	fmt.Fprintf(w, "%s\n", b)
}
