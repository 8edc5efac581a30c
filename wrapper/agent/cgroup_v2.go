package agent

import (
	"bytes"
	"strings"

	"podstarter/payload/memcg"
)

// readIO sums io.stat over all devices: "8:0 rbytes=1 wbytes=2 rios=3 wios=4
// dbytes=5 dios=6". An empty file means that there was no I/O.
func (s *cgroupSample) readIO(data []byte) {
	if data == nil {
		return
	}
	s.readBytes, s.writeBytes, s.reads, s.writes = 0, 0, 0, 0
	sums := map[string]*int64{"rbytes": &s.readBytes, "wbytes": &s.writeBytes, "rios": &s.reads, "wios": &s.writes}
	for line := range bytes.Lines(data) {
		for _, field := range strings.Fields(string(line)) {
			key, value, _ := strings.Cut(field, "=")
			if sum, ok := sums[key]; ok {
				*sum += max(memcg.Number([]byte(value)), 0)
			}
		}
	}
}
