package activation

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/condor/chirp"
)

// chirpConfig is the file in the sandbox's user directory by which condor_chirp
// finds its server.
const chirpConfig = ".chirp.config"

// ioProxy is what a job reaches its shadow through. The zero value is that of a
// job that does not.
type ioProxy struct {
	server  *chirp.Server
	delayed *chirp.Delayed
	config  string // path of the file that tells how; empty without a server
}

// openIOProxy starts the chirp proxy for the kinds of requests that job and site
// want. A proxy that cannot be started costs the job nothing but that
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::initIOProxy).
func (a *activation) openIOProxy() {
	wants, ok := a.chirpWanted()
	if !ok {
		return
	}
	a.chirp.delayed = chirp.NewDelayed(a.set.Condor.Chirp.Prefix, a.set.Condor.Chirp.MaxAttributes)
	shown := public(a.ad)
	wants.Shadow, wants.Cookie = a.shadow, chirp.NewCookie()
	wants.Attributes = a.chirp.delayed
	wants.JobAttribute = func(name string) (*classads.Expr, bool) { return shown.Lookup(name) }
	wants.Spool, wants.Log = a.nameless, a.log
	if a.lease != nil {
		wants.UID, _ = a.lease.Owner()
	}

	// Pilot and payload containers share the pod's network, and only it: on a
	// host's network the cookie is what keeps others out.
	address := "127.0.0.1:0"
	if !a.set.Condor.Chirp.IPv4 {
		address = "[::1]:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		a.log.Error("Couldn't initialize IO Proxy.", "error", err)
		return
	}
	server := chirp.Serve(listener, wants)
	if err := a.sandbox.WriteUserFile(chirpConfig, []byte(server.Config()), 0o700); err != nil {
		a.log.Error("Couldn't initialize IO Proxy.", "error", err)
		server.Close()
		return
	}
	a.chirp.server, a.chirp.config = server, filepath.Join(a.sandbox.User(), chirpConfig)
	a.log.Info("Initialized IO Proxy.")
}

// chirpWanted says which kinds of requests are served, and whether any is. The
// site has the last word.
func (a *activation) chirpWanted() (chirp.Options, bool) {
	allows := a.set.Condor.Chirp
	if !allows.Enabled {
		a.log.Info("ENABLE_CHIRP is false in config file, not enabling chirp")
		return chirp.Options{}, false
	}
	files := a.ad.BoolOr("WantIOProxy", false) && allows.IO
	wants := chirp.Options{
		Files:   files,
		Updates: a.ad.BoolOr("WantRemoteUpdates", files) && allows.Updates,
		Delayed: a.ad.BoolOr("WantDelayedUpdates", true) && allows.Delayed,
	}
	a.log.Info(fmt.Sprintf("Chirp config summary: IO %t, Updates %t, Delayed updates %t.", wants.Files, wants.Updates, wants.Delayed))
	return wants, wants.Files || wants.Updates || wants.Delayed
}

// nameless makes a file that no one else can find, on the sandbox's volume: what
// goes through it is the job's.
func (a *activation) nameless() (*os.File, error) {
	fd, err := unix.Open(a.sandbox.Dir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), "spool"), nil
	}
	// Not every file system knows that. The starter's own directory for such
	// files is out of the payload's reach.
	f, tempErr := os.CreateTemp("", "condor_pod_starter_")
	if tempErr != nil {
		return nil, fmt.Errorf("make a file without a name in %s: %w", a.sandbox.Dir(), err)
	}
	return f, os.Remove(f.Name())
}

// takeDelayed is what the job has set for the next update; nil without a proxy.
func (p *ioProxy) takeDelayed() *classads.Ad {
	if p.delayed == nil {
		return nil
	}
	return p.delayed.Take()
}

// giveBackDelayed keeps what an update that did not arrive told for the next one.
func (p *ioProxy) giveBackDelayed(update *classads.Ad) {
	if p.delayed != nil {
		p.delayed.Restore(update)
	}
}

// finish waits until all has been done that the job has asked for. Its processes
// have ended.
func (p *ioProxy) finish(ctx context.Context) {
	if p.server != nil {
		p.server.Finish(ctx)
	}
}

func (p *ioProxy) close() {
	if p.server != nil {
		p.server.Close()
	}
}

// hidden are the names of files in the sandbox that are not the job's output.
func (p *ioProxy) hidden() []string {
	if p.config == "" {
		return nil
	}
	return []string{chirpConfig}
}

// drainChirp lets all that the job asked for be done, unless an order allows no
// delay. Nothing of the job is alive.
func (a *activation) drainChirp(ctx context.Context) {
	ctx, release := a.orders.UntilHard(ctx)
	defer release()
	a.chirp.finish(ctx)
}
