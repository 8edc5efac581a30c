package conformance

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"podstarter/integration/harness"
)

// disk is a file system with little room.
type disk struct {
	words string
	// make makes it, with programs of HTCondor's image, in which the process runs. It
	// returns a script that mounts it over the directory $0.
	make func(ctx context.Context, pid int) (mount string, remove func(), err error)
}

// mountOver are the mount options of a disk, so that the directory keeps its owner.
func mountOver(mount string) string {
	return `whose=$(stat -c %u:%g "$0") mode=$(stat -c %a "$0") && ` + mount + ` "$0" && chown "$whose" "$0" && chmod "$mode" "$0"`
}

// smallDisk has room for so many bytes.
func smallDisk(size int64) disk {
	return disk{"a small disk", func(context.Context, int) (string, func(), error) {
		return mountOver(fmt.Sprintf("mount -t tmpfs -o size=%d small", size)), func() {}, nil
	}}
}

// quotaDisk has room, but each user may use only so many bytes. Of the file systems with
// quotas, btrfs is the one that needs only its own programs (Debian's btrfs-progs), which
// the image has.
func quotaDisk(size int64) disk {
	const script = `set -e; exec 3>&1 >&2
root=/proc/$1/root
from_image() {
	program=$1; shift
	"$root/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" "$(ls "$root"/usr/*bin/"$program")" "$@"
}
device= dir=$(mktemp -d)
trap 'code=$?; [ $code = 0 ] || { umount "$dir/at"; losetup -d "$device"; rm -rf "$dir"; }; exit $code' EXIT
truncate -s 256M "$dir/image"
from_image mkfs.btrfs -q "$dir/image"
mkdir "$dir/at"
device=$(losetup --find --show "$dir/image")
mount "$device" "$dir/at"
from_image btrfs -q subvolume create "$dir/at/small"
from_image btrfs quota enable "$dir/at"
from_image btrfs qgroup limit "$0" "$dir/at/small"
umount "$dir/at"
echo "$dir" "$device" "$(stat -c %Lr "$device")" >&3`
	return disk{"a disk with quotas", func(ctx context.Context, pid int) (string, func(), error) {
		out, err := exec.CommandContext(ctx, "sh", "-c", script, strconv.FormatInt(size, 10), strconv.Itoa(pid)).Output()
		var dir, device, minor string
		if err == nil {
			_, err = fmt.Sscan(string(out), &dir, &device, &minor)
		}
		if err != nil {
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				err = fmt.Errorf("%w: %s", err, failed.Stderr)
			}
			return "", nil, fmt.Errorf("making a disk with quotas, which needs a loop device, and btrfs in the kernel: %w", err)
		}
		remove := func() {
			_ = exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", `losetup -d "$0"; rm -r "$1"`, device, dir).Run()
		}
		// The namespace has no such device, and gives its own to nobody. The other side may
		// make one at the same time.
		node := "/dev/quota" + minor
		mount := mountOver(`mknod -m 600 ` + node + ` b 7 ` + minor + ` && mount -t btrfs -o subvol=small ` + node)
		return mount + ` && rm ` + node, remove, nil
	}}
}

// within runs a shell script with a process's view of the files, and with the table of
// mounts that umount reads. The script's $0 is an argument.
func within(ctx context.Context, pid int, script, argument string) error {
	argv := []string{"--target", strconv.Itoa(pid), "--mount", "--pid", "--", "sh", "-c", script, argument}
	if out, err := exec.CommandContext(ctx, "nsenter", argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("nsenter %s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// onSmallDirectory releases the job and carries out a step while a directory of its submit
// directory is on a disk of its own.
func onSmallDirectory(small disk, name string, waited Step) Step {
	return Do("with "+small.words+" at the submit side, "+waited.Words, func(ctx context.Context, r *Run) error {
		schedd, err := harness.One("condor_schedd", func(p harness.Process) bool {
			return p.Comm == "condor_schedd" && p.Namespace == r.Pool.SubmitNamespace
		})
		if err != nil {
			return err
		}
		below, err := filepath.Rel(r.Pool.User.Visible, r.Job().Dir)
		if err != nil {
			return err
		}
		dir := filepath.Join(r.Pool.User.Home, below, name)
		mount, remove, err := small.make(ctx, schedd.PID)
		if err != nil {
			return err
		}
		defer remove()
		if err := within(ctx, schedd.PID, mount, dir); err != nil {
			return err
		}
		_, err = r.Pool.AP(ctx, "condor_release", r.Job().ID())
		if err == nil {
			err = waited.do(ctx, r)
		}
		if e := within(context.WithoutCancel(ctx), schedd.PID, `umount -l "$0"`, dir); err == nil {
			err = e
		}
		return err
	})
}

// onSmallDisk carries out a step while the directory of sandboxes is on a disk of its own.
func onSmallDisk(small disk, waited Step) Step {
	return Do("on "+small.words+", "+waited.Words, func(ctx context.Context, r *Run) error {
		startd, err := r.Startd()
		if err != nil {
			return err
		}
		const (
			// What the slots had on the small disk would keep others from them.
			grown = `host=$(condor_config_val STARTD_NAME)@$(condor_config_val FULL_HOSTNAME)
until condor_reconfig -startd >/dev/null && disks=$(condor_status -direct "$host" -af Disk) && [ -n "$disks" ] && ! echo "$disks" | grep -q '^.\{1,6\}$'; do sleep 0.2; done`
		)
		knob := "EXECUTE"
		if r.Side == harness.Ours && r.Pool.Mode == harness.Rootless {
			knob = "POD_STARTER_SCRATCH_DIR"
		}
		execute, err := r.Pool.Config(ctx, r.Side, knob)
		if err != nil {
			return err
		}
		mount, remove, err := small.make(ctx, startd.PID)
		if err != nil {
			return err
		}
		defer remove()
		if err := within(ctx, startd.PID, mount, execute); err != nil {
			return err
		}
		err = func() error {
			if _, err := r.Pool.AP(ctx, "condor_release", r.Job().ID()); err != nil {
				return err
			}
			if err := waited.do(ctx, r); err != nil {
				return err
			}
			return harness.WaitNone(ctx, r.Pool.Starters(r.Side))
		}()
		// Do this after a failure too: the next cases need the disk.
		if e := within(context.WithoutCancel(ctx), startd.PID, `umount -l "$0"`, execute); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		_, err = r.Pool.PilotInput(ctx, r.Side, nil, "sh", "-c", grown)
		return err
	})
}
