// Command condor_pod_metrics serves what condor_pod_starter has counted in its pod, for
// Prometheus. condor_master runs it where POD_STARTER_METRICS_ADDRESS is set.
//
//	condor_pod_metrics -address ADDRESS -dir LOCK [-state DIR]
//
// It is a program of its own so that the starter, which starts once for each job, has neither
// a web server nor Prometheus's library in it. It needs no rights: if it is root, it becomes
// the owner of HTCondor's LOCK directory before it takes the first connection.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/internal/buildinfo"
	"podstarter/starter/outlet"
)

// memoryTarget is when the garbage collector begins to work harder, in bytes.
const memoryTarget = 20 << 20

func main() {
	debug.SetMemoryLimit(memoryTarget)
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	os.Exit(run(os.Args[1:]))
}

// options are what the command line says.
type options struct {
	address string // to listen at
	dir     string // HTCondor's LOCK
	state   string // where the FIFO of the log is; empty for standard error
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("condor_pod_metrics", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.address, "address", "", "`ADDRESS` to listen at, such as :9464 (POD_STARTER_METRICS_ADDRESS)")
	flags.StringVar(&o.dir, "dir", "", "`DIRECTORY` with what is counted: HTCondor's LOCK")
	flags.StringVar(&o.state, "state", "", "`DIRECTORY` of the FIFO for this program's own log (POD_STARTER_PRIVATE_DIR); standard error if there is none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.address == "" || o.dir == "" {
		err := fmt.Errorf("condor_pod_metrics needs -address and -dir, and nothing else")
		fmt.Fprintln(usage, err)
		flags.Usage()
		return o, err
	}
	return o, nil
}

func run(args []string) int {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return 2
	}
	var out io.Writer = os.Stderr
	if lines := (&outlet.Outlet{Dir: o.state}); o.state != "" && lines.Open() == nil {
		out = lines
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	signal.Ignore(unix.SIGHUP) // of condor_reconfig; the master has given all there is to know at the start
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGQUIT, unix.SIGINT)
	defer stop()
	listener, err := net.Listen("tcp", o.address)
	if err == nil {
		err = giveUpRoot(o.dir)
	}
	if err != nil {
		log.Error("no metrics are served", "address", o.address, "error", err)
		return 1
	}
	log.Info("metrics are served", "address", listener.Addr().String(), "version", buildinfo.Version())
	if err := serve(ctx, listener, peerOf, collector{dir: o.dir}, log); err != nil {
		log.Error("metrics are served no longer", "error", err)
		return 1
	}
	return 0
}

// giveUpRoot makes this process, if it is root, one of the user to whom a directory belongs.
func giveUpRoot(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look whose metrics are to be served: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return fmt.Errorf("%s belongs to root; it must be HTCondor's LOCK directory, which belongs to the user condor", dir)
	}
	gid, uid := int(owner.Gid), int(owner.Uid)
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("give up root's groups: %w", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("become group %d: %w", gid, err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("become user %d: %w", uid, err)
	}
	return nil
}
