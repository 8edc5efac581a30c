package jobfiles

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// coarsest is the longest step of any file system's clock: two seconds, on FAT.
	// Ext4, XFS, Btrfs, overlayfs and tmpfs step with the kernel's timer, every few
	// milliseconds or finer; ext3, ext4 with inodes of 128 bytes, and NFS before one of
	// those, every second.
	coarsest = 2 * time.Second
	// patience is how long to wait for a clock that should have moved.
	patience = coarsest + coarsest/4
)

// settle returns when a file that changes from now on gets a later time than newest,
// the latest time of any file that is known. settle reads the clock of the file system,
// not of the machine: the file system may be on another machine, and only it knows its
// resolution. That takes no time if no file was just written, else one step of the
// clock. HTCondor sleeps for a second (file_transfer.cpp: DownloadFiles), which only a
// clock of whole seconds needs.
//
// A clock that is behind newest by more than any step was set back; no change in the
// near future will get the same time. settle waits no longer than patience for a file
// system whose clock cannot be read or stands still.
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

// machineNow reads the clock from which the machine's own file systems take their
// times, unless they have a coarser one.
func machineNow() (unix.Timespec, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now)
	return now, err
}
