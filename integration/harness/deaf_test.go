package harness

import (
	"bufio"
	"fmt"
	"os/exec"
	"testing"
)

// hears starts a child for each line that it reads, and says whether it has been
// told of the end of any; then it waits until it is.
const hears = `heard=no; trap heard=yes CHLD; echo ready
while read line; do /bin/true; echo ended, heard: $heard; done
while [ $heard = no ]; do :; done; echo heard`

func TestDeafen(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", hears)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says := bufio.NewScanner(out)
	want := func(line string) {
		t.Helper()
		if !says.Scan() || says.Text() != line {
			t.Fatalf("it says %q, want %q (%v)", says.Text(), line, says.Err())
		}
	}
	want("ready")
	hear, err := Deafen(Process{PID: cmd.Process.Pid})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		fmt.Fprintln(in)
		want("ended, heard: no")
	}
	in.Close()
	if err := hear(); err != nil {
		t.Fatal(err)
	}
	want("heard")
	if err := hear(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if hear, err := Deafen(Process{PID: cmd.Process.Pid}); err == nil {
		t.Errorf("a process that has ended was deafened: %v", hear())
	}
}
