package condortest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
	"podstarter/testdata/streams"
)

// usual is the recording that peers go by if a test names none.
const usual = "25.14/plain"

// recordings finds testdata/streams above the directory of the test.
func recordings(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "testdata", "streams")
		if _, err := os.Stat(filepath.Join(found, "README.md")); err == nil {
			return found
		}
	}
	t.Fatal("testdata/streams is not above the directory of the test")
	return ""
}

// recorded is one connection of a case, "25.14/plain", as what is said on it:
// messages, unencrypted, from the point where the handshake is over.
func recorded(t testing.TB, name string, command int) []spoken {
	t.Helper()
	version, job, _ := strings.Cut(name, "/")
	for _, r := range streams.Of(t, recordings(t), version, job) {
		if r.Command() == command {
			return spokenOn(r)
		}
	}
	return nil
}

// spoken is one message.
type spoken struct {
	in, sealed bool // to the starter; encrypted
	data       []byte
}

func spokenOn(r streams.Recording) (all []spoken) {
	packets := r.Sealed()
	if len(packets) == 0 {
		packets = r.Packets
	}
	var open [2][]byte
	for _, p := range packets {
		way := 0
		if p.In {
			way = 1
		}
		if open[way] = append(open[way], p.Data...); p.Last {
			all = append(all, spoken{p.In, p.Sealed, open[way]})
			open[way] = nil
		}
	}
	return all
}

// read makes a stream of messages. Strings have another form where it is encrypted.
func read(t testing.TB, messages ...spoken) *cedar.Stream {
	t.Helper()
	var packets []streams.Packet
	for _, m := range messages {
		packets = append(packets, streams.Packet{In: true, Sealed: m.sealed, Last: true, Data: m.data})
	}
	return cedartest.Adopted(t, streams.Say(t, packets))
}

// must ends a test that cannot even begin.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recordedJob is the job's ad as the shadow of a case gave it.
func recordedJob(t testing.TB, name string) *classads.Ad {
	t.Helper()
	for _, m := range recorded(t, name, streams.Calls) {
		if !m.in {
			continue
		}
		s := read(t, m)
		_, err := s.GetInt()
		must(t, err)
		ad, err := s.GetAd()
		must(t, err)
		return ad
	}
	t.Fatalf("%s has no job", name)
	return nil
}

// recordedMachine is the slot's ad as the startd of a case gave it.
func recordedMachine(t testing.TB, name string) *classads.Ad {
	t.Helper()
	for _, m := range recorded(t, name, streams.Updates) {
		if m.in {
			ad, err := read(t, m).GetAd()
			must(t, err)
			return ad
		}
	}
	t.Fatalf("%s has no slot", name)
	return nil
}

// recordedFiles puts the input files that a shadow sent into a directory, which stands for
// that of the job.
func recordedFiles(t testing.TB, name, dir string) {
	t.Helper()
	var in []spoken
	for _, m := range recorded(t, name, cedar.FileTransUpload) {
		if m.in {
			in = append(in, m)
		}
	}
	if len(in) < 2 {
		return
	}
	in = in[1:] // what comes first is about all of them
	for i := 0; i+1 < len(in); {
		command, err := read(t, in[i]).GetInt()
		must(t, err)
		if command == itemEnd {
			return
		}
		file, err := read(t, in[i+1]).GetString()
		must(t, err)
		path := filepath.Join(dir, file)
		if i += 2; i == 2 {
			i += 2 // the exchange of go-aheads
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:forbidigo // a directory of the test
		mode, err := read(t, in[i]).GetInt()
		must(t, err)
		switch command {
		case itemFile:
			if mode == cedar.MissingPermissions {
				return // the shadow could not read it
			}
			var contents bytes.Buffer
			s := read(t, in[i+1:min(i+3, len(in))]...)
			_, err = s.GetFile(&contents, -1)
			must(t, err)
			must(t, os.WriteFile(path, contents.Bytes(), os.FileMode(mode)&0o777))
			i += 3
		case itemDirectory:
			must(t, os.MkdirAll(path, 0o755)) //nolint:forbidigo // a directory of the test
			i++
		default:
			return
		}
	}
}
