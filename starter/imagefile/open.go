package imagefile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/condor/image"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/payload/imagetree"
	"podstarter/sandbox"
	"podstarter/sandbox/beneath"
	"podstarter/starter/failure"
)

// Image is an open file or directory that has an image.
type Image struct {
	file    *os.File
	dir     bool
	size    int64
	written string
}

// Sandbox is the job's directory.
type Sandbox interface {
	Payload() sandbox.Owner
	Root() *beneath.Root
}

// Open opens an image as the job's user, so that no job gets a file that this user may not
// read, and nothing outside of the places that images may be in. Its errors say what becomes
// of the job. The caller closes the image.
func Open(f image.File, s Sandbox) (*Image, error) {
	in := s.Root()
	if f.Root != "" {
		var err error
		if in, err = beneath.OpenRoot(f.Root); err != nil {
			return nil, siteTrouble("the site's place for images (%s) cannot be opened: %w; mount it in the pilot container", image.KnobPaths, err)
		}
		defer in.Close()
	}
	i := &Image{written: f.Written}
	var info fs.FileInfo
	isMounted := true
	err := s.Payload().Do(func() (err error) {
		if i.file, err = in.OpenTree(f.Path); err == nil {
			info, err = i.file.Stat()
		} else if first, _, below := strings.Cut(f.Path, "/"); f.Root != "" && below {
			_, missing := in.Lstat(first)
			isMounted = missing == nil
		}
		return err
	})
	if err != nil && !isMounted {
		// Such as a repository of CVMFS that this node cannot reach, which is no fault of the job.
		return nil, elsewhere("image %.300q cannot be opened here: %w; perhaps not all of %s is mounted", f.Written, err, f.Root)
	}
	if err != nil {
		i.Close()
		return nil, notOpened(f, err)
	}
	i.dir, i.size = info.IsDir(), info.Size()
	return i, nil
}

// Name is the image as somebody wrote it.
func (i *Image) Name() string { return i.written }

func (i *Image) order() imagetree.Order { return imagetree.Order{} }

func (i *Image) open(context.Context) (reading, error) {
	// A second descriptor with the same place in the file, which nobody moves.
	fd, err := unix.FcntlInt(i.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return reading{}, fmt.Errorf("duplicate the image's descriptor: %w", err)
	}
	return reading{from: os.NewFile(uintptr(fd), i.file.Name())}, nil
}

// Close closes it.
func (i *Image) Close() {
	if i != nil && i.file != nil {
		i.file.Close()
	}
}

// notOpened is what it means to the job that its image cannot be opened.
func notOpened(f image.File, err error) error {
	if f.Root != "" && errors.Is(err, beneath.ErrOutside) {
		return hold(image.SubcodeNoFile, "image %.300q cannot be used: it leads out of %s, beyond which this site has no images; correct its path", f.Written, f.Root)
	}
	advice := "name it in container_image, so that it is transferred; an image in a registry is written as docker://registry/name:tag"
	if f.Root != "" {
		advice = "correct its path"
	}
	for _, of := range []error{syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, syscall.EPERM, syscall.ELOOP, syscall.ENAMETOOLONG, beneath.ErrOutside, beneath.ErrNotRegular} {
		if errors.Is(err, of) {
			return hold(image.SubcodeNoFile, "image %.300q cannot be opened: %w; %s", f.Written, err, advice)
		}
	}
	return elsewhere("image %.300q cannot be opened here: %w", f.Written, err)
}

// Identity tells images with the same bytes by the same text; empty for a directory, of which
// nobody can say whether it has changed. It reads no more than most bytes: a sparse file can be longer
// than anybody can read.
func (i *Image) Identity(ctx context.Context, most int64) (string, error) {
	switch {
	case i.dir:
		return "", nil
	case i.size > most:
		return "", hold(image.SubcodeFileTooLarge, "image %.300q is too large for a container here: the file has %d bytes, and all that is in it may have %d", i.written, i.size, most)
	}
	sum := sha256.New()
	block := make([]byte, 1<<20)
	for offset := int64(0); ; {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		n, err := i.file.ReadAt(block, offset)
		sum.Write(block[:n])
		offset += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
		case err != nil:
			return "", elsewhere("image %.300q cannot be read: %w", i.written, err)
		}
	}
}

// hold is for what the job's user can correct.
func hold(subcode int, format string, args ...any) error {
	return failure.New(shadow.HoldInvalidDockerImage, subcode, fmt.Errorf(format, args...))
}

// elsewhere is for what is not the job's fault, and perhaps of this time only.
func elsewhere(format string, args ...any) error {
	return failure.New(shadow.VacateContainerError, 0, fmt.Errorf(format, args...))
}

// siteTrouble is for what the site has to correct: other jobs of the kind will meet it here, too, so
// the slot rests.
func siteTrouble(format string, args ...any) error {
	return failure.New(shadow.VacateContainerError, 0, &payload.Verdict{Blame: payload.Site, Reason: "ImageFile", Message: fmt.Errorf(format, args...).Error()})
}
