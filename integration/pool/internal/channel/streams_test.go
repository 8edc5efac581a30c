package channel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
)

// endless is an input that nobody can read to its end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A command that ends while its input is on the way still has its output and its exit code come back.
func TestUnreadInput(t *testing.T) {
	dial, _ := server(t)
	for range 50 {
		var out bytes.Buffer
		code, err := Run(t.Context(), dial(), Command{Args: []string{"sh", "-c", "head -c 65536; exit 4"}, Stdin: endless{}, Stdout: &out})
		if code != 4 || err != nil || out.Len() != 65536 {
			t.Fatalf("Run = %d, %v, and %d bytes", code, err, out.Len())
		}
	}
}

// A command may close its input and go on.
func TestClosedInput(t *testing.T) {
	dial, _ := server(t)
	stdin, release := io.Pipe()
	signals := make(chan os.Signal, 1)
	_, result := started(t, t.Context(), func(ctx context.Context, cmd Command) (int, error) { return Run(ctx, dial(), cmd) },
		Command{Args: []string{"sh", "-c", "trap 'exit 8' TERM; exec <&-; echo $$; sleep 1000 & wait"}, Stdin: stdin, Signals: signals})
	for range 4 {
		if _, err := release.Write(make([]byte, chunkSize)); err != nil {
			t.Fatal(err)
		}
	}
	signals <- syscall.SIGTERM
	if got := <-result; got != "8 <nil>" {
		t.Errorf("Run says %q", got)
	}
}

// digest counts and hashes what is written to it.
type digest struct {
	hash hash.Hash
	n    int
}

func (d *digest) Write(p []byte) (int, error) {
	d.n += len(p)
	return d.hash.Write(p)
}

// Both streams at once, larger than all buffers, from many commands at once; each ends at once after its last byte.
func TestLargeOutput(t *testing.T) {
	dial, _ := server(t)
	const lines, commands = 200_000, 8
	want := sha256.New()
	for i := range lines {
		fmt.Fprintln(want, i+1)
	}
	var wait sync.WaitGroup
	for range commands {
		conn := dial()
		wait.Go(func() {
			out, errs := &digest{hash: sha256.New()}, &digest{hash: sha256.New()}
			code, err := Run(t.Context(), conn, Command{Args: []string{"sh", "-c", "seq 200000 & seq 200000 >&2; wait; exit 1"}, Stdout: out, Stderr: errs})
			if code != 1 || err != nil {
				t.Errorf("Run = %d, %v", code, err)
			}
			for _, d := range []*digest{out, errs} {
				if !bytes.Equal(d.hash.Sum(nil), want.Sum(nil)) {
					t.Errorf("%d bytes came, and not those that were written", d.n)
				}
			}
		})
	}
	wait.Wait()
}

// Input goes there and comes back whole, to its end.
func TestLargeInput(t *testing.T) {
	dial, _ := server(t)
	text := bytes.Repeat([]byte("0123456789abcdef\n"), 500_000)
	var out bytes.Buffer
	code, err := Run(t.Context(), dial(), Command{Args: []string{"cat"}, Stdin: bytes.NewReader(text), Stdout: &out})
	if code != 0 || err != nil || !bytes.Equal(out.Bytes(), text) {
		t.Errorf("Run = %d, %v, and %d of %d bytes", code, err, out.Len(), len(text))
	}
}

// gate is an output that takes nothing before it is opened.
type gate struct {
	open chan struct{}
	n    int
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.n += len(p)
	return len(p), nil
}

// A stream that nobody takes does not hold up the other, and is whole in the end.
func TestOneStreamWaits(t *testing.T) {
	dial, _ := server(t)
	const size = 8 << 20
	held := &gate{open: make(chan struct{})}
	errs := &lastByte{want: '!', seen: func() { close(held.open) }}
	code, err := Run(t.Context(), dial(), Command{Args: []string{"sh", "-c", "head -c 8388608 /dev/zero & (head -c 8388608 /dev/zero; echo !) >&2; wait"}, Stdout: held, Stderr: errs})
	if code != 0 || err != nil || held.n != size {
		t.Errorf("Run = %d, %v, and %d of %d bytes", code, err, held.n, size)
	}
}

// lastByte calls seen when the byte comes.
type lastByte struct {
	want byte
	seen func()
}

func (l *lastByte) Write(p []byte) (int, error) {
	if bytes.IndexByte(p, l.want) >= 0 {
		l.seen()
	}
	return len(p), nil
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatCannotBeWritten(t *testing.T) {
	dial, _ := server(t)
	code, err := Run(t.Context(), dial(), Command{Args: []string{"yes"}, Stdout: fullDisk{}})
	if code != -1 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Run = %d, %v", code, err)
	}
}
