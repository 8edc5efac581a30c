package main

import (
	"archive/tar"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/hashicorp/go-multierror"

	"podstarter/integration/pool/internal/channel"
	"podstarter/integration/pool/internal/guest"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/vnet"
)

// Verbs of this program's own.
const (
	// guestRunVerb is the daemon that owns the guests: the path of a guest.Host.
	guestRunVerb = "guest-run"
	// guestServeVerb is the server of commands in a guest: the address to listen on, and that of the only client.
	guestServeVerb = "guest-serve"
)

// guestRun is the body of guestRunVerb.
func guestRun(args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	host, err := guest.ReadHost(args[0])
	if err != nil {
		return err
	}
	wires, err := vnet.New(vnet.Config{Subnet: netip.MustParsePrefix(guestNet)})
	if err != nil {
		return err
	}
	defer func() { _ = wires.Close() }()
	return host.Run(ctx, wires, os.Stdout)
}

// guestServe is the body of guestServeVerb.
func guestServe(args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	client, err := netip.ParseAddr(args[1])
	if err != nil {
		return fmt.Errorf("whose commands to take: %w", err)
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(args[0], strconv.Itoa(guest.Port)))
	if err != nil {
		return fmt.Errorf("listening for the host's commands: %w", err)
	}
	return channel.Serve(context.Background(), onlyFrom{listener, client})
}

// onlyFrom is a listener that takes the connections of one machine. The jobs of the tests can connect to every port of
// their node, and commands run as root.
type onlyFrom struct {
	net.Listener
	client netip.Addr
}

func (l onlyFrom) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
		if err == nil && from.Addr() == l.client {
			return conn, nil
		}
		conn.Close()
	}
}

// command is a command in a guest of a pool.
type command struct {
	dir            statedir.Dir
	guest          string
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        chan os.Signal
}

// with is the command with these streams; nil is none.
func (c command) with(stdin io.Reader, stdout, stderr io.Writer) command {
	c.stdin, c.stdout, c.stderr = stdin, stdout, stderr
	return c
}

func (c command) run(ctx context.Context) (int, error) {
	conn, err := guest.Dial(ctx, guestSocket(c.dir), c.guest)
	if err != nil {
		return 1, fmt.Errorf("%s: %w; start it with `up --guest`", c.guest, err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	return channel.Run(ctx, conn, channel.Command{
		Args: c.args, Dir: guestPath(c.dir, cwd), Env: guestEnv(c.dir, os.Environ()),
		Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr, Signals: c.signals,
	})
}

// runShort runs a command that has no output to speak of.
func (c command) runShort(ctx context.Context) error {
	var out strings.Builder
	code, err := c.with(nil, nil, &out).run(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("%q in the guest %s: exit code %d: %s", c.args, c.guest, code, out.String())
	}
	return err
}

// runInGuest runs a command in a guest with this process's standard streams and signals.
func runInGuest(ctx context.Context, dir statedir.Dir, node int, args []string) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	return command{
		dir: dir, guest: guestName(node), args: args, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, signals: signals,
	}.run(ctx)
}

// inVerb runs any command in a guest, such as a test binary that `go test -exec` has built on the host.
func inVerb(dir statedir.Dir, args []string) (int, error) {
	flags := flag.NewFlagSet("in", flag.ContinueOnError)
	node := flags.Int("node", 1, "the number of the node")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return 2, errUsage
	}
	host, err := guest.ReadHost(guestsFile(dir))
	if err != nil {
		return 1, fmt.Errorf("no guest is here: %w; start one with `up --guest`", err)
	}
	if *node < 1 || *node > len(host.Guests) {
		return 2, fmt.Errorf("the cluster has the nodes 1 to %d", len(host.Guests))
	}
	args = append([]string{guestProgram(dir, host.Guests[0].System.Root, flags.Arg(0))}, flags.Args()[1:]...)
	return runInGuest(context.Background(), dir, *node-1, args)
}

// guestsVerb gives the daemon that owns the guests an order.
func guestsVerb(ctx context.Context, dir statedir.Dir, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	if err := guest.Order(ctx, guestSocket(dir), args...); err != nil || args[0] != "boot" {
		return err
	}
	p, err := openPool(dir, newProgress(os.Stdout), io.Discard)
	if err != nil {
		return err
	}
	for _, g := range p.guests() {
		if guestName(g.number) != args[1] {
			continue
		}
		if err := g.wait(ctx); err != nil || g.number == 0 {
			return err
		}
		return g.join(ctx)
	}
	return nil
}

// forwarded says whether a verb works in the guests of a pool.
func forwarded(dir statedir.Dir, verb string) bool {
	switch verb {
	case "ap", "ep", "payload", "status", "suite", "kubectl", "images", "logs":
		settings, err := dir.Load()
		return err == nil && settings.Guests > 0
	}
	return false
}

// forward runs a verb of this program in a guest: in that of the pod, if the verb is about one, else in the first.
func forward(dir statedir.Dir, verb string, args []string) (int, error) {
	ctx, node := context.Background(), 0
	switch verb {
	case "logs":
		if len(args) != 1 {
			return 2, errUsage
		}
		return 0, collectGuestLogs(ctx, dir, args[0])
	case "suite":
		// The guest has no way to the packages.
		if _, err := suiteDir(ctx, dir); err != nil {
			return 1, err
		}
		p, err := openPool(dir, newProgress(io.Discard), io.Discard)
		if err != nil {
			return 1, err
		}
		if err := p.guests()[0].refresh(ctx); err != nil {
			return 1, err
		}
	case "ep", "payload":
		target, err := parseTarget(verb, args)
		if err != nil {
			return 2, err
		}
		node = nodeOf(target.pod)
	}
	return runInGuest(ctx, dir, node, append([]string{dir.Path("bin", "pool"), verb}, args...))
}

// guestPath is a directory of the host as the guest sees it.
func guestPath(dir statedir.Dir, path string) string {
	for _, same := range []string{dir.Module, dir.Root} {
		if path == same || strings.HasPrefix(path, same+"/") {
			return path
		}
	}
	return inGuest(path)
}

// guestProgram is a program of the guest, or else the host's of the same path: the Go command puts test binaries into
// temporary directories. root is the guest's root directory as the host has it.
func guestProgram(dir statedir.Dir, root, program string) string {
	if !filepath.IsAbs(program) {
		return program
	}
	if _, err := os.Stat(filepath.Join(root, program)); err == nil {
		return program
	}
	if _, err := os.Stat(program); err != nil {
		return program
	}
	return guestPath(dir, program)
}

// guestEnv is the environment of commands in the guest, of the host's: what is about tests, pool and Go, and where the
// cache is.
func guestEnv(dir statedir.Dir, host []string) []string {
	env := []string{"USER=root", "LOGNAME=root", "SHELL=/bin/sh", programsEnv + "=" + inGuest(dir.Path("bin"))}
	for _, v := range host {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case name == programsEnv:
		case name == "HOME", name == "LANG", name == "TERM", name == "TZ", name == "XDG_CACHE_HOME", name == "PATH",
			strings.HasPrefix(name, "LC_"), strings.HasPrefix(name, "GO"), strings.HasPrefix(name, "PODSTARTER_"):
			env = append(env, v)
		}
	}
	return env
}

// collectGuestLogs copies the logs of the pool in the guests, and those of the guests themselves, into target: of the first
// as of any pool, of others into a directory with the guest's name.
func collectGuestLogs(ctx context.Context, dir statedir.Dir, target string) error {
	var errs *multierror.Error
	if err := collectLogs(ctx, dir, filepath.Join(target, "host")); err != nil {
		errs = multierror.Append(errs, err)
	}
	p, err := openPool(dir, newProgress(io.Discard), io.Discard)
	if err != nil {
		return err
	}
	for _, g := range p.guests() {
		to := target
		if g.number > 0 {
			to = filepath.Join(target, guestName(g.number))
		}
		// A guest that was killed does not keep the logs of the others back.
		if err := g.collectLogs(ctx, to); err != nil {
			errs = multierror.Append(errs, err)
		}
	}
	return errs.ErrorOrNil()
}

func (g guestSide) collectLogs(ctx context.Context, target string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	var stderr strings.Builder
	go func() {
		// A log that grows meanwhile is no error to tar, but its exit code is 1.
		code, err := g.command("tar", "-C", g.dir.Path("log"), "-cf", "-", ".").with(nil, w, &stderr).run(ctx)
		if err == nil && code > 1 {
			err = fmt.Errorf("tar in the guest %s: exit code %d: %s", guestName(g.number), code, stderr.String())
		}
		w.CloseWithError(err)
	}()
	return unpackLogs(r, target)
}

// unpackLogs writes the regular files of a tar stream below target. What the guest names otherwise is an error.
func unpackLogs(r io.Reader, target string) error {
	root, err := openDir(target)
	if err != nil {
		return fmt.Errorf("collecting logs: %w", err)
	}
	defer root.Close()
	in := tar.NewReader(r)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err != nil {
			return fmt.Errorf("collecting logs from the guest: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := unpackLog(root, header.Name, in); err != nil {
			return fmt.Errorf("collecting a log from the guest: %w", err)
		}
	}
}

func openDir(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(path)
}

func unpackLog(root *os.Root, name string, in io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(filepath.Clean(name)), 0o755); err != nil {
		return err
	}
	f, err := root.Create(filepath.Clean(name))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}
