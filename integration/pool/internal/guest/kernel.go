package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/pool/internal/statedir"
)

// A Machine is one guest as the host starts it.
type Machine struct {
	System System
	// Name is different for each guest of a directory Dir.
	Name string
	// Dir is a directory for the guest's sockets; it has a short path.
	Dir string
	// Memory is the size of the guest's memory in MiB. The host spends what the guest uses.
	Memory int
	// Disk is a file that MakeDisk made.
	Disk string
	// Init is the program that is the guest's first process; its arguments are Verb and Config.
	Init string
	// Config is the path of a Config.
	Config string
	// MAC is the hardware address of the guest's network device.
	MAC string
	// Wire is the guest's end of its network; nil is none.
	Wire *os.File `json:"-"`
	// Console takes what kernel and first process print.
	Console io.Writer `json:"-"`
}

// Verb is the verb of the program Init under which it is a guest's first process.
const Verb = "guest-init"

// wireFD is the number that Wire has in the kernel: the first of exec.Cmd's ExtraFiles.
const wireFD = 3

// commandLine are the kernel's arguments; those behind "--" are its first process's.
func (m Machine) commandLine() []string {
	args := []string{
		fmt.Sprintf("mem=%dM", m.Memory), "seccomp=on", "umid=" + m.Name, "uml_dir=" + m.Dir,
		// The first root is the host's, because the init is there; it changes to the guest's.
		"root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init=" + m.Init,
		"con=null", "con0=null,fd:1", "ssl=null", "quiet", "panic=-1", "ubd0=" + m.Disk,
	}
	if m.Wire != nil {
		args = append(args, fmt.Sprintf("vec0:transport=fd,fd=%d,mac=%s,depth=64", wireFD, m.MAC))
	}
	return append(args, "--", Verb, m.Config)
}

// spareMemory is the room beside a guest's memory that its file system must have, in bytes.
const spareMemory = 64 << 20

// memoryDir is the directory in which the kernel makes the file that is the guest's memory: in the host's memory if it has
// room there, because a file on a disk would be written back all the time.
func memoryDir(mib int, fallback string) string {
	const shm = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(shm, &fs); err != nil || fs.Flags&unix.ST_NOEXEC != 0 || fs.Bavail*uint64(fs.Bsize) < uint64(mib)<<20+spareMemory {
		return fallback
	}
	return shm
}

// Run boots the guest and returns when it has ended. The end of ctx ends it at once; Halt ends it in order.
func (m Machine) Run(ctx context.Context) error {
	// A kernel that was killed leaves its sockets.
	if err := os.RemoveAll(filepath.Join(m.Dir, m.Name)); err != nil {
		return fmt.Errorf("starting the guest %s: %w", m.Name, err)
	}
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return fmt.Errorf("starting the guest %s: %w", m.Name, err)
	}
	// Every process of the guest has this file, so that two kernels never write to one disk, not even when one is only just
	// about to end.
	lock, err := statedir.LockFile(ctx, m.Disk+".lock", func() { slog.Info("waiting for the last processes of the guest before", "guest", m.Name) })
	if err != nil {
		return fmt.Errorf("starting the guest %s: %w", m.Name, err)
	}
	defer lock.Close()
	cmd := exec.CommandContext(ctx, m.System.Kernel, m.commandLine()...)
	cmd.Env = []string{"TMPDIR=" + memoryDir(m.Memory, filepath.Dir(m.Disk)), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "TERM=dumb"}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = m.Console, m.Console
	if m.Wire != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, m.Wire)
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, lock)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	// The kernel of the host ties the signal to the end of the thread that started the guest (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the guest %s has ended: %w", m.Name, err)
	}
	return nil
}

// ErrUnable is the error of Check on a machine that lacks what guests need.
var ErrUnable = errors.New("this machine cannot run guests")

const (
	// tryMemory is the size of the memory of a guest that only shows that it boots, in MiB.
	tryMemory = 64
	tryTime   = time.Minute
	// tryEnd is what the kernel says when its first process has ended, here without an error.
	tryEnd = "Attempted to kill init! exitcode=0x00000000"
)

// Check finds out whether this machine can run guests: it boots one in which a single program runs. That takes a second. The
// kernel looks for what it needs of the machine only when it boots, and then ends with an exit code; the error is ErrUnable.
func (s System) Check(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "guest-")
	if err != nil {
		return fmt.Errorf("trying the guests' kernel: %w", err)
	}
	defer os.RemoveAll(dir)
	limited, cancel := context.WithTimeoutCause(ctx, tryTime, fmt.Errorf("it has not ended after %v", tryTime))
	defer cancel()
	cmd := exec.CommandContext(limited, s.Kernel,
		fmt.Sprintf("mem=%dM", tryMemory), "seccomp=on", "umid=try", "uml_dir="+dir,
		"root=/dev/root", "rootfstype=hostfs", "rootflags="+s.Root, "ro", "init=/usr/bin/true",
		"con=null", "con0=null,fd:1", "ssl=null", "quiet", "panic=-1")
	cmd.Env = []string{"TMPDIR=" + memoryDir(tryMemory, dir), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "TERM=dumb"}
	cmd.Dir = dir // a kernel that panics may leave a core file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if limited.Err() != nil {
		return fmt.Errorf("trying the guests' kernel %s: %w", s.Kernel, context.Cause(limited))
	}
	if strings.Contains(string(out), tryEnd) {
		return nil
	}
	said := cmp.Or(lastLine(string(out)), "it said nothing")
	if err == nil {
		err = errors.New("it ended as if that were its work")
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return fmt.Errorf("%w: %s: %w: %s", ErrUnable, s.Kernel, err, said)
	}
	return fmt.Errorf("the guests' kernel %s runs no program: %w: %s", s.Kernel, err, said)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
