package main

import (
	"io"
	"time"

	"podstarter/unpacker/tarstream"
)

// progress is how far the stream is.
type progress struct {
	// Entries is how many files and directories were written, and Of how many there are; 0 if the image does not say.
	Entries int64 `json:"entries"`
	Of      int64 `json:"of,omitempty"`
	// Bytes is the length of the stream.
	Bytes int64 `json:"bytes"`
}

// longestPause is between two words about progress.
const longestPause = time.Minute

// tell says how far the stream is, first after the pause, until the caller stops it. Nothing is said afterwards.
func tell(w *tarstream.Writer, of int64, pause time.Duration, to io.Writer) (stop func()) {
	if pause == 0 {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(pause)
		defer timer.Stop()
		for {
			select {
			case <-over:
				return
			case <-timer.C:
			}
			entries, bytes := w.Progress()
			line(to, map[string]any{"progress": progress{Entries: entries, Of: of, Bytes: bytes}})
			pause = min(2*pause, longestPause)
			timer.Reset(pause)
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
