// Package fault says why an image could not be unpacked, in words that the caller can act on.
package fault

import (
	"errors"
	"fmt"
)

// Reason is a stable word for the kind of a failure. The caller decides by it.
type Reason string

// The reasons.
const (
	// Truncated: the file ends before what it says it contains.
	Truncated Reason = "truncated"
	// Encrypted: the SIF's partition is an encrypted squashfs.
	Encrypted Reason = "encrypted"
	// Ext3: the SIF's partition has another file system than squashfs.
	Ext3 Reason = "ext3"
	// Architecture: the SIF is for other machines.
	Architecture Reason = "architecture"
	// NoImage: neither SIF nor squashfs nor directory, or a SIF without a primary system partition.
	NoImage Reason = "no-image"
	// UnsupportedCompression: the squashfs is compressed by a method that is not supported.
	UnsupportedCompression Reason = "unsupported-compression"
	// TooLarge: the image has more than the bounds on the command line.
	TooLarge Reason = "too-large"
	// Malformed: the image contradicts its format.
	Malformed Reason = "malformed"
	// Read: the kernel could not read the image.
	Read Reason = "read"
	// Write: the stream could not be written.
	Write Reason = "write"
	// Confinement: the program could not confine itself as its caller requires.
	Confinement Reason = "confinement"
)

// Error is a failure with its reason.
type Error struct {
	Reason Reason
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error with a reason; format and args are those of fmt.Errorf.
func New(reason Reason, format string, args ...any) error {
	return &Error{reason, fmt.Errorf(format, args...)}
}

// Of is the outermost reason in an error's chain. An error without one is of the image: it is
// malformed.
func Of(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Malformed
}
