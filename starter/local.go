package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/starter/localjob"
	"podstarter/starter/settings"
)

// requeuePause is long enough that a schedd does not spend its time on a job that cannot run, and short enough that nobody waits
// for it.
const requeuePause = 10 * time.Second

// runLocal runs a job of a schedd's local universe and gives the exit code of the process.
func runLocal(ctx context.Context, inv invocation, cfg *config.Config, env []string, file *daemonlog.Log) int {
	log := slog.New(headed{file.Handler(), inv.local.header})
	set, err := settings.Read(cfg)
	if err != nil {
		log.Error("Cannot take this job over from the schedd", "error", err)
		return localjob.ExitGeneral
	}
	set.Backend = settings.BackendLocal // whatever the machine is: the job runs on the access point
	return localjob.Run(ctx, localjob.Options{
		Schedd: inv.local.schedd, Input: os.Stdin, Version: condorVersion(cfg), Env: env, Settings: set,
		NewBackend: func(dir string, as *localexec.Account) (payload.Backend, error) {
			return localexec.New(localexec.Options{Dir: dir, As: as, Log: log})
		},
		RequeuePause: requeuePause, LogFile: file, Log: log,
	})
}

// headed puts a header before each line: the jobs of a schedd share one log.
type headed struct {
	slog.Handler
	header string
}

// Handle implements [slog.Handler].
func (h headed) Handle(ctx context.Context, r slog.Record) error {
	if h.header == "" {
		return h.Handler.Handle(ctx, r)
	}
	named := slog.NewRecord(r.Time, r.Level, h.header+" "+r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		named.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, named)
}

// WithAttrs implements [slog.Handler].
func (h headed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return headed{h.Handler.WithAttrs(attrs), h.header}
}

// WithGroup implements [slog.Handler].
func (h headed) WithGroup(name string) slog.Handler {
	return headed{h.Handler.WithGroup(name), h.header}
}
