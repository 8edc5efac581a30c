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
	"strconv"
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

// A pool in guests: this program runs on the host, where it boots them, in the first, where it brings the pool up as it would
// on any machine, and in the others, where it makes nodes of them. All state directories have the same path.

const (
	guestsDaemon = "guests"
	// guestMemory is in MiB. The host spends what the guest uses: 2 GB for the whole pool.
	guestMemory = 6 << 10
	// programsEnv names a directory of programs that need not be built. A build takes half a minute in a guest.
	programsEnv = "PODSTARTER_PROGRAMS"
	// guestNet is the network of the guests. The host is not connected to it: guestHost is the daemon that owns the guests, and
	// the guests have the next addresses. The range is for benchmarks of network devices (RFC 2544).
	guestNet    = "198.18.0.0/24"
	guestHost   = "198.18.0.1"
	guestPrefix = "/24"
)

func guestSocket(dir statedir.Dir) string { return dir.Run("guests.sock") }

// inGuest is a file of the host's state directory as a guest sees it, where its own state directory is in the way.
func inGuest(path string) string { return filepath.Join(guest.HostRoot, path) }

// guestName is the name, and the host name, of the guest with a number, from 0.
func guestName(node int) string { return numbered("guest", node) }

// A guestSide is one guest as the host's side of a pool sees it.
type guestSide struct {
	*pool
	number int
}

func (p *pool) guests() []guestSide {
	all := make([]guestSide, max(p.settings.Guests, 1))
	for i := range all {
		all[i] = guestSide{p, i}
	}
	return all
}

// eachGuest does something with all guests at the same time.
func (p *pool) eachGuest(ctx context.Context, do func(ctx context.Context, g guestSide) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, g := range p.guests() {
		all.Go(func() error { return do(ctx, g) })
	}
	return all.Wait()
}

// upGuests boots the guests, and brings the pool up in them. args are those of `up` in the first.
func (p *pool) upGuests(ctx context.Context, args []string) error {
	if _, ok := p.daemons.Running(cluster.Etcd); ok {
		return errors.New("a pool runs here without a guest; stop it with `down` first")
	}
	system, err := p.prepareGuest(ctx)
	if err != nil {
		return err
	}
	boot := func(ctx context.Context) error { return p.startGuests(ctx, system) }
	if err := p.progress.step(ctx, guestName(0), boot); err != nil {
		return err
	}
	err = p.eachGuest(ctx, func(ctx context.Context, g guestSide) error {
		if err := g.refresh(ctx); err != nil {
			return err
		}
		return g.install(ctx)
	})
	if err != nil {
		return err
	}
	first := p.guests()[0]
	args = append([]string{"up", "--address=" + guestAddress(0), fmt.Sprintf("--nodes=%d", p.settings.Guests)}, args...)
	if p.settings.Guests > 1 {
		// Before other nodes have joined, their pods cannot run.
		if err := first.program(ctx, append(args, "--cluster-only")...); err != nil {
			return err
		}
		if err := p.joinAll(ctx); err != nil {
			return err
		}
	}
	if err := first.program(ctx, args...); err != nil {
		return err
	}
	return p.eachGuest(ctx, func(ctx context.Context, g guestSide) error { return g.noteDisk(ctx) })
}

// joinAll makes every other guest a node.
func (p *pool) joinAll(ctx context.Context) error {
	return p.eachGuest(ctx, func(ctx context.Context, g guestSide) error {
		if g.number == 0 {
			return nil
		}
		return p.progress.step(ctx, nodeName(g.number), g.join)
	})
}

// join makes a guest a node, or starts again what a node has.
func (g guestSide) join(ctx context.Context) error {
	var invitation, said bytes.Buffer
	program := g.dir.Path("bin", "pool")
	first := g.guests()[0]
	for _, c := range []command{
		first.command(program, inviteVerb, strconv.Itoa(g.number)).with(nil, &invitation, &said),
		g.command(program, joinVerb).with(&invitation, &said, &said),
	} {
		code, err := c.run(ctx)
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d: %s", code, said.String())
		}
		if err != nil {
			return fmt.Errorf("making the guest %s a node: %w", guestName(g.number), err)
		}
	}
	return nil
}

// program runs this program in the guest.
func (g guestSide) program(ctx context.Context, args ...string) error {
	code, err := g.command(append([]string{g.dir.Path("bin", "pool")}, args...)...).with(nil, os.Stdout, os.Stderr).run(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("the pool in the guest %s did not come up", guestName(g.number))
	}
	return err
}

// command is one in the guest.
func (g guestSide) command(args ...string) command {
	return command{dir: g.dir, guest: guestName(g.number), args: args}
}

// disk is the file that is the guest's disk.
func (g guestSide) disk() string { return g.dir.Path("guest", numbered("disk", g.number)) }

// diskNote is a file that says that all that the last `up` wrote is on the guest's disk. After a kill in the middle of an
// `up`, containerd's database may name files that are not there.
func (g guestSide) diskNote() string { return g.disk() + ".written" }

// noteDisk writes the note.
func (g guestSide) noteDisk(ctx context.Context) error {
	if err := g.command("sync").runShort(ctx); err != nil {
		return err
	}
	return statedir.WriteFile(g.diskNote(), nil, 0o644)
}

// judgeDisk removes the note, and a disk without one, unless a guest uses it.
func (g guestSide) judgeDisk(used bool) error {
	err := os.Remove(g.diskNote())
	if errors.Is(err, fs.ErrNotExist) && !used {
		err = os.Remove(g.disk())
		if err == nil {
			g.progress.print("the guest %s was killed while `up` was writing; it gets a new disk", guestName(g.number))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking at the guest's disk: %w", err)
	}
	return nil
}

// install puts this program into the guest's own state directory. It could be run from where the host has it, but a
// guest keeps the old contents of a file that it uses when the host replaces the file.
func (g guestSide) install(ctx context.Context) error {
	program := g.dir.Path("bin", "pool")
	data, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(data))
	var out, stderr strings.Builder
	if _, err := g.command("sha256sum", program).with(nil, &out, nil).run(ctx); err != nil {
		return err
	}
	if strings.HasPrefix(out.String(), want) {
		return nil
	}
	const install = `mkdir -p "$1" && cat >"$1/.pool" && chmod 755 "$1/.pool" && mv "$1/.pool" "$1/pool"`
	code, err := g.command("sh", "-c", install, "sh", filepath.Dir(program)).with(bytes.NewReader(data), nil, &stderr).run(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, stderr.String())
	}
	if err != nil {
		return fmt.Errorf("copying this program into the guest %s: %w", guestName(g.number), err)
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
	for _, c := range p.components() {
		step(c.Family, func(ctx context.Context) error {
			_, err := c.Build(ctx, p.store, p.log)
			return err
		})
	}
	if version := p.settings.Containerd; version != "" {
		step("containerd "+version, func(ctx context.Context) error {
			_, err := cluster.ContainerdPrograms(ctx, version, p.store, p.log)
			return err
		})
	}
	for _, version := range p.settings.Versions() {
		step("HTCondor "+version, func(ctx context.Context) error {
			_, err := p.rootDir(ctx, condorFamily, condorRoots[version])
			return err
		})
	}
	for _, r := range p.chosenReferences() {
		step("HTCondor with "+r.runtime, func(ctx context.Context) error {
			_, err := p.rootDir(ctx, condorFamily, r.root)
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

// startGuests boots the guests unless they run, and waits until they take commands.
func (p *pool) startGuests(ctx context.Context, system guest.System) error {
	shares, err := p.guestShares(ctx)
	if err != nil {
		return err
	}
	// The guests' first process runs from a file of its own, see install.
	self, first := p.dir.Path("bin", "pool"), p.dir.Path("guest", "init")
	if err := copyFile(self, first, 0o755); err != nil {
		return err
	}
	host := guest.Host{Socket: guestSocket(p.dir)}
	inputs := []any{&host}
	_, runs := p.daemons.Running(guestsDaemon)
	for _, g := range p.guests() {
		if err := g.judgeDisk(runs); err != nil {
			return err
		}
		if err := system.MakeDisk(ctx, g.disk()); err != nil {
			return err
		}
		name, address := guestName(g.number), guestAddress(g.number)
		config, path := guest.Config{
			Hostname: name, Root: system.Root, Shares: shares, Private: []string{p.dir.Root},
			Network: &guest.Network{Address: address + guestPrefix},
			Args:    []string{inGuest(first), guestServeVerb, address, guestHost},
		}, p.dir.Path("guest", numbered("config", g.number)+".json")
		if err := config.Write(path); err != nil {
			return err
		}
		inputs = append(inputs, config)
		host.Guests = append(host.Guests, guest.Placed{
			Machine: guest.Machine{
				System: system, Name: name, Dir: p.dir.Run("guests"), Memory: guestMemory, Disk: g.disk(),
				// Locally administered (IEEE 802).
				MAC:  fmt.Sprintf("52:54:00:12:00:%02x", 2+g.number),
				Init: first, Config: path,
			},
			Address: address,
		})
	}
	text, err := json.Marshal(inputs)
	if err != nil {
		return err
	}
	if err := host.Write(guestsFile(p.dir)); err != nil {
		return err
	}
	_, err = p.daemons.Start(ctx, daemon.Spec{Name: guestsDaemon, Args: []string{self, guestRunVerb, guestsFile(p.dir)}, Inputs: []string{string(text)}})
	if err != nil {
		return err
	}
	return p.eachGuest(ctx, func(ctx context.Context, g guestSide) error { return g.wait(ctx) })
}

// guestsFile says what guests there are.
func guestsFile(dir statedir.Dir) string { return dir.Path("guest", "host.json") }

// wait waits until a command runs in the guest.
func (g guestSide) wait(ctx context.Context) error {
	log := g.daemons.Log(guestsDaemon)
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute,
		fmt.Errorf("the guest %s takes no commands within two minutes; see %s", guestName(g.number), log))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	return cluster.Poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, ok := g.daemons.Running(guestsDaemon); !ok {
			end(fmt.Errorf("the guest %s ended before it took a command; the last lines of %s:\n%s", guestName(g.number), log, lastWords(log)))
			return false, nil
		}
		err := g.command("true").runShort(ctx)
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

// stopGuests ends the guests in order if they run.
func (p *pool) stopGuests(ctx context.Context) error {
	return p.daemons.Stop(ctx, guestsDaemon, guest.HaltTime+5*time.Second)
}

// refresh makes a guest see what the host has added to a directory that the guest has looked at.
func (g guestSide) refresh(ctx context.Context) error {
	return g.command("sh", "-c", "echo 2 >/proc/sys/vm/drop_caches").runShort(ctx)
}
