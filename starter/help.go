package main

import (
	"context"
	"fmt"
	"io"

	"podstarter/condor/config"
	"podstarter/condor/startd"
	"podstarter/internal/buildinfo"
)

// questions are the options that ask about the program itself. Each is the only
// argument; among others, -v and -version are daemonCore's, and are passed over.
var questions = map[string]func(ctx context.Context, out io.Writer, env []string) error{
	"-help": help, "-h": help, "--help": help,
	"-version": sayVersion, "-v": sayVersion, "--version": sayVersion,
}

// help says how the program is called.
func help(_ context.Context, out io.Writer, _ []string) error {
	_, err := io.WriteString(out, helpText)
	return err
}

const helpText = `usage: condor_pod_starter [OPTION...] SUBMIT-HOST    run one job, as condor_startd asks
       condor_pod_starter -schedd-addr ADDRESS -job-input-ad -    run a job of the local
                                                      universe, as condor_schedd asks
       condor_pod_starter ERRAND                      do something else, and end

condor_pod_starter is a drop-in for HTCondor's condor_starter, for execution
points inside a Kubernetes pod. condor_startd runs it if STARTER names it,
condor_schedd for jobs of the local universe if STARTER_LOCAL does.

errands, each the only argument:
  -check [-json]  audit this execution point and print the findings, as JSON if
                  asked; the exit code is 0 unless one of them is bad
  -classad        print what jobs can expect here, as condor_startd asks for it
  -monitor        print what slots' ads say of the pod (a job of STARTD_CRON)
  -keep           look after the pod between jobs (a daemon of condor_master)
  -heal           check a sick pod once, and take it back into service if it is well
  -end-pod        end the pod
  -pilot-stops    let jobs in sidecars know if the pod ends (a preStop hook of the pilot)
  -event          make a Kubernetes event of the pod, from JSON on standard input
  -gpus           print the GPUs of the payload containers, as condor_gpu_discovery does
  -version        print the version
  -help           print this

options of condor_startd; other options of HTCondor's daemons are passed over:
  -a SUFFIX           suffix of the log's name: the slot
  -a2 FLAGS,PATH      a second log, inside the sandbox
  -local-name NAME    prefix of this slot type's knobs
  -slot-name NAME     the slot, where the suffix does not say it

The configuration is HTCondor's (condor_config_val); the knobs of this program
begin with POD_STARTER_. docs/admin/knobs.md explains them; docs/README.md lists all
pages.
`

// sayVersion prints what the stock starter prints, the versions of HTCondor and
// of the platform, and the version of this build. Without HTCondor's
// configuration the version of HTCondor is left out: it is that of the daemons
// around this program.
func sayVersion(ctx context.Context, out io.Writer, env []string) error {
	if cfg, err := config.Load(ctx, config.Options{Env: startd.ScrubEnv(env)}); err == nil {
		if _, err := fmt.Fprintf(out, "%s\n%s\n", condorVersion(cfg), platform()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, buildinfo.Line())
	return err
}
