package hostprog

import (
	"fmt"
	"strings"
	"syscall"
)

// Output of a program that is kept, in bytes. The rest is read and dropped.
const (
	maxProgramOutput   = 4 << 20
	maxProgramErrors   = 64 << 10
	maxUntrustedOutput = 128 << 10
	maxUntrustedTail   = 16 << 10
)

// Outcome is how a program ended.
type Outcome struct {
	Status         syscall.WaitStatus
	Stdout, Stderr []byte
	Tail           []byte // the end of Stdout, of a plugin that wrote more than is kept
	Cut            bool   // Stdout is not all that the program wrote
	Late           bool   // it was killed after its limit
}

// Describe says how a program ended, for the log.
func (o Outcome) Describe() string {
	switch {
	case o.Late:
		return "took too long and was killed"
	case o.Status.Signaled():
		return fmt.Sprintf("died of signal %d", int(o.Status.Signal()))
	default:
		return fmt.Sprintf("exited with status %d", o.Status.ExitStatus())
	}
}

// Excerpt is the end of a program's output, for a message.
func Excerpt(output []byte) string {
	const most = 500
	text := strings.TrimSpace(strings.ToValidUTF8(string(output), "?"))
	if len(text) > most {
		text = "..." + strings.ToValidUTF8(text[len(text)-most:], "?")
	}
	return text
}

// capped keeps the beginning of what is written to it, and the end if mostTail says
// how much of it.
type capped struct {
	data, tail     []byte
	most, mostTail int
	cut            bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := p[:min(len(p), c.most-len(c.data))]
	c.data = append(c.data, keep...)
	c.cut = c.cut || len(keep) < len(p)
	if c.mostTail > 0 {
		end := p[max(0, len(p)-c.mostTail):]
		if over := len(c.tail) + len(end) - c.mostTail; over > 0 {
			c.tail = append(c.tail[:0], c.tail[over:]...)
		}
		c.tail = append(c.tail, end...)
	}
	return len(p), nil
}
