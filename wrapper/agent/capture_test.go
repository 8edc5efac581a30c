package agent

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCaptureAfterTheEnd: what the main process wrote before its end is kept, even if
// nobody has started to read by then and a child still has the pipe open.
func TestCaptureAfterTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		most int
		want string
	}{
		"all":           {100, "last words"},
		"to the byte":   {10, "last words"},
		"the beginning": {4, "last"},
	} {
		t.Run(name, func(t *testing.T) {
			c, output, err := newCapture(tt.most)
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close()
			if _, err := output.WriteString("last words"); err != nil {
				t.Fatal(err)
			}
			c.end()
			if got := string(c.read()); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestProgramCannotBeChanged: nobody who can open it can change its bytes or its length.
func TestProgramCannotBeChanged(t *testing.T) {
	const text = "#!/bin/sh\n"
	f, err := programFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, writeErr := f.WriteAt([]byte("x"), 0)
	_, longerErr := f.WriteAt([]byte("x"), int64(len(text)))
	for what, err := range map[string]error{"written": writeErr, "made longer": longerErr, "cut": f.Truncate(1)} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("it can be %s: %v", what, err)
		}
	}
	if got, err := os.ReadFile(f.Name()); err == nil && strings.Contains(string(got), "x") {
		t.Errorf("it is %q", got)
	}
}
