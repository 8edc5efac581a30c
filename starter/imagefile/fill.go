package imagefile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"

	"podstarter/payload"
	"podstarter/payload/imagetree"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
)

// Filler writes images into containers.
type Filler struct {
	// Unpacker is condor_pod_unpacker in the pilot container.
	Unpacker string
	// Limits bound what an image may have, and Time how long its copying may take.
	Limits imagetree.Limits
	Time   time.Duration
	// Convert runs the unpacker for the job; see [hostprog.Job.Convert].
	Convert func(ctx context.Context, p hostprog.Program) (hostprog.Outcome, error)
	// Activation and Account are the payload's.
	Activation string
	Account    imagetree.Account
	Log        *slog.Logger
}

// Source is an image that can be copied.
type Source interface {
	// Name is the image as somebody wrote it.
	Name() string
	// order is what the container's end has to know of it.
	order() imagetree.Order
	// open gives what the unpacker reads. The caller closes it.
	open(ctx context.Context) (reading, error)
}

// reading is an image that is being read.
type reading struct {
	from *os.File
	args []string // for the unpacker
	// ended, if it is not nil, waits until nothing more comes, after from was closed. Its error is why not all came.
	ended func() error
}

// Container is where the files go: a wrapper that has run no payload yet.
type Container interface {
	Start(ctx context.Context, s payload.Spec, files ...*os.File) (payload.Started, error)
	Wait(ctx context.Context) (payload.Exit, error)
	Sweep(ctx context.Context) error
}

// sweepTime bounds the end of what writes files, after a failure.
const sweepTime = 10 * time.Second

// Fill writes the image's files over those of the container. The error says what becomes of the
// job; the container has a part of the image then, and is of no use.
func (f Filler) Fill(ctx context.Context, i Source, into Container) (Copied, error) {
	began := time.Now()
	f.Log.Info(fmt.Sprintf("Copying the files of image %.300q into the container", i.Name()))
	report, err := f.copy(ctx, i, into)
	if err != nil {
		if sweepErr := f.sweep(ctx, into); sweepErr != nil {
			f.Log.Error("Failed to end what wrote an image's files", "error", sweepErr)
		}
		return Copied{}, err
	}
	if err := f.sweep(ctx, into); err != nil {
		return Copied{}, elsewhere("what wrote the image's files does not end: %w", err)
	}
	copied := Copied{Bytes: report.Bytes, Entries: report.Entries, Took: time.Since(began)}
	f.Log.Info(fmt.Sprintf("The container has the files of image %.300q", i.Name()), "entries", copied.Entries, "bytes", copied.Bytes, "seconds", fmt.Sprintf("%.1f", copied.Took.Seconds()))
	if report.Skipped > 0 || report.MountedCount > 0 {
		f.Log.Info("Not all of the image was copied", "devices", report.Skipped, "mounted", report.MountedCount, "for_example", report.Mounted)
	}
	return copied, nil
}

func (f Filler) sweep(ctx context.Context, c Container) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTime)
	defer cancel()
	return c.Sweep(ctx)
}

// Refit has a container with the files of an earlier job, of the image of that name, know this job's user.
func (f Filler) Refit(ctx context.Context, image string, into Container) error {
	trouble := func(err error) error {
		return elsewhere("the container with the files of image %.300q could not be prepared for another job: %w", image, err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return trouble(err)
	}
	defer read.Close()
	_, err = write.Write(make([]byte, emptyArchive))
	if err = errors.Join(err, write.Close()); err != nil {
		return trouble(err)
	}
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, f.Time, fmt.Errorf("it takes longer than %s (%s)", f.Time, timeKnob))
	defer cancel()
	var exit payload.Exit
	if _, err = into.Start(ctx, f.writer(imagetree.Order{Account: f.Account, Again: true}), read); err == nil {
		exit, err = into.Wait(ctx)
	}
	switch {
	case outer.Err() != nil:
		return context.Cause(outer)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	report := imagetree.Report{}
	if err == nil {
		report, err = reportOf(exit)
	}
	if err == nil && report.Reason != "" {
		err = ofReport(image, report)
	}
	if err = errors.Join(err, f.sweep(ctx, into)); err != nil {
		return trouble(err)
	}
	return nil
}

// emptyArchive is the size of a tar archive without entries, all zeros (tar(5)).
const emptyArchive = 1024

// writer is the start of the program that writes files.
func (f Filler) writer(o imagetree.Order) payload.Spec {
	return payload.Spec{
		Activation: f.Activation, UID: f.Account.UID, GID: f.Account.GID, Path: imagetree.Program, Args: o.Args(), Itself: true, AsRoot: true,
		Dir: "/", Capture: payload.MaxCapture, Passed: []string{payload.Stdin},
	}
}

// copy runs both programs to their ends. If one ends early, the pipe ends the other.
func (f Filler) copy(ctx context.Context, i Source, into Container) (imagetree.Report, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, f.Time)
	defer cancel()
	// ended is the error if it is neither program's.
	ended := func(err error) error {
		switch {
		case outer.Err() != nil:
			return context.Cause(outer)
		case ctx.Err() != nil:
			return elsewhere("image %.300q was not copied into the container within %s (%s)", i.Name(), f.Time, timeKnob)
		}
		return elsewhere("image %.300q could not be copied into the container: %w", i.Name(), err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return imagetree.Report{}, ended(fmt.Errorf("make a pipe: %w", err))
	}
	defer read.Close()
	defer write.Close()
	order := i.order()
	order.Limits = f.Limits
	if !order.Layers { // a user whom the container runtime does not add either
		order.Account = f.Account
	}
	if _, err = into.Start(ctx, f.writer(order), read); err != nil {
		return imagetree.Report{}, ended(fmt.Errorf("start what writes the files: %w", err))
	}
	read.Close() // so that the unpacker learns when the other end is gone
	in, err := i.open(ctx)
	if err != nil {
		return imagetree.Report{}, ended(err)
	}
	unpacked, err := f.Convert(ctx, hostprog.Program{
		Path: f.Unpacker, Dir: "/", Env: []string{}, From: in.from, To: write,
		Args: append(in.args, "-progress", firstProgress.String(), "-max-bytes", strconv.FormatInt(f.Limits.Bytes, 10),
			"-max-entries", strconv.FormatInt(f.Limits.Entries, 10)),
		Heard: &progress{image: i.Name(), began: time.Now(), log: f.Log},
	})
	write.Close()   // so that the other end learns that this is all
	in.from.Close() // so that what feeds it learns that nobody reads
	heard := hear(unpacked)
	var unfed error
	if in.ended != nil {
		unfed = in.ended()
	}
	if errors.Is(unfed, syscall.EPIPE) && (err != nil || !heard.whole) {
		unfed = nil // the unpacker has more to say of why it ended
	}
	switch {
	case unfed != nil && ctx.Err() != nil:
		return imagetree.Report{}, ended(unfed)
	case unfed != nil:
		return imagetree.Report{}, failure.OfBinding(unfed)
	case errors.Is(err, hostprog.ErrNotRun):
		return imagetree.Report{}, siteTrouble("image %.300q could not be copied into the container: %w", i.Name(), err)
	case err != nil:
		return imagetree.Report{}, ended(err)
	}
	if heard.unconfined != nil {
		f.Log.Warn("This node's kernel cannot confine the program that reads images as far as others can", "missing", heard.unconfined)
	}
	if err := heard.complaint.verdict(i.Name()); err != nil {
		return imagetree.Report{}, err
	}
	exit, err := into.Wait(ctx)
	if err != nil {
		return imagetree.Report{}, ended(err)
	}
	report, err := reportOf(exit)
	switch {
	case err != nil:
		return report, ended(err)
	case report.Reason != "" && report.Reason != imagetree.Malformed:
		return report, ofReport(i.Name(), report)
	case !heard.whole:
		// The rest of the stream is missing, which says nothing of the image.
		return report, ended(fmt.Errorf("the program that reads the image %s", unpacked.Describe()))
	case report.Reason != "":
		return report, ofReport(i.Name(), report)
	}
	return report, nil
}
