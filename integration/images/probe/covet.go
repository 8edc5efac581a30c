package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// covet tells an address (UDP) that it waits until it can read a sandbox that is not its own, and then which: a container
// lives only moments after that.
func covet(_ *state, address string) error {
	own, err := os.Getwd()
	if err != nil {
		return err
	}
	told, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer told.Close()
	if _, err := fmt.Fprint(told, own); err != nil {
		return err
	}
	for {
		for _, execute := range []string{"/var/lib/condor/execute/jobs", "/var/lib/podstarter/scratch/jobs"} {
			for _, below := range []string{"", "scratch"} {
				found, _ := filepath.Glob(filepath.Join(execute, "dir_*", below, ".job.ad"))
				for _, path := range found {
					// The image may have a link on the way to the one or the other.
					mine := strings.Contains(own+"/", "/"+strings.Split(strings.TrimPrefix(path, execute+"/"), "/")[0]+"/")
					if _, err := os.ReadFile(path); err == nil && !mine {
						_, err := fmt.Fprint(told, path)
						return errors.Join(err, told.Close())
					}
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
}
