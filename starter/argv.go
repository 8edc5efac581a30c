package main

import (
	"fmt"
	"slices"
	"strings"
)

// invocation is what the startd said on the command line
// (HTCondor src/condor_startd.V6/Starter.cpp:Starter::execDCStarter).
type invocation struct {
	advertise  bool             // -classad: print the abilities and leave
	errand     string           // one of errands; runs no job either
	localName  string           // -local-name: prefix of this slot type's knobs
	logSuffix  string           // -a: suffix of the log file's name, the slot's id
	jobLog     string           // -a2: "FLAGS,PATH" of a second log inside the sandbox
	slotName   string           // -slot-name, only under an odd STARTER_LOG_NAME_APPEND
	local      *localInvocation // -schedd-addr: the job is one of the local universe
	fetched    bool             // -job-input-ad alone: the startd fetched the job itself, and it has no shadow
	submitHost string           // the last argument: who activated the claim, as the startd names that; common files are its own
}

// daemonOptions are daemonCore's options that can precede the starter's own,
// with the number of values each takes (HTCondor
// src/condor_daemon_core.V6/daemon_core_main.cpp:dc_main). All but the named
// ones have no meaning for a program that the startd runs; they are accepted
// and passed over so that no startd is surprised.
var daemonOptions = map[string]int{
	"-a": 1, "-append": 1, "-a2": 1, "-b": 0, "-background": 0, "-c": 1, "-config": 1,
	"-d": 0, "-dynamic": 0, "-f": 0, "-foreground": 0, "-k": 1, "-kill": 1, "-l": 1, "-log": 1,
	"-local-name": 1, "-ld": 0, "-p": 1, "-port": 1, "-pidfile": 1, "-q": 0, "-r": 1,
	"-runfor": 1, "-sock": 1, "-t": 0, "-term": 0, "-v": 0, "-version": 0, "-slot-name": 1,
	"-schedd-addr": 1, "-header": 1, "-job-input-ad": 1, "-job-cluster": 1, "-job-proc": 1, "-job-subproc": 1,
}

// localInvocation is what a schedd says for a job of the local universe
// (HTCondor src/condor_schedd.V6/schedd.cpp:Scheduler::spawnLocalStarter).
type localInvocation struct {
	schedd string // address
	input  string // where the job's ad is: "-", standard input
	header string // of lines in the log
}

// refusedOptions start a starter that gets its job from the configuration (COD, for which HTCondor has no tool any more) or in a grid
// shell, or that puts files where its caller wants; no startd of today gives them.
var refusedOptions = []string{"-gridshell", "-job-keyword", "-job-output-ad", "-job-update-ad", "-job-stdin", "-job-stdout", "-job-stderr"}

// What this program does besides running jobs; each is the only argument.
const (
	errandMonitor = "-monitor"     // STARTD_CRON job: what slots' ads say of the pod
	errandKeep    = "-keep"        // daemon of the master: looks after the pod between jobs
	errandHeal    = "-heal"        // checks a sick pod once
	errandEndPod  = "-end-pod"     // ends the pod
	errandGPUs    = "-gpus"        // MACHINE_RESOURCE_INVENTORY_GPUs: which GPUs jobs can have
	errandStops   = "-pilot-stops" // preStop hook of the pilot's container
	errandEvent   = "-event"       // makes an event of the pod
)

var errands = []string{errandMonitor, errandKeep, errandHeal, errandEndPod, errandStops, errandEvent, errandGPUs}

// parseInvocation reads the arguments behind argv[0]. An unknown option is an
// error that names it: running a job under misunderstood orders is worse than
// not running it.
func parseInvocation(args []string) (invocation, error) {
	var inv invocation
	// Stock recognises the mode by no more than this prefix, as the only
	// argument (starter_v61_main.cpp:main_pre_dc_init).
	if len(args) == 1 && len(args[0]) >= 4 && strings.HasPrefix(strings.ToLower(args[0]), "-cla") {
		inv.advertise = true
		return inv, nil
	}
	if len(args) == 1 && slices.Contains(errands, args[0]) {
		inv.errand = args[0]
		return inv, nil
	}
	var local localInvocation
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") {
			if i != len(args)-1 {
				return inv, fmt.Errorf("argument %d is %q, but only the last argument, the submit host, has no dash", i+1, arg)
			}
			inv.submitHost = arg
			break
		}
		for _, refused := range refusedOptions {
			if strings.HasPrefix(arg, refused) {
				return inv, fmt.Errorf("option %s is not known here; only jobs that have a shadow, that a startd has fetched, and a schedd's of the local universe are run", arg)
			}
		}
		values, known := daemonOptions[arg]
		if !known {
			return inv, fmt.Errorf("unknown option %q; this program takes the arguments that condor_startd gives its STARTER, and condor_schedd its STARTER_LOCAL", arg)
		}
		if i+values >= len(args) {
			return inv, fmt.Errorf("option %s lacks its value", arg)
		}
		switch arg {
		case "-a", "-append":
			inv.logSuffix = args[i+1]
		case "-a2":
			inv.jobLog = args[i+1]
		case "-local-name":
			inv.localName = args[i+1]
		case "-slot-name":
			inv.slotName = args[i+1]
		case "-schedd-addr":
			local.schedd = args[i+1]
		case "-job-input-ad":
			local.input = args[i+1]
		case "-header":
			local.header = args[i+1]
		}
		i += values
	}
	switch {
	case local.schedd == "" && local.input == "":
	case local.input != "-":
		return inv, fmt.Errorf("option -job-input-ad is %q, and has to be -: a schedd, or a startd that fetches work, passes the job's ad on standard input", local.input)
	case local.schedd == "" && inv.submitHost != "":
		return inv, fmt.Errorf("option -job-input-ad is for jobs without a shadow, and %q names one", inv.submitHost)
	case local.schedd == "":
		inv.fetched = true
	default:
		inv.local = &local
	}
	return inv, nil
}

// slot is the slot's id as the job sees it in _CONDOR_SLOT: -slot-name, or the
// part of the log suffix from "slot" on (starter.cpp:getMySlotName).
func (inv invocation) slot(prefix string) string {
	if inv.slotName != "" {
		return inv.slotName
	}
	if prefix == "" {
		prefix = "slot"
	}
	if i := strings.Index(inv.logSuffix, prefix); i >= 0 {
		return inv.logSuffix[i:]
	}
	return inv.logSuffix
}
