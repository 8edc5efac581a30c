package ioproxy

import (
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"podstarter/classads"
	"podstarter/starter/settings"
)

// box is a sandbox of which only the file for condor_chirp matters.
type box struct {
	dir, config string
	err         error // of writing it
}

func (b *box) Dir() string  { return b.dir }
func (b *box) User() string { return b.dir }
func (b *box) WriteUserFile(_ string, data []byte, _ fs.FileMode) error {
	b.config = string(data)
	return b.err
}

// TestWithoutItsFile: a server that the job cannot find does not listen, and nothing else
// changes.
func TestWithoutItsFile(t *testing.T) {
	for _, failure := range []error{nil, syscall.ENOSPC} {
		b := &box{dir: t.TempDir(), err: failure}
		var p Proxy
		p.Open(Options{Job: classads.NewAd(), Sandbox: b, Knobs: settings.Chirp{Enabled: true, Delayed: true, IPv4: true}, Log: slog.New(slog.DiscardHandler)})
		defer p.Close()
		words := strings.Fields(b.config) // host, port, cookie
		if len(words) != 3 {
			t.Fatalf("the file has %q", b.config)
		}
		conn, err := net.Dial("tcp", net.JoinHostPort(words[0], words[1]))
		if err == nil {
			conn.Close()
		}
		if listens, wanted := err == nil, failure == nil; listens != wanted || (p.Config() != "") != wanted || (len(p.Hidden()) > 0) != wanted {
			t.Errorf("with %v: it listens %v, the job is told %q, and %q is hidden", failure, listens, p.Config(), p.Hidden())
		}
	}
}
