// Package streams reads the recordings beside it: what daemons and a starter
// really said to each other, packet by packet and without encryption. See
// integration/record for how they were made.
package streams

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Packet is one packet of a stream.
type Packet struct {
	In   bool // to the starter
	Last bool // of its message
	Data []byte
}

// Frame is the packet as it goes over the wire of a stream without encryption.
func (p Packet) Frame() []byte {
	b := []byte{0}
	if p.Last {
		b[0] = 1
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Data)))
	return append(b, p.Data...)
}

// Files are the recordings of all versions and jobs; root is the project's
// directory. It is a failure that there are none.
func Files(t testing.TB, root string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "testdata", "streams", "*", "*", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recorded streams below %s (%v)", root, err)
	}
	return paths
}

// Read reads one recording.
func Read(t testing.TB, path string) []Packet {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packets, err := read(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return packets
}

func read(f *os.File) ([]Packet, error) {
	var packets []Packet
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			Way  string
			Last bool
			Data string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("packet %d: %w", len(packets)+1, err)
		}
		p := Packet{In: line.Way == "in", Last: line.Last}
		for _, r := range line.Data {
			p.Data = append(p.Data, byte(r)) // a byte was written as the character of its number
		}
		packets = append(packets, p)
	}
	return packets, lines.Err()
}
