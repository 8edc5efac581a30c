package tally

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/internal/atomicfile"
)

// file is what the program that serves metrics reads, in HTCondor's LOCK directory: it runs
// as the user condor, who may not enter the state directory. It tells nothing of users,
// jobs or images.
const file = "podstarter.metrics"

// maxFile bounds it, in bytes.
const maxFile = 64 << 10

// Snapshot is all that metrics are made of.
type Snapshot struct {
	Totals  Totals    `json:"totals"`
	Slots   int       `json:"slots"`   // jobs that may run at a time
	Running int       `json:"running"` // jobs that do
	Sick    time.Time `json:"sick"`    // until when the pod takes no jobs; zero if it does
	// Rests are until when slots take no jobs.
	Rests   []time.Time `json:"rests,omitempty"`
	Keeper  int         `json:"keeper"`  // process ID of the one who counts
	Version string      `json:"version"` // of the starter
	Condor  string      `json:"condor"`  // of HTCondor
}

// Write puts it into a directory, in place of an older one.
func (s Snapshot) Write(lock string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("publish metrics: %w", err)
	}
	dir, err := os.OpenRoot(lock)
	if err != nil {
		return fmt.Errorf("publish metrics: %w", err)
	}
	defer dir.Close()
	if err := atomicfile.Replace(dir, file, data, atomicfile.Options{Mode: 0o644}); err != nil {
		return fmt.Errorf("publish metrics in %s: %w", lock, err)
	}
	return nil
}

// Read reads it. The file must be root's or this user's.
func Read(lock string) (Snapshot, error) {
	s, err := read(lock)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read metrics in %s, where `condor_pod_starter -keep` puts them: %w", lock, err)
	}
	return s, nil
}

func read(lock string) (Snapshot, error) {
	dir, err := os.OpenRoot(lock)
	if err != nil {
		return Snapshot{}, err
	}
	defer dir.Close()
	// A pipe in its place must not make anybody wait.
	f, err := dir.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return Snapshot{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Snapshot{}, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return Snapshot{}, fmt.Errorf("%s is not a file of root or of user %d", file, os.Geteuid())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", file, maxFile)
	}
	if err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return Snapshot{}, fmt.Errorf("decode %s: %w", file, err)
	}
	return s, nil
}

// Slots in the states that a slot can be in. A slot that runs a job is busy, whatever rests
// then. A sick pod's other slots are offline.
type States struct{ Busy, Idle, Resting, Offline int }

// States gives the number of slots in each.
func (s Snapshot) States(now time.Time) States {
	out := States{Busy: max(0, min(s.Running, s.Slots))}
	rest := s.Slots - out.Busy
	if now.Before(s.Sick) {
		out.Offline = rest
		return out
	}
	for _, until := range s.Rests {
		if out.Resting < rest && now.Before(until) {
			out.Resting++
		}
	}
	out.Idle = rest - out.Resting
	return out
}
