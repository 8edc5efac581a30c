// Package streams reads the recordings beside it: what daemons and a starter
// really said to each other, packet by packet and without encryption, and plays
// them to what is tested. README.md tells how they were made.
package streams

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Packet is one packet of a connection.
type Packet struct {
	In     bool // to the starter
	Sealed bool // it was encrypted
	Last   bool // of its message
	Data   []byte
}

// line is a packet in a recording.
type line struct {
	Way    string // in or out
	Sealed bool   `json:",omitempty"`
	Last   bool
	Data   string // as Text makes it
}

// The characters that stand for bytes: those of ASCII for themselves, others for
// those that cannot be seen, and for those above ASCII, which would look like
// letters of UTF-8 otherwise.
const (
	zero     = '·'
	controls = 0x2400 // the pictures of control characters in Unicode
	deleted  = 0x2421
	above    = 0x100
)

// Text shows bytes, a character for each.
func Text(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		switch {
		case c == 0:
			b.WriteRune(zero)
		case c < ' ':
			b.WriteRune(controls + rune(c))
		case c == 0x7f:
			b.WriteRune(deleted)
		case c > 0x7f:
			b.WriteRune(above + rune(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Bytes are the bytes that Text has shown.
func Bytes(text string) ([]byte, error) {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r == zero:
			r = 0
		case r == deleted:
			r = 0x7f
		case r >= controls && r < controls+' ':
			r -= controls
		case r >= above+0x80 && r <= above+0xff:
			r -= above
		case r < ' ' || r >= 0x7f:
			return nil, fmt.Errorf("character %U stands for no byte", r)
		}
		b = append(b, byte(r))
	}
	return b, nil
}

// Line is a packet as a recording has it.
func (p Packet) Line() (string, error) {
	l := line{Way: "out", Sealed: p.Sealed, Last: p.Last, Data: Text(p.Data)}
	if p.In {
		l.Way = "in"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(l)
	return b.String(), err
}

// Recording is one connection of the starter of one job.
type Recording struct {
	Version string // of HTCondor; execution point and access point if they differ
	Case    string
	Packets []Packet
}

// Of reads the recordings of one case, in the order in which the connections were
// made. Dir is the directory beside this file, seen from the test.
func Of(t testing.TB, dir, version, name string) []Recording {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, version, name, "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no streams of %s with %s are recorded in %s (%v)", name, version, dir, err)
	}
	var all []Recording
	for _, path := range paths {
		packets, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Recording{version, name, packets})
	}
	return all
}

// Cases are the versions and names of all that is recorded.
func Cases(t testing.TB, dir string) [][2]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no streams are recorded in %s (%v)", dir, err)
	}
	var all [][2]string
	for _, path := range paths {
		all = append(all, [2]string{filepath.Base(filepath.Dir(path)), filepath.Base(path)})
	}
	return all
}

// All reads every recording.
func All(t testing.TB, dir string) []Recording {
	t.Helper()
	var all []Recording
	for _, c := range Cases(t, dir) {
		all = append(all, Of(t, dir, c[0], c[1])...)
	}
	return all
}

// Variable reads CONDOR_INHERIT or CONDOR_PRIVATE_INHERIT as the starter of a case
// had it.
func Variable(t testing.TB, dir, version, name, variable string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, version, name, variable+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// Read reads a recording.
func Read(path string) ([]Packet, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var packets []Packet
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l line
		err := json.Unmarshal(lines.Bytes(), &l)
		if err == nil && l.Way != "in" && l.Way != "out" {
			err = errors.New("it goes neither in nor out")
		}
		p := Packet{In: l.Way == "in", Sealed: l.Sealed, Last: l.Last}
		if err == nil {
			p.Data, err = Bytes(l.Data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: packet %d: %w", path, len(packets)+1, err)
		}
		packets = append(packets, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return packets, nil
}

// Command is what the connection was made for: the command that the one who
// connected has authenticated itself for, [Calls] or [Updates].
func (r Recording) Command() int {
	for _, p := range r.Packets {
		if p.Sealed {
			break
		}
		_, rest, found := bytes.Cut(p.Data, []byte("\x00\x00\xea\x6a")) // DC_AUTHENTICATE
		if !found {
			continue
		}
		_, rest, _ = bytes.Cut(rest, []byte("Command = "))
		number, _, _ := bytes.Cut(rest, []byte{0})
		if n, err := strconv.Atoi(string(number)); err == nil {
			return n
		}
	}
	if r.Packets[0].Sealed {
		return Calls
	}
	return Updates
}

// Connections that were handed down.
const (
	Calls   = -1 // from the starter to the shadow
	Updates = -2 // from the starter to the startd
)

// Find reads the recordings of a case that were made for a command; it is a
// failure that there are not so many.
func Find(t testing.TB, dir, version, name string, command, count int) []Recording {
	t.Helper()
	var some []Recording
	for _, r := range Of(t, dir, version, name) {
		if r.Command() == command {
			some = append(some, r)
		}
	}
	if len(some) != count {
		t.Fatalf("%d connections of %s with %s are for command %d, not %d", len(some), name, version, command, count)
	}
	return some
}

// Wire is what packets are on a connection that is not encrypted, for fuzzers to
// change; Unwire reads it, as far as it can be read.
func Wire(packets []Packet) []byte {
	var b []byte
	for _, p := range packets {
		b = append(b, frame(p.Last, p.Data)...)
	}
	return b
}

// Seeds are what came in on the connections that are wanted, as fuzzers begin with
// it: the encrypted part, or all where nothing was encrypted.
func Seeds(t testing.TB, dir string, wanted func(Recording) bool) (all [][]byte) {
	t.Helper()
	for _, r := range All(t, dir) {
		if !wanted(r) {
			continue
		}
		packets := r.Sealed()
		if len(packets) == 0 {
			packets = r.Packets
		}
		in := slices.DeleteFunc(slices.Clone(packets), func(p Packet) bool { return !p.In })
		all = append(all, Wire(in))
	}
	return all
}

// Unwire makes packets that come in, encrypted or not.
func Unwire(data []byte, sealed bool) []Packet {
	var packets []Packet
	for len(data) >= headerSize {
		n := int(binary.BigEndian.Uint32(data[1:]))
		if n == 0 || n > len(data)-headerSize {
			break
		}
		packets = append(packets, Packet{In: true, Sealed: sealed, Last: data[0] != 0, Data: data[headerSize : headerSize+n]})
		data = data[headerSize+n:]
	}
	return packets
}

func frame(last bool, data []byte) []byte {
	b := []byte{0}
	if last {
		b[0] = 1
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}
