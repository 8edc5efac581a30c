package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"podstarter/condor/plugin"
	"podstarter/condor/shadow"
	"podstarter/payload/proctable"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
	"podstarter/wrapper/agent/agenttest"
)

// neighbourVariable makes a test process what TestNoMoreThreads looks at; its value
// is a directory.
const neighbourVariable = "STARTER_TEST_NEIGHBOUR"

// TestNoMoreThreads: a starter in a pod where a job has used up the processes and
// threads goes on with all that it does itself, and a program that cannot be run is an
// error.
func TestNoMoreThreads(t *testing.T) {
	g := agenttest.NewGroup(t, 1000)
	dir := agenttest.PublicDir(t)
	neighbour := exec.Command(os.Args[0], "-test.run=^TestBeNeighbour$", "-test.v")
	neighbour.Env = append(os.Environ(), neighbourVariable+"="+dir)
	var said bytes.Buffer
	neighbour.Stderr = &said
	in, err := neighbour.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := neighbour.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.Join(neighbour)
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for ready := false; !ready; ready = lines.Text() == "ready" {
		if !lines.Scan() {
			t.Fatalf("the neighbour ended early: %s", said.Bytes())
		}
	}
	g.Limit(t, 1)
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err := errors.Join(err, neighbour.Wait()); err != nil {
		t.Errorf("%v\n%s\n%.2000s", err, rest, said.Bytes())
	}
}

// TestBeNeighbour is no test: it is the starter of TestNoMoreThreads.
func TestBeNeighbour(t *testing.T) {
	dir := os.Getenv(neighbourVariable)
	if dir == "" {
		t.Skip("part of TestNoMoreThreads")
	}
	uid, gid := agenttest.Payload()
	owner := sandbox.Owner{UID: uid, GID: gid}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	table, err := proctable.New(proctable.Options{UID: uid, GID: gid})
	if err != nil {
		t.Fatal(err)
	}
	host := hostprog.New(hostprog.Options{SeparateUsers: true})
	reserveThreads(starterThreads)
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for i := range 50 { // more than there are spare threads
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := owner.Do(func() error { return os.WriteFile(path, nil, 0o600) }); err != nil {
			t.Fatal(err)
		}
		if _, err := table.Snapshot(t.Context(), proctable.Detail{IO: true}); err != nil {
			t.Fatal(err)
		}
		for what, run := range map[string]func() error{
			"program": func() error {
				_, err := hostprog.Program{Path: "/bin/true", Dir: "/", As: sandbox.Self()}.Run(t.Context(), false)
				return err
			},
			"plugin": func() error {
				_, err := host.AskPlugin(t.Context(), plugin.Program{Path: "/bin/true", Dir: "/"})
				return err
			},
		} {
			err := run()
			if errors.Is(err, hostprog.ErrNotRun) || !errors.Is(err, syscall.EAGAIN) || failure.Of(err).Code != shadow.VacateContainerError {
				t.Fatalf("a %s that cannot be run: %v", what, err)
			}
		}
	}
}
