package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// eatStep is what eat takes at once, in bytes; eatCache what it writes before it begins.
const (
	eatStep  = 1 << 20
	eatCache = 96 << 20
)

// eat uses ever more memory in the way that is asked for.
func eat(_ *state, how string) error {
	switch how {
	case "slowly":
		return nibble(syscall.MAP_PRIVATE)
	case "shared":
		return nibble(syscall.MAP_SHARED)
	case "leap":
		return touch(1<<30, syscall.MAP_PRIVATE)
	case "cached":
		f, err := os.Create("cached")
		if err != nil {
			return err
		}
		defer f.Close()
		block := make([]byte, eatStep)
		for range eatCache / eatStep {
			if _, err := f.Write(block); err != nil {
				return err
			}
		}
		if err := f.Sync(); err != nil { // pages that are not written yet cannot be taken back
			return err
		}
		return nibble(syscall.MAP_PRIVATE)
	case "crowd":
		var first *exec.Cmd
		for range 8 {
			c := exec.Command("/proc/self/exe", "eat=slowly")
			if err := c.Start(); err != nil {
				return err
			}
			first = c
		}
		return first.Wait()
	}
	return fmt.Errorf("no way to eat is called %q", how)
}

// nibble takes a little at a time, for ever.
func nibble(kind int) error {
	for {
		if err := touch(eatStep, kind); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// touch takes memory from the kernel, not from the Go runtime.
func touch(size, kind int) error {
	block, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|kind)
	if err != nil {
		return err
	}
	for i := 0; i < size; i += os.Getpagesize() {
		block[i] = 1
	}
	return nil
}
