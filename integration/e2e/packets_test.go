//go:build pool

package e2e

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// TestLargePackets: a shadow accepts output in packets of 64 KiB. Its own side, and
// the stock starter, send 4 KiB each.
func TestLargePackets(t *testing.T) {
	oursOnly(t)
	const size, large = 16 << 20, 64 << 10
	schedd, err := harness.One("schedd", func(q harness.Process) bool {
		return q.Comm == "condor_schedd" && q.Namespace == pool.SubmitNamespace
	})
	if err != nil {
		t.Fatal(err)
	}
	said, err := pool.AP(t.Context(), "condor_config_val", "SHARED_PORT_PORT")
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(said), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	capture, err := harness.NewCapture(schedd.PID, uint16(port))
	if err != nil {
		t.Fatal(err)
	}
	job := submit(t, script(fmt.Sprintf("#!/bin/sh\nhead -c %d /dev/urandom >big && sha256sum big | cut -c1-64\n", size)))[0]
	mustExit(t, job, 0)
	streams, err := capture.Streams()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(job.Dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%x\n", sha256.Sum256(content)), output(t, job, "out"); got != want || len(content) != size {
		t.Errorf("%d bytes with checksum %sbut the job wrote %s", len(content), got, want)
	}
	found := false
	for _, s := range streams {
		packets, ok := packetsOf(s)
		if !ok || len(s) < size {
			continue // something else's, or another direction
		}
		found = true
		inLarge, most := 0, 0
		for _, n := range packets {
			if most = max(most, n); n >= large {
				inLarge += n
			}
		}
		t.Logf("%d bytes in %d packets, the largest of %d bytes; %d bytes in those of %d and more", len(s), len(packets), most, inLarge, large)
		if inLarge < size/10*9 {
			t.Errorf("%d of %d bytes went in packets of %d and more", inLarge, size, large)
		}
	}
	if !found {
		t.Errorf("none of %d streams has the transfer of the output", len(streams))
	}
}

// packetsOf are the lengths of the packets of a CEDAR stream; false if it is none
// (HTCondor src/condor_io/reli_sock.cpp:SndMsg::snd_packet).
func packetsOf(stream []byte) (lengths []int, ok bool) {
	const header, mostPacket = 5, 1 << 20
	for len(stream) >= header {
		n := int(binary.BigEndian.Uint32(stream[1:]))
		if stream[0] > 1 || n == 0 || n > mostPacket {
			return nil, false
		}
		lengths = append(lengths, n)
		stream = stream[header:]
		stream = stream[min(n, len(stream)):]
	}
	return lengths, true
}
