// Package ioproxy lets a job reach its shadow: the server of condor_chirp, which the
// stock starter calls the IO proxy (condor_starter.V6.1/jic_shadow.cpp:
// JICShadow::initIOProxy).
package ioproxy

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/condor/chirp"
	"podstarter/condor/job"
	"podstarter/starter/settings"
)

// configFile is the file in the sandbox's user directory by which condor_chirp finds its
// server.
const configFile = ".chirp.config"

// Sandbox is where the job finds the server's address and cookie.
type Sandbox interface {
	Dir() string
	User() string
	WriteUserFile(name string, data []byte, mode fs.FileMode) error
}

// Options are what a [Proxy] works with.
type Options struct {
	Job     *classads.Ad
	UID     int // of the payload
	Sandbox Sandbox
	Shadow  chirp.Shadow
	Knobs   settings.Chirp
	Log     *slog.Logger
}

// Proxy is how a job reaches its shadow. The zero value is for a job that does not.
// Open is called before all other methods; those may be called by any goroutine.
type Proxy struct {
	server  *chirp.Server
	delayed *chirp.Delayed
	config  string // path of the file that tells how; empty without a server
}

// Open starts the server for the kinds of requests that job and site want. If the server
// cannot be started, the job runs without it.
func (p *Proxy) Open(o Options) {
	wants, ok := o.wanted()
	if !ok {
		return
	}
	p.delayed = chirp.NewDelayed(o.Knobs.Prefix, o.Knobs.MaxAttributes)
	shown := o.Job.Public()
	wants.Shadow, wants.Cookie = o.Shadow, chirp.NewCookie()
	wants.Attributes = p.delayed
	wants.JobAttribute = func(name string) (*classads.Expr, bool) { return shown.Lookup(name) }
	wants.Spool = func() (*os.File, error) { return nameless(o.Sandbox.Dir()) }
	wants.Log, wants.UID = o.Log, o.UID

	// Pilot and payload containers share the pod's network, where nobody else
	// is; on a host's network only the cookie keeps others out.
	address := "127.0.0.1:0"
	if !o.Knobs.IPv4 {
		address = "[::1]:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		o.Log.Error("Couldn't initialize IO Proxy.", "error", err)
		return
	}
	server := chirp.Serve(listener, wants)
	if err := o.Sandbox.WriteUserFile(configFile, []byte(server.Config()), 0o700); err != nil {
		o.Log.Error("Couldn't initialize IO Proxy.", "error", err)
		server.Close()
		return
	}
	p.server, p.config = server, filepath.Join(o.Sandbox.User(), configFile)
	o.Log.Info("Initialized IO Proxy.")
}

// wanted says which kinds of requests are served, and whether any is. The site has the
// last word.
func (o Options) wanted() (chirp.Options, bool) {
	if !o.Knobs.Enabled {
		o.Log.Info("ENABLE_CHIRP is false in config file, not enabling chirp")
		return chirp.Options{}, false
	}
	files := o.Job.BoolOr("WantIOProxy", false) && o.Knobs.IO
	wants := chirp.Options{
		Files:   files,
		Updates: o.Job.BoolOr("WantRemoteUpdates", files) && o.Knobs.Updates,
		Delayed: o.Job.BoolOr("WantDelayedUpdates", true) && o.Knobs.Delayed,
	}
	o.Log.Info(fmt.Sprintf("Chirp config summary: IO %t, Updates %t, Delayed updates %t.", wants.Files, wants.Updates, wants.Delayed))
	java := o.Job.IntOr("JobUniverse", 0) == int64(job.Java) // whose library finds nothing to do without a server
	return wants, wants.Files || wants.Updates || wants.Delayed || java
}

// nameless makes a file that nobody else can find, on the sandbox's volume: what goes
// through it is the job's.
func nameless(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), "spool"), nil
	}
	// Not every file system can do that. The starter's own directory for such files is
	// out of the payload's reach.
	f, tempErr := os.CreateTemp("", "condor_pod_starter_")
	if tempErr != nil {
		return nil, fmt.Errorf("make a file without a name in %s: %w", dir, err)
	}
	return f, os.Remove(f.Name())
}

// Config is the path of the file by which condor_chirp finds its server; empty without
// one.
func (p *Proxy) Config() string { return p.config }

// TakeDelayed is what the job has set for the next update; nil without a server.
func (p *Proxy) TakeDelayed() *classads.Ad {
	if p.delayed == nil {
		return nil
	}
	return p.delayed.Take()
}

// GiveBack keeps the content of an update that did not arrive for the next one.
func (p *Proxy) GiveBack(update *classads.Ad) {
	if p.delayed != nil {
		p.delayed.Restore(update)
	}
}

// Finish waits until all requests of the job are done. Its processes have ended.
func (p *Proxy) Finish(ctx context.Context) {
	if p.server != nil {
		p.server.Finish(ctx)
	}
}

// Close ends the server.
func (p *Proxy) Close() {
	if p.server != nil {
		p.server.Close()
	}
}

// Hidden are the names of files in the sandbox that are not the job's output.
func (p *Proxy) Hidden() []string {
	if p.config == "" {
		return nil
	}
	return []string{configFile}
}
