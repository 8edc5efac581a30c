package payloadrun

import (
	"io"
	"os"
	"testing"

	"podstarter/payload"
)

// TestPipeEnd: once the payload's processes are gone, the end of a pipe is what is in it
// then, whoever goes on writing.
func TestPipeEnd(t *testing.T) {
	keep, holder, err := payload.Pipe(true, os.Getuid(), os.Getgid())
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	defer holder.Close()
	end := &pipeEnd{File: keep, left: -1}
	if _, err := holder.WriteString("all of it"); err != nil {
		t.Fatal(err)
	}
	end.end()
	first := make([]byte, 3)
	if n, err := end.Read(first); n != 3 || err != nil {
		t.Fatalf("%q, %v", first[:n], err)
	}
	if _, err := holder.WriteString(" and of others"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(end)
	if err != nil || string(rest) != " of it" {
		t.Errorf("%q, %v", rest, err)
	}
}
