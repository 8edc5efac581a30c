package jobfiles

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// coarsest is the longest step of any file system's clock: two seconds, of
	// FAT's. Ext4, XFS, Btrfs, overlayfs and tmpfs step with the kernel's timer,
	// every few milliseconds or finer; ext3, ext4 with inodes of 128 bytes, and
	// NFS before one of those, every second.
	coarsest = 2 * time.Second
	// patience is how long a clock is waited for that should have moved.
	patience = coarsest + coarsest/4
)

// settle returns when a file that changes from now on gets a later time than
// newest, the latest time of any file that is known. The file system is asked
// for its clock, rather than the machine: it may be another machine's, and only
// it knows its grain. That takes no time where no file was just written, else
// one step of the clock. HTCondor sleeps for a second (file_transfer.cpp:
// DownloadFiles), which a clock of whole seconds needs and no other.
//
// A clock that is behind newest by more than any step was set back; nothing
// that happens soon will get the same time. A file system that cannot be asked,
// or whose clock stands still, is not waited for any longer than patience.
func settle(ctx context.Context, newest unix.Timespec, now func() (unix.Timespec, error)) error {
	for waited, turn := time.Duration(0), time.Millisecond; waited < patience; waited += turn {
		t, err := now()
		if err != nil {
			t, err = machineNow()
		}
		if err != nil || after(t, newest) || newest.Nano()-t.Nano() > int64(coarsest) {
			return nil
		}
		if waited >= 20*time.Millisecond { // a coarse one, then
			turn = 25 * time.Millisecond
		}
		select {
		case <-time.After(turn):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// machineNow is the clock that the machine's own file systems take their times
// from, unless they have a coarser one.
func machineNow() (unix.Timespec, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now)
	return now, err
}
