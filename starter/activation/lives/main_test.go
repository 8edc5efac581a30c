package lives_test

import (
	"flag"
	"os"
	"syscall"
	"testing"

	"podstarter/sshtojob"
	"podstarter/wrapper/agent/agenttest"
)

// atOnce is how many lives are lived at once: most of the time they wait. A wrapper with
// the race detector ends a second after its life.
const atOnce = "12"

// TestMain is also the wrapper, and the ssh server of the job's owner.
func TestMain(m *testing.M) {
	sshtojob.Dispatch()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	agenttest.MainAsUser(sparing{m})
}

// writeProgram writes a shell script. No other goroutine may begin a process meanwhile: it
// would have the file open, and a file that is open for writing cannot be executed.
func writeProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755)
}
