package agent

import (
	"bytes"
	"strings"

	"podstarter/payload/memcg"
)

// readBlkio sums lines of "8:0 Read 1" and "8:0 Write 2" over all devices.
func readBlkio(data []byte) (read, write int64) {
	if data == nil {
		return -1, -1
	}
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			continue
		}
		switch n := max(memcg.Number([]byte(fields[2])), 0); fields[1] {
		case "Read":
			read += n
		case "Write":
			write += n
		}
	}
	return read, write
}
