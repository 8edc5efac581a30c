package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/images/probe/facts"
)

// crowd starts processes one by one until the kernel refuses more, and stays with them.
// It is slow, so that occasional counts see the processes increase.
func crowd(*state, string) error {
	const pause = 10 * time.Millisecond
	for n := 0; ; n++ {
		one := exec.Command("/bin/sleep", "100000")
		err := one.Start()
		if errors.Is(err, unix.EAGAIN) {
			return os.WriteFile("/proc/self/comm", []byte(facts.Ready), 0o644)
		}
		if err != nil {
			return fmt.Errorf("process %d of the crowd: %w", n, err)
		}
		time.Sleep(pause)
	}
}
