package job

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/config"
)

// scratchToken stands for the sandbox wherever the startd does not know its path
// yet, such as in the slot's ad (condor_startd.V6/ResAttributes.cpp).
const scratchToken = "#CoNdOrScRaTcHdIr#"

// Names of files in the sandbox whose paths are passed to the job.
const (
	JobAdFile        = ".job.ad"
	StarterLogFile   = ".starter.log"
	MachineAdFile    = ".machine.ad"
	WrapperErrorFile = ".job_wrapper_failure"
)

// Surroundings is where and how the job runs, as far as its environment shows it.
// All paths are as the job sees them.
type Surroundings struct {
	Scratch      string // the sandbox
	Iwd          string // initial directory as the job names it; the sandbox with file transfer
	FileTransfer bool
	Slot         string // "slot1_1"
	StarterPID   int
	Home         string // home of the job's user; "" leaves HOME alone
	TmpDir       string // "" means Scratch
	PIDs         []int  // processes of the job, when others join it (ssh)
	// Ended is how the job's process ended, for programs that run after it.
	Ended *syscall.WaitStatus

	CredDir       string // fetched credentials, "" if none
	KerberosCache string
	Proxy         string // X.509 proxy, if it is not where the job's ad says
	ChirpConfig   string // "" if there is no chirp proxy
	OutputAd      string
	WrapperWorks  bool // USER_JOB_WRAPPER can be executed
	InPod         bool // the job is in a container of its own, without HTCondor
	Node          *Node

	Machine *classads.Ad // the slot's ad; may be nil
	Secrets *classads.Ad // the startd's secrets for this claim; may be nil
	Environ []string     // the starter's own environment
}

// Environment builds the environment of the job's process
// (condor_starter.V6.1/starter.cpp:Starter::GetJobEnv, os_proc.cpp:
// OsProc::StartJob). Later layers override earlier ones:
//
//  1. the knob STARTER_JOB_ENVIRONMENT
//  2. what the job asked for
//  3. what [Publish] sets
//  4. what JOB_INHERITS_STARTER_ENVIRONMENT names, where still unset
//  5. the marks that identify the process family
//
// It contains nothing else: no PATH, no USER. An error means that the job cannot
// be started, and says what its submitter or the administrator must change.
func Environment(ad *classads.Ad, k Knobs, s Surroundings) (*Env, error) {
	env, err := ShownEnvironment(ad, k, s)
	if err != nil {
		return nil, err
	}
	inherit(env, k, s.Environ)
	return env, nil
}

// ShownEnvironment is what HTCondor shows of a job's environment: layers 1 to 3 of
// [Environment].
func ShownEnvironment(ad *classads.Ad, k Knobs, s Surroundings) (*Env, error) {
	env := NewEnv()
	if text, ok := k.Lookup("STARTER_JOB_ENVIRONMENT"); ok {
		if err := env.MergeKnob(text); err != nil {
			return nil, fmt.Errorf("knob STARTER_JOB_ENVIRONMENT: %w", err)
		}
	}
	if err := env.MergeAd(ad); err != nil {
		return nil, err
	}
	if err := s.Node.merge(env, ad, k, s); err != nil {
		return nil, err
	}
	if err := Publish(env, ad, k, s); err != nil {
		return nil, err
	}
	return env, nil
}

// inherit adds layers 4 and 5.
func inherit(env *Env, k Knobs, environ []string) {
	if list, ok := k.Lookup("JOB_INHERITS_STARTER_ENVIRONMENT"); ok {
		on, err := k.Bool("JOB_INHERITS_STARTER_ENVIRONMENT", false)
		switch {
		case err != nil: // not a boolean, so it is a list
			env.Import(withoutSecrets(environ), list)
		case on:
			env.Import(withoutSecrets(environ), "")
		}
	}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if ok && strings.HasPrefix(name, "_CONDOR_ANCESTOR_") {
			env.Set(name, value)
		}
	}
}

// withoutSecrets removes what daemons pass to each other and the job must not
// see, even if a list names it.
func withoutSecrets(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		if strings.HasPrefix(entry, "CONDOR_INHERIT=") || strings.HasPrefix(entry, "CONDOR_PRIVATE_") {
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

// TemporaryVariables tell programs where to put temporary files.
var TemporaryVariables = []string{"TMPDIR", "TEMP", "TMP"}

// Publish sets the variables that a starter provides. They replace what the user
// set, except for the numbers of threads
// (condor_starter.V6.1/starter.cpp:Starter::PublishToEnv).
func Publish(env *Env, ad *classads.Ad, k Knobs, s Surroundings) error {
	var problems *multierror.Error
	env.Set("BATCH_SYSTEM", "HTCondor")
	env.Set("_CONDOR_JOB_IWD", s.Iwd)
	env.Set("_CONDOR_JOB_PIDS", joinInts(s.PIDs))
	set := func(name, value string) {
		if value != "" {
			env.Set(name, value)
		}
	}
	publishEnded(env, s.Ended)
	bin, _ := k.Lookup("BIN")
	set("_CONDOR_BIN", bin)
	set("X509_USER_PROXY", proxyPath(ad, s))
	if s.Machine != nil {
		if err := publishResources(env, k, s.Machine); err != nil {
			problems = multierror.Append(problems, err)
		}
		publishSplitClaim(env, k, s.Secrets)
	}
	set("_CONDOR_CREDS", s.CredDir)
	if s.KerberosCache != "" {
		env.Set("KRB5CCNAME", "FILE:"+s.KerberosCache)
	}
	if s.OutputAd != "-" {
		set("_CONDOR_OUTPUT_CLASSAD", s.OutputAd)
	}
	env.Set("CONDOR_STARTER_PID", strconv.Itoa(s.StarterPID)) // for condor_who
	env.Set("_CONDOR_SCRATCH_DIR", s.Scratch)
	env.Set("APPTAINER_CACHEDIR", s.Scratch)
	env.Set("SINGULARITY_CACHEDIR", s.Scratch)
	env.Set("_CONDOR_SLOT", s.Slot)
	if err := publishPorts(env, k); err != nil {
		problems = multierror.Append(problems, err)
	}
	tmp := s.TmpDir
	if tmp == "" {
		tmp = s.Scratch
	}
	for _, name := range TemporaryVariables {
		env.Set(name, tmp)
	}
	publishThreads(env, k, s.Machine)
	if s.WrapperWorks {
		env.Set("_CONDOR_WRAPPER_ERROR_FILE", path.Join(s.Scratch, WrapperErrorFile))
	}
	env.Set("_CONDOR_MACHINE_AD", path.Join(s.Scratch, MachineAdFile))
	set("_CONDOR_CHIRP_CONFIG", s.ChirpConfig)
	env.Set("_CONDOR_JOB_AD", path.Join(s.Scratch, JobAdFile))
	prefix, ok := k.Lookup("CHIRP_DELAYED_UPDATE_PREFIX")
	if !ok {
		prefix = "CHIRP"
	}
	env.Set("_CHIRP_DELAYED_UPDATE_PREFIX", prefix)
	home, err := k.Bool("STARTER_SETS_HOME_ENV", true)
	if err != nil {
		problems = multierror.Append(problems, err)
	}
	// A release that does not know the knob leaves HOME to the job.
	_, known := k.Lookup("STARTER_SETS_HOME_ENV")
	_, own := env.Get("HOME")
	if home && (known || !own) {
		set("HOME", s.Home)
	}
	env.Replace(scratchToken, s.Scratch)
	return problems.ErrorOrNil()
}

// publishEnded sets how the job's process ended (user_proc.cpp:PublishToEnv).
func publishEnded(env *Env, status *syscall.WaitStatus) {
	switch {
	case status == nil:
	case status.Signaled():
		env.Set("_CONDOR_MAINJOB_EXIT_SIGNAL", strconv.Itoa(int(status.Signal())))
	default:
		env.Set("_CONDOR_MAINJOB_EXIT_CODE", strconv.Itoa(status.ExitStatus()))
	}
}

func joinInts(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

// proxyPath returns the path of the job's X.509 proxy, "" if it has none
// (condor_utils/build_job_env.cpp).
func proxyPath(ad *classads.Ad, s Surroundings) string {
	if s.Proxy != "" {
		return s.Proxy
	}
	proxy := ad.StringOr("x509userproxy", "")
	if proxy == "" {
		return ""
	}
	if s.FileTransfer {
		proxy = basename(proxy)
	}
	if !path.IsAbs(proxy) {
		// Not the initial directory: RemoteIwd may change that.
		dir := s.Scratch
		if !s.FileTransfer {
			dir = ad.StringOr(attrIwd, s.Iwd)
		}
		proxy = strings.TrimRight(dir, "/") + "/" + proxy
	}
	return proxy
}

// publishSplitClaim passes the split claim to a job if the site wants that. The
// value is quoted as a ClassAd string.
func publishSplitClaim(env *Env, k Knobs, secrets *classads.Ad) {
	if secrets == nil {
		return
	}
	name, ok := k.Lookup("STARTER_SET_SLOT_SPLIT_CLAIM_IN_JOB_ENV")
	if !ok {
		return
	}
	if claim, err := secrets.GetString("SplitClaimId"); err == nil {
		env.Set(name, classads.StringExpr(claim).OldString())
	}
}

// publishPorts sets the range of ports for outgoing connections
// (condor_utils/get_port_range.cpp).
func publishPorts(env *Env, k Knobs) error {
	for _, names := range [][2]string{{"OUT_LOWPORT", "OUT_HIGHPORT"}, {"LOWPORT", "HIGHPORT"}} {
		low, err := k.Int(names[0], 0)
		if err != nil {
			return err
		}
		high, err := k.Int(names[1], 0)
		if err != nil {
			return err
		}
		if low == 0 && high == 0 {
			continue
		}
		if low > 0 && low <= high && high < 1<<16 {
			env.Set("_CONDOR_LOWPORT", strconv.FormatInt(low, 10))
			env.Set("_CONDOR_HIGHPORT", strconv.FormatInt(high, 10))
		}
		return nil
	}
	return nil
}

// publishThreads sets the number of threads to start. If the job itself sets a
// variable of the list, this and, as in stock, all later ones of the list are
// left alone: OMP_THREAD_LIMIT would undo the job's own OMP_NUM_THREADS.
func publishThreads(env *Env, k Knobs, machine *classads.Ad) {
	if machine == nil {
		return
	}
	cpus := machine.IntOr("Cpus", 0)
	names, _ := k.Lookup("STARTER_NUM_THREADS_ENV_VARS")
	if cpus <= 0 {
		return
	}
	opinion := ""
	for _, name := range config.Split(names) {
		if v, ok := env.Get(name); ok {
			opinion = v
		}
		if opinion == "" {
			env.Set(name, strconv.FormatInt(cpus, 10))
		}
	}
}

// basename returns what follows the last slash
// (condor_utils/basename.cpp:condor_basename).
func basename(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }
