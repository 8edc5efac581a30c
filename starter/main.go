// Command condor_pod_starter is a drop-in replacement for HTCondor's
// condor_starter: condor_startd runs it through its STARTER knob, once for
// each activation of a claim. It runs the job in a sibling container of its own
// pod, or, where there is no pod, beside itself.
//
// The files here read the command line, open the log, and do what is not running a job
// (errands); package activation runs the job.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/condor/startd"
	"podstarter/payload"
	"podstarter/payload/threads"
	"podstarter/sshtojob"
	"podstarter/starter/activation"
	"podstarter/starter/journal"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
	"podstarter/wrapper/agent"
)

// exitLog is the exit code when the log could not be opened (HTCondor
// src/condor_includes/exit.h); the others are the activation's.
const exitLog = 44

// Threads are made before they are needed: when a job has used up all processes and
// threads of the pod, the kernel gives no more, and a Go program dies of that. The starter
// needs one for each of its processors, and for each program, file or plugin that it waits
// for in the kernel; one takes some 30 KiB.
const (
	processors     = 4
	starterThreads = 24
	keeperThreads  = 8
	monitorThreads = 4
)

// reserveThreads makes them.
func reserveThreads(spare int) {
	runtime.GOMAXPROCS(min(processors, runtime.GOMAXPROCS(0)))
	threads.Reserve(spare)
}

// memoryTarget is when the garbage collector begins to work harder, in bytes.
// The starter lives as long as the job, and a node runs many of them.
const memoryTarget = 20 << 20

func main() {
	// The same file is also the wrapper, its launcher and sweeper, an ssh server and what is
	// behind it, if it runs under their names. Those must set up nothing of the starter.
	agent.Dispatch()
	sshtojob.Dispatch()
	debug.SetMemoryLimit(memoryTarget)
	dieBySignal()
	unix.Umask(payloadrun.Umask) // what plugins and hooks begin with; a thread cannot have its own in a pod
	os.Exit(run(os.Args[1:], os.Environ()))
}

func run(args, env []string) int {
	ctx := context.Background()
	refuse := func(code int, err error) int {
		fmt.Fprintf(os.Stderr, "condor_pod_starter: %v\n", err)
		return code
	}
	if len(args) == 1 && questions[args[0]] != nil {
		if err := questions[args[0]](ctx, os.Stdout, env); err != nil {
			return refuse(activation.ExitGeneral, err)
		}
		return activation.ExitNormal
	}
	if checks, asJSON := checkOptions(args); checks {
		cfg, err := config.Load(ctx, config.Options{Env: startd.ScrubEnv(env)})
		if err != nil {
			return refuse(activation.ExitGeneral, err)
		}
		return printAudit(ctx, os.Stdout, cfg, asJSON)
	}
	inv, err := parseInvocation(args)
	if err != nil {
		return refuse(activation.ExitGeneral, err)
	}
	if inv.errand == errandMonitor || inv.errand == errandKeep {
		stay()
	} else {
		debug.SetGCPercent(startGrowth)
	}
	load := func(ctx context.Context) (*config.Config, error) {
		return config.Load(ctx, config.Options{LocalName: inv.localName, Env: startd.ScrubEnv(env)})
	}
	if inv.errand == errandStops {
		return pilotStops(ctx, os.Stderr, load, pilotStopsTime, settings.KnobPrivateDir.Default)
	}
	cfg, err := load(ctx)
	if err != nil {
		if noted := noteUnconfigured(inv, env, err); noted != nil {
			err = multierror.Append(err, noted)
		}
		return refuse(activation.ExitGeneral, err)
	}
	if inv.errand == errandMonitor {
		reserveThreads(monitorThreads)
		return monitor(cfg)
	}
	if inv.errand == errandGPUs {
		return printGPUs(os.Stdout, os.Stderr, cfg)
	}
	log, err := openLog(cfg, inv)
	if err != nil {
		return refuse(exitLog, err)
	}
	defer log.Close()
	if inv.advertise {
		return advertise(ctx, os.Stdout, cfg, logger(log))
	}
	switch inv.errand {
	case errandKeep:
		reserveThreads(keeperThreads)
		return keep(ctx, cfg, logger(log))
	case errandHeal:
		return heal(ctx, os.Stdout, cfg, logger(log))
	case errandEvent:
		return announce(ctx, os.Stdin, os.Stdout, cfg, logger(log))
	case errandEndPod:
		return endPod(ctx, os.Stderr, cfg, logger(log))
	}
	reserveThreads(starterThreads)
	dieAtOnce()
	program, _ := os.Executable()
	log.Start(daemonlog.Banner{Program: program, Version: condorVersion(cfg), Platform: platform(), LocalName: inv.localName, Sources: cfg.Sources()})
	code := 0
	switch {
	case inv.local != nil:
		code = runLocal(ctx, inv, cfg, env, log)
	case inv.fetched:
		code = runFetched(ctx, inv, cfg, env, log)
	default:
		code = activate(ctx, inv, cfg, env, log)
	}
	log.Exiting(code)
	return code
}

// activate runs one activation and gives the exit code of the process.
func activate(ctx context.Context, inv invocation, cfg *config.Config, env []string, file *daemonlog.Log) int {
	log := logger(file)
	set, err := settings.Read(cfg)
	if err != nil {
		log.Error("Cannot take this activation over from the startd", "error", err)
		return activation.ExitGeneral
	}
	return activation.Run(ctx, activationOf(inv, cfg, env, set, file))
}

// activationOf are the options of an activation.
func activationOf(inv invocation, cfg *config.Config, env []string, set settings.Settings, file *daemonlog.Log) activation.Options {
	log := logger(file)
	var made calls
	return activation.Options{
		Slot: inv.slot(set.Condor.ResourcePrefix), SubmitHost: inv.submitHost, LogSuffix: inv.logSuffix, JobLog: inv.jobLog,
		Version: condorVersion(cfg), Env: env, Settings: set, Pod: podOf(set), GPUs: gpusOf(set), Host: hostOf(set),
		NewBackend: func(ctx context.Context) (payload.Backend, error) { return newBackend(ctx, set, cfg, &made, log) },
		Inherit:    startd.Inherit,
		Registries: usersRegistries(set, log),
		Note:       journal.Journal{StateDir: set.StateDir()}.Write,
		Calls:      made.soFar,
		Rest:       rest,
		LogFile:    file, Log: log,
	}
}
