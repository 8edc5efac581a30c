package cedar

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/testdata/streams"
)

// FuzzConsent lets a server answer whatever it likes to a client.
func FuzzConsent(f *testing.F) {
	for _, r := range streams.All(f, recordings) {
		var in []streams.Packet
		for _, p := range r.Packets {
			if p.In && !p.Sealed {
				in = append(in, p)
			}
		}
		if r.Command() > 0 {
			f.Add(streams.Wire(in), r.Command())
		}
	}
	f.Add(unhexSeed(vectorP2), 441)
	session, err := ImportSessionParts("s1", "", vectorKey, "u@d", Read)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, input []byte, command int) {
		client := &Client{Version: ownVersion, Name: "STARTER", Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &fakeConn{in: bytes.NewReader(input), out: io.Discard}, nil
		}}
		s, err := client.Command(t.Context(), "<127.0.0.1:9618?sock=x>", command, session)
		var failed *CommandError
		if err != nil && !errors.As(err, &failed) {
			t.Errorf("%T %v", err, err)
		}
		if err == nil && !s.Encrypted() {
			t.Error("a command without encryption")
		}
	})
}

// FuzzPassed lets anybody say something to the endpoint of a shared port, with and
// without a descriptor, which must be of TCP.
func FuzzPassed(f *testing.F) {
	f.Add(append(passMessage[:], 0), 13, true)
	f.Add(passMessage[:], 13, false)
	f.Add([]byte("\x01\x00\x00\x00\x08"), 2, true)
	other, err := os.Open(os.DevNull)
	if err != nil {
		f.Fatal(err)
	}
	defer other.Close()
	f.Fuzz(func(t *testing.T, input []byte, at int, passes bool) {
		if len(input) > 1<<10 {
			return
		}
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		endpoint := os.NewFile(uintptr(fds[0]), "endpoint")
		c, err := net.FileConn(endpoint)
		endpoint.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		at = max(0, min(at, len(input)))
		_, _ = unix.Write(fds[1], input[:at])
		if passes && at < len(input) {
			_ = unix.Sendmsg(fds[1], input[at:], unix.UnixRights(int(other.Fd())), nil, 0)
		}
		_ = unix.Close(fds[1])
		conn, err := receivePassed(c.(*net.UnixConn))
		if err == nil {
			conn.Close()
			t.Error("a socket that is not TCP was taken")
		}
	})
}

// FuzzProxyChain takes apart whatever a peer certifies.
func FuzzProxyChain(f *testing.F) {
	key, err := rsa.GenerateKey(rand.Reader, proxyKeyBits)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range streams.Of(f, recordings, "25.14", "proxy") {
		for _, p := range r.Sealed() {
			if !p.In || r.Command() != FileTransUpload || !bytes.Contains(p.Data, []byte("A User")) {
				continue
			}
			der := p.Data[8:]
			f.Add(der)
			// The one that was really delegated: the proxy and who signed it.
			text, err := proxyFile(der, key)
			if err != nil {
				f.Fatal(err)
			}
			var kinds []string
			for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
				kinds = append(kinds, block.Type)
			}
			if diff := cmp.Diff([]string{"CERTIFICATE", "PRIVATE KEY", "CERTIFICATE"}, kinds); diff != "" {
				f.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		chain, err := splitChain(der)
		if err == nil && !bytes.Equal(bytes.Join(chain, nil), der) {
			t.Errorf("%x became %x", der, chain)
		}
	})
}
