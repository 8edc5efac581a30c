package imagefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// Copied is what was copied into a container.
type Copied struct {
	Bytes   int64 // of all files
	Entries int64 // files and directories
	Took    time.Duration
}

// firstProgress is when a copy first says how far it is. The pause doubles, up to a minute.
const firstProgress = 5 * time.Second

// progress listens to an unpacker, and logs how far it says it is.
type progress struct {
	image string
	began time.Time
	log   *slog.Logger

	last time.Time // when it was logged
	line []byte    // as far as it came
}

// progressBegins is the beginning of a line about progress.
var progressBegins = []byte(`{"progress":`)

// longestLine is more than a line about progress has.
const longestLine = 512

// Write takes what the unpacker says. It read a hostile image, so it may say anything, as often as it likes.
func (p *progress) Write(b []byte) (int, error) {
	taken := len(b)
	for len(b) > 0 {
		part, rest, whole := bytes.Cut(b, []byte("\n"))
		p.line = append(p.line, part[:min(len(part), longestLine-len(p.line))]...)
		if whole {
			p.hear()
			p.line = p.line[:0]
		}
		b = rest
	}
	return taken, nil
}

func (p *progress) hear() {
	var said struct {
		Progress struct {
			Entries int64 `json:"entries"`
			Of      int64 `json:"of"` // files with several names count once
			Bytes   int64 `json:"bytes"`
		} `json:"progress"`
	}
	now := time.Now()
	if !bytes.HasPrefix(p.line, progressBegins) || now.Sub(p.last) < firstProgress/2 {
		return
	}
	p.last = now // also if it is nonsense, which would take time
	if json.Unmarshal(p.line, &said) != nil || min(said.Progress.Entries, said.Progress.Of, said.Progress.Bytes) < 0 {
		return
	}
	attrs := []any{"entries", said.Progress.Entries}
	if said.Progress.Of > 0 {
		attrs = append(attrs, "of_about", said.Progress.Of)
	}
	attrs = append(attrs, "bytes", said.Progress.Bytes, "seconds", fmt.Sprintf("%.1f", now.Sub(p.began).Seconds()))
	p.log.Info(fmt.Sprintf("Still copying the files of image %.300q", p.image), attrs...)
}
