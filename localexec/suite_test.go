package localexec_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/payload/backendtest"
	"podstarter/wrapper/agent"
	"podstarter/wrapper/agent/agenttest"
)

// slots is how many leases the suite has, if each has its own user.
const slots = 2

func TestBackend(t *testing.T) { backendtest.Run(t, newFixture) }

func newFixture(t *testing.T) backendtest.Fixture {
	dir := filepath.Join(agenttest.PublicDir(t), "private")
	program := filepath.Join(agenttest.PublicDir(t), "wrapper")
	begin := func(script string) { // sets the program that is executed as wrapper
		// A process that another test forks meanwhile would have the file open for writing, so that nobody could execute it.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if err := os.WriteFile(program+".new", []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	begin(fmt.Sprintf(`exec -a %s %s "$@"`, agent.WrapperName, agenttest.Program()))
	o := localexec.Options{Dir: dir, UID: agenttest.Payloads(t, slots), Users: slots, Program: program}
	b, err := localexec.New(o)
	if err != nil {
		t.Fatal(err)
	}
	f := backendtest.Fixture{
		Backend: b, Slots: slots,
		Inspected: func(_ *testing.T, wrong bool) payload.Backend {
			if wrong {
				return nil
			}
			return b
		},
		Hold:  func(t *testing.T) func() { return holdLease(t, o) },
		Break: func(*testing.T) { begin("exit 1") },
		Stall: func(t *testing.T) <-chan struct{} {
			// Opening a FIFO for writing waits for a reader.
			fifo := filepath.Join(t.TempDir(), "started")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			begin(": >" + fifo + "; exec sleep 1000")
			started := make(chan struct{}, 1)
			go func() {
				if f, err := os.Open(fifo); err == nil {
					f.Close()
					started <- struct{}{}
				}
			}()
			return started
		},
		End: func(t *testing.T, c payload.Container) {
			if err := syscall.Kill(c.Client().Hello().PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	}
	if !agenttest.Root() {
		f.Slots = 0
	}
	return f
}

// holderName makes the test binary a starter that holds a lease until it is killed.
const holderName = "test-holder"

func holder(args []string) int {
	uid, err := strconv.Atoi(args[1])
	if err != nil {
		return 1
	}
	b, err := localexec.New(localexec.Options{Dir: args[0], UID: uid, Users: slots})
	if err != nil {
		return 1
	}
	if _, err := b.Lease(context.Background(), payload.Wish{}); err != nil {
		return 1
	}
	fmt.Println("leased")
	select {}
}

func holdLease(t *testing.T, o localexec.Options) (kill func()) {
	t.Helper()
	cmd := exec.Command(agenttest.Program(), o.Dir, strconv.Itoa(o.UID))
	cmd.Args[0] = holderName
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "leased\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	return kill
}
