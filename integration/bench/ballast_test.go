package main

import "testing"

func TestFreeMemory(t *testing.T) {
	if n, err := freeMemory(); err != nil || n < 1<<20 {
		t.Errorf("%d bytes are free, %v", n, err)
	}
}
