package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/guest"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/tool"
	"podstarter/integration/pool/internal/web"
)

// A pool in a guest: this program runs twice, on the host, where it boots the guest, and in it, where it brings the pool up
// as it would on any machine. The two state directories have the same path.

const (
	guestsDaemon = "guests"
	// guestName is the name and the host name of the only guest.
	guestName = "guest"
	// guestMemory is in MiB. The host spends what the guest uses: 2 GB for the whole pool.
	guestMemory = 6 << 10
	// programsEnv names a directory of programs that need not be built. A build takes half a minute in a guest.
	programsEnv = "PODSTARTER_PROGRAMS"
	// guestNet is the network of the guests, guestAddress the address of the first. The host is not connected to it: guestHost
	// is the daemon that owns the guests. The range is for benchmarks of network devices (RFC 2544).
	guestNet     = "198.18.0.0/24"
	guestAddress = "198.18.0.2"
	guestHost    = "198.18.0.1"
	guestPrefix  = "/24"
	guestMAC     = "52:54:00:12:00:02"
)

func guestSocket(dir statedir.Dir) string { return dir.Run("guests.sock") }

// inGuest is a file of the host's state directory as a guest sees it, where its own state directory is in the way.
func inGuest(path string) string { return filepath.Join(guest.HostRoot, path) }

// upGuest boots the guest, and brings the pool up in it. args are those of `up` there.
func (p *pool) upGuest(ctx context.Context, args []string) error {
	if _, ok := p.daemons.Running(cluster.Etcd); ok {
		return errors.New("a pool runs here without a guest; stop it with `down` first")
	}
	system, err := p.prepareGuest(ctx)
	if err != nil {
		return err
	}
	if err := p.progress.step(ctx, "guest", func(ctx context.Context) error { return p.startGuest(ctx, system) }); err != nil {
		return err
	}
	if err := refreshGuest(ctx, p.dir); err != nil {
		return err
	}
	if err := p.installInGuest(ctx); err != nil {
		return err
	}
	code, err := command{
		dir: p.dir, args: append([]string{p.dir.Path("bin", "pool"), "up"}, args...), stdout: os.Stdout, stderr: os.Stderr,
	}.run(ctx)
	if err == nil && code != 0 {
		err = errors.New("the pool in the guest did not come up")
	}
	if err != nil {
		return err
	}
	return p.noteDisk(ctx)
}

// diskNote is a file that says that all that the last `up` wrote is on the guest's disk. After a kill in the middle of an
// `up`, containerd's database may name files that are not there.
func (p *pool) diskNote() string { return p.dir.Path("guest", "disk.written") }

// noteDisk writes the note.
func (p *pool) noteDisk(ctx context.Context) error {
	if err := runShort(ctx, p.dir, "sync"); err != nil {
		return err
	}
	return statedir.WriteFile(p.diskNote(), nil, 0o644)
}

// judgeDisk removes the note, and a disk without one, unless a guest uses it.
func (p *pool) judgeDisk(disk string, used bool) error {
	err := os.Remove(p.diskNote())
	if errors.Is(err, fs.ErrNotExist) && !used {
		err = os.Remove(disk)
		if err == nil {
			p.progress.print("the guest was killed while `up` was writing; it gets a new disk")
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking at the guest's disk: %w", err)
	}
	return nil
}

// installInGuest puts this program into the guest's own state directory. It could be run from where the host has it, but a
// guest keeps the old contents of a file that it uses when the host replaces the file.
func (p *pool) installInGuest(ctx context.Context) error {
	program := p.dir.Path("bin", "pool")
	data, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(data))
	var out strings.Builder
	if _, err := (command{dir: p.dir, args: []string{"sha256sum", program}, stdout: &out}).run(ctx); err != nil {
		return err
	}
	if strings.HasPrefix(out.String(), want) {
		return nil
	}
	const install = `mkdir -p "$1" && cat >"$1/.pool" && chmod 755 "$1/.pool" && mv "$1/.pool" "$1/pool"`
	var stderr strings.Builder
	code, err := command{
		dir: p.dir, args: []string{"sh", "-c", install, "sh", filepath.Dir(program)}, stdin: bytes.NewReader(data), stderr: &stderr,
	}.run(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, stderr.String())
	}
	if err != nil {
		return fmt.Errorf("copying this program into the guest: %w", err)
	}
	return nil
}

// prepareGuest makes everything that is slow to make, on the host, at the same time: the system, our programs, and what
// `up` looks for in the cache.
func (p *pool) prepareGuest(ctx context.Context) (system guest.System, err error) {
	g, ctx := errgroup.WithContext(ctx)
	step := func(name string, f func(ctx context.Context) error) {
		g.Go(func() error { return p.progress.step(ctx, name, f) })
	}
	step("guest's system", func(ctx context.Context) (err error) {
		if system, err = guest.MakeSystem(ctx, p.store, p.log); err != nil {
			return err
		}
		return system.Check(ctx)
	})
	step("our programs", p.buildPrograms)
	for _, c := range cluster.Components(p.dir.Source("integration", "components")) {
		step(c.Family, func(ctx context.Context) error {
			_, err := c.Build(ctx, p.store, p.log)
			return err
		})
	}
	for _, version := range p.settings.Versions() {
		step("HTCondor "+version, func(ctx context.Context) error {
			_, err := p.rootDir(ctx, condorFamily, condorRoots[version])
			return err
		})
	}
	step("Debian", func(ctx context.Context) error {
		_, err := p.rootDir(ctx, debianFamily, debianRoot)
		return err
	})
	step("small programs", func(ctx context.Context) error {
		if _, err := p.busybox(ctx); err != nil {
			return err
		}
		if _, err := web.Program(ctx, p.store, p.log); err != nil {
			return err
		}
		_, err := cluster.Kubectl(ctx, p.store, p.log)
		return err
	})
	return system, g.Wait()
}

// startGuest boots the guest unless it runs, and waits until it takes commands.
func (p *pool) startGuest(ctx context.Context, system guest.System) error {
	disk := p.dir.Path("guest", "disk")
	_, runs := p.daemons.Running(guestsDaemon)
	if err := p.judgeDisk(disk, runs); err != nil {
		return err
	}
	if err := system.MakeDisk(ctx, disk); err != nil {
		return err
	}
	shares, err := p.guestShares(ctx)
	if err != nil {
		return err
	}
	// The guest's first process runs from a file of its own, see installInGuest.
	self, first := p.dir.Path("bin", "pool"), p.dir.Path("guest", "init")
	if err := copyFile(self, first, 0o755); err != nil {
		return err
	}
	config := guest.Config{
		Hostname: guestName, Root: system.Root, Shares: shares, Private: []string{p.dir.Root},
		Network: &guest.Network{Address: guestAddress + guestPrefix},
		Args:    []string{inGuest(first), guestServeVerb, guestAddress, guestHost},
	}
	host := guest.Host{Socket: guestSocket(p.dir), Guests: []guest.Placed{{
		Machine: guest.Machine{
			System: system, Name: guestName, Dir: p.dir.Run("guests"), Memory: guestMemory, Disk: disk, MAC: guestMAC,
			Init: first, Config: p.dir.Path("guest", "config.json"),
		},
		Address: guestAddress,
	}}}
	inputs, err := json.Marshal([]any{config, host})
	if err != nil {
		return err
	}
	if err := config.Write(p.dir.Path("guest", "config.json")); err != nil {
		return err
	}
	hostPath := p.dir.Path("guest", "host.json")
	if err := host.Write(hostPath); err != nil {
		return err
	}
	_, err = p.daemons.Start(ctx, daemon.Spec{Name: guestsDaemon, Args: []string{self, guestRunVerb, hostPath}, Inputs: []string{string(inputs)}})
	if err != nil {
		return err
	}
	return p.waitGuest(ctx)
}

// waitGuest waits until a command runs in the guest.
func (p *pool) waitGuest(ctx context.Context) error {
	log := p.daemons.Log(guestsDaemon)
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("the guest takes no commands within two minutes; see %s", log))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	return cluster.Poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, ok := p.daemons.Running(guestsDaemon); !ok {
			end(fmt.Errorf("the guest ended before it took a command; the last lines of %s:\n%s", log, lastWords(log)))
			return false, nil
		}
		err := runShort(ctx, p.dir, "true")
		return err == nil, err
	})
}

// lastWords is the end of a log, in which the kernel says why it cannot run on this machine.
func lastWords(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// guestShares are the host's directories that the guest needs: the checkout, the cache, and those of the Go command, which
// builds the tests' probe.
func (p *pool) guestShares(ctx context.Context) ([]guest.Share, error) {
	shares := []guest.Share{
		{Path: p.dir.Module, Mode: guest.ReadWrite},
		{Path: p.store.Root, Mode: guest.Layered},
	}
	out, err := tool.Output(ctx, tool.Command{Args: []string{"go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"}, Dir: p.dir.Source("integration")})
	if err != nil {
		return nil, fmt.Errorf("asking the Go command for its directories: %w", err)
	}
	for i, path := range strings.Fields(out) {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		mode := guest.ReadOnly
		if i > 0 {
			mode = guest.Layered
		}
		shares = append(shares, guest.Share{Path: path, Mode: mode})
	}
	return shares, nil
}

// stopGuest ends the guest in order if it runs.
func (p *pool) stopGuest(ctx context.Context) error {
	return p.daemons.Stop(ctx, guestsDaemon, guest.HaltTime+5*time.Second)
}

// refreshGuest makes a guest see what the host has added to a directory that the guest has looked at.
func refreshGuest(ctx context.Context, dir statedir.Dir) error {
	return runShort(ctx, dir, "sh", "-c", "echo 2 >/proc/sys/vm/drop_caches")
}

// runShort runs a command in the guest that has no output to speak of.
func runShort(ctx context.Context, dir statedir.Dir, args ...string) error {
	var out bytes.Buffer
	code, err := command{dir: dir, args: args, stderr: &out}.run(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("%q in the guest: exit code %d: %s", args, code, out.String())
	}
	return err
}
