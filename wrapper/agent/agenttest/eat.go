//nolint:forbidigo,errcheck // a test program, in a temporary directory
package agenttest

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const eatStep = 1 << 20

// eat uses ever more memory, in one of several ways. It asks the kernel for it, since a race
// detector would use several times as much for Go's own.
func eat(how string) {
	switch how {
	case "slowly":
		for {
			touch(eatStep, unix.MAP_PRIVATE)
			time.Sleep(5 * time.Millisecond)
		}
	case "leap":
		touch(1<<30, unix.MAP_PRIVATE)
	case "shared":
		for {
			touch(eatStep, unix.MAP_SHARED)
			time.Sleep(time.Millisecond)
		}
	case "cached":
		f, err := os.Create("cached")
		if err != nil {
			os.Exit(1)
		}
		block := make([]byte, eatStep)
		for range 300 {
			f.Write(block)
		}
		f.Sync()
		eat("slowly")
	case "crowd":
		for range 8 {
			c := exec.Command("/proc/self/exe", "eat", "slowly")
			c.Args[0] = os.Args[0]
			c.Start()
		}
		syscall.Wait4(-1, nil, 0, nil)
	}
}

func touch(size, kind int) {
	block, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|kind)
	if err != nil {
		os.Exit(1)
	}
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
}
