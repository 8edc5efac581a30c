// Package guestinit is the first process of a guest. It makes a machine out of what the host offers, starts one command
// and powers the guest off when that ends.
package guestinit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/pool/internal/guest"
)

// Main is the body of the verb guest.Verb; args are those behind it. It does not return: the first process of a machine
// must not end.
func Main(args []string) {
	code := 0
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "guest-init:", err)
		code = 1
	}
	powerOff()
	os.Exit(code)
}

func run(args []string) error {
	if os.Getpid() != 1 {
		// powerOff must not happen to the host.
		fmt.Fprintf(os.Stderr, "%s is the first process of a guest, and no command for others\n", guest.Verb)
		os.Exit(2)
	}
	// The kernel adds words of its own at the end of its command line.
	if len(args) == 0 {
		return fmt.Errorf("usage: %s CONFIG", guest.Verb)
	}
	c, err := guest.Read(args[0])
	if err != nil {
		return err
	}
	if err := os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(guest.Config) error
	}{
		{"building the root directory", buildRoot},
		{"mounting the kernel's file systems", mountKernel},
		{"mounting what is shared with the host", mountShares},
		{"giving the machine its name", setHostname},
		{"setting up the network", setNetwork},
	} {
		if err := step.do(c); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return serve(c)
}

// command runs a program of the guest.
func command(ctx context.Context, chroot string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	if chroot != "" {
		// The program is looked up in the other root.
		cmd.Path, cmd.Err, cmd.Dir = args[0], nil, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: chroot}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", args, err, out)
	}
	return nil
}

func setHostname(c guest.Config) error {
	if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/hostname", []byte(c.Hostname+"\n"), 0o644); err != nil {
		return err
	}
	// Kubernetes tells nodes apart by it (machine-id(5)).
	sum := sha256.Sum256([]byte(c.Hostname))
	if err := os.WriteFile("/etc/machine-id", []byte(hex.EncodeToString(sum[:16])+"\n"), 0o444); err != nil {
		return err
	}
	// A name that is not there costs every daemon of HTCondor a minute in getaddrinfo.
	hosts := fmt.Sprintf("127.0.0.1 localhost %s\n::1 localhost\n", c.Hostname)
	return os.WriteFile("/etc/hosts", []byte(hosts), 0o644)
}

func setNetwork(c guest.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := command(ctx, "", "ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	n := c.Network
	if n == nil {
		return nil
	}
	const device = "vec0"
	steps := [][]string{{"ip", "address", "add", n.Address, "dev", device}}
	if n.MTU != 0 {
		steps = append(steps, []string{"ip", "link", "set", device, "mtu", fmt.Sprint(n.MTU)})
	}
	steps = append(steps, []string{"ip", "link", "set", device, "up"})
	for _, args := range steps {
		if err := command(ctx, "", args...); err != nil {
			return err
		}
	}
	return nil
}

// serve starts the command and reaps every orphan of the machine until the command ends, or the host asks for the end: it
// presses Ctrl-Alt-Del, which is SIGINT here (reboot(2)).
func serve(c guest.Config) error {
	if len(c.Args) == 0 {
		return errors.New("the configuration names no command")
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGINT, unix.SIGTERM)
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF); err != nil {
		return fmt.Errorf("asking for a signal at Ctrl-Alt-Del: %w", err)
	}
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return err
	}
	// Not os/exec: its Wait and the one below would take each other's processes away.
	pid, err := syscall.ForkExec(path, c.Args, &syscall.ProcAttr{
		Dir: "/", Env: append(os.Environ(), c.Env...), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	ended := make(chan unix.WaitStatus, 1)
	go reap(pid, ended)
	select {
	case <-end:
		return nil
	case status := <-ended:
		if status.ExitStatus() != 0 {
			return fmt.Errorf("%s has ended: exit status %d, signal %d", filepath.Base(path), status.ExitStatus(), status.Signal())
		}
		return nil
	}
}

// reap takes all children that end, and tells when pid was one of them.
func reap(pid int, ended chan<- unix.WaitStatus) {
	for {
		var status unix.WaitStatus
		child, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return // no children are left; pid was one of them
		case child == pid:
			ended <- status
		}
	}
}

// powerOff ends every process, so that nothing writes any more, and then the machine.
func powerOff() {
	_ = unix.Kill(-1, unix.SIGKILL)
	_ = unix.Mount("", diskDir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	unix.Sync()
	err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Fprintln(os.Stderr, "guest-init: powering off:", err)
}
