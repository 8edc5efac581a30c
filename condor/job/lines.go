package job

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"podstarter/classads"
)

// Bounds of an ad that comes as lines, in bytes.
const (
	maxLines = 16 << 20
	maxLine  = 4 << 20
)

// ReadLines reads the ad of a job that has no shadow: lines "Name = expression", on the standard input of the starter. As with
// stock, a line that is no attribute is logged and left out (jic_local_file.cpp:readClassAdFromFile).
func ReadLines(from io.Reader, log *slog.Logger) (*classads.Ad, error) {
	ad := classads.NewAd()
	counted := &io.LimitedReader{R: from, N: maxLines}
	lines := bufio.NewScanner(counted)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := classads.ParseOld(line)
		if err != nil {
			name, _, _ := strings.Cut(line, "=")
			log.Error("A line of the job's ad is not understood and left out", "attribute", fmt.Sprintf("%.80q", strings.TrimSpace(name)))
			continue
		}
		ad.Update(one)
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("read the job's ad: %w", err)
	case counted.N <= 0:
		return nil, fmt.Errorf("read the job's ad: it has more than %d bytes", maxLines)
	case ad.Len() == 0:
		return nil, errors.New("read the job's ad: standard input has none; a schedd, or a startd that fetches work, passes it there")
	}
	return ad, nil
}
