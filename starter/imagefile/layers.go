package imagefile

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"podstarter/payload/imagetree"
	"podstarter/rescue"
)

// Layered is an image that a registry has, and the pilot is to fetch.
type Layered struct {
	// Written is the image as its user wrote it.
	Written string
	// Layers is how many there are, and Copy writes them, the lowest first, as a tar archive of files. Its error is
	// EPIPE if nobody reads, else the registry's, such as failure.OfBinding knows.
	Layers int
	Copy   func(ctx context.Context, w io.Writer) error
}

// Name is the image as somebody wrote it.
func (l Layered) Name() string { return l.Written }

func (l Layered) order() imagetree.Order { return imagetree.Order{Layers: true} }

func (l Layered) open(ctx context.Context) (reading, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return reading{}, fmt.Errorf("make a pipe: %w", err)
	}
	done := make(chan error, 1)
	rescue.Go(func() {
		err := rescue.Do(func() error { return l.Copy(ctx, write) })
		write.Close() // so that the unpacker learns that this is all
		done <- err
	})
	return reading{from: read, args: []string{"-layers", strconv.Itoa(l.Layers)}, ended: func() error {
		return <-done
	}}, nil
}
