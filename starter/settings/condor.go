package settings

import (
	"os"
	"strings"
	"time"

	"podstarter/condor/config"
	"podstarter/condor/plugin"
	"podstarter/condor/shadow"
)

// Condor are the values of HTCondor's own knobs. Names, defaults and meaning are
// HTCondor's (src/condor_utils/param_info.in).
type Condor struct {
	Version        string // CONDOR_VERSION
	Execute        string // EXECUTE: the slot's directory for sandboxes
	Lock           string // LOCK
	ResourcePrefix string // STARTD_RESOURCE_PREFIX: what slots' names begin with; empty: slot

	UIDDomain, FilesystemDomain string

	// Configuration are the files of the configuration, and directories with such files.
	Configuration []string // CONDOR_CONFIG, LOCAL_CONFIG_DIR, LOCAL_CONFIG_FILE and what they include

	// NestedScratch gives sandboxes the three directories of newer releases
	// (STARTER_NESTED_SCRATCH). The startd reads the same knob, whose default came
	// with the table of 25.x; an older release knows the flat layout only.
	NestedScratch      bool
	ExecDirPermissions string  // JOB_EXECDIR_PERMISSIONS
	JobWrapper         Setting // USER_JOB_WRAPPER
	TargetDir          Setting // SINGULARITY_TARGET_DIR
	Renice             Setting // JOB_RENICE_INCREMENT, an expression
	KeygenArgs         string  // SSH_TO_JOB_SSH_KEYGEN_ARGS

	GracefulTimeout time.Duration // SHUTDOWN_GRACEFUL_TIMEOUT
	Silent          bool          // GUIDANCE_MUMS_THE_WORD: the shadow is not asked for guidance
	HoldOnOOM       bool          // STARTER_ALWAYS_HOLD_ON_OOM
	AskToRestart    bool          // CHECK_REACTIVATE_AFTER_CHECKPOINT
	NoNetwork       bool          // NO_JOB_NETWORKING: no job has a network

	Sandbox     SandboxEnd
	Updates     Updates
	Measuring   Measuring
	Chirp       Chirp
	Credentials Credentials
	Transfer    Transfer
	Apptainer   Apptainer
	Namespaces  Namespaces

	// Warnings name the knobs that are not understood and whose default holds.
	Warnings []error
}

// Setting is a knob that may be unset.
type Setting struct {
	Value string
	Set   bool
}

// SandboxEnd says what becomes of a sandbox when its job is over (starter.cpp:removeTempExecuteDir).
type SandboxEnd struct {
	Delay  time.Duration // STARTER_REMOVE_EXECUTE_DIR_DELAY_TIME
	MoveTo string        // STARTER_MOVE_WORKING_DIR_ON_EXIT; empty: it is removed
}

// Updates are how often startd and shadow hear of a running job
// (job_info_communicator.cpp:startUpdateTimer).
type Updates struct {
	Initial, Regular time.Duration
	// Longest is told to the shadow, which takes the starter for gone after three
	// times that without an update.
	Longest time.Duration
	Slice   float64       // largest share of the time that updates may take
	Look    time.Duration // between two looks at what the payload uses
}

// Measuring says how the payload's memory is measured.
type Measuring struct {
	PSS       bool // USE_PSS: proportional set sizes are wanted
	Peak      bool // CGROUP_USE_PEAK_MEMORY: the kernel's figure for the peak counts
	FileCache bool // CGROUP_IGNORE_CACHE_MEMORY is off: that figure includes page cache
}

// Chirp is what jobs may ask their shadow for.
type Chirp struct {
	Enabled, IO, Updates, Delayed bool
	Prefix                        string // of attributes that delayed updates may set
	MaxAttributes                 int    // of them
	IPv4                          bool   // the server listens on 127.0.0.1, else on ::1
}

// Credentials are about tokens and Kerberos tickets.
type Credentials struct {
	Refresh     time.Duration // 0: never
	PlainTokens bool          // ALLOW_OAUTH_WITHOUT_ENCRYPTION; never for a starter that is root

	KerberosDir      string        // SEC_CREDENTIAL_DIRECTORY_KRB
	KerberosFresh    time.Duration // age up to which tickets are used as they are; negative: any
	KerberosPatience time.Duration // of the wait for the credential monitor
	UIDDomain        string        // of the site's users; never empty
}

// Transfer is about files.
type Transfer struct {
	Timeout    time.Duration // STARTER_UPLOAD_TIMEOUT
	Stall      time.Duration // STARTER_FILE_XFER_STALL_TIMEOUT
	SignURLs   bool          // SIGN_S3_URLS
	HistoryLog Setting       // FILE_TRANSFER_STATS_LOG

	PluginLifetime time.Duration
	KeepErrors     bool // REDIRECT_FILETRANSFER_PLUGIN_STDERR_TO_STDOUT
	PlainData      bool // ASSUME_COMPATIBLE_MULTIFILE_PLUGINS
	// LogSuccess and LogFailure say where the log has what plugins wrote.
	LogSuccess, LogFailure string
}

const (
	defaultGraceful      = 30 * time.Minute // daemon_core_main.cpp:main_shutdown_graceful
	defaultInitialUpdate = 8 * time.Second
	defaultUpdate        = 300 * time.Second
	defaultSlice         = 0.1
	// defaultLook is how often the payload's memory is looked at between updates;
	// only the kernel sees peaks that are shorter.
	defaultLook    = 5 * time.Second
	defaultRefresh = 300 // seconds
	defaultStall   = time.Hour
	// maxRefresh bounds the seconds of a knob; more is as good as never.
	maxRefresh = 10 * 365 * 24 * 60 * 60
)

// lenient reads knobs whose default holds when they are not understood.
type lenient struct {
	cfg      *config.Config
	warnings []error
}

func orDefault[T any](l *lenient, value T, err error, def T) T {
	if err != nil {
		l.warnings = append(l.warnings, err)
		return def
	}
	return value
}

func (l *lenient) bool(name string, def bool) bool {
	v, err := l.cfg.Bool(name, def)
	return orDefault(l, v, err, def)
}

// protocol reads whether a version of IP is used. "auto", HTCondor's default, means that it is if the machine has it
// (condor_utils/my_hostname.cpp).
func (l *lenient) protocol(name string) bool {
	if value, _ := l.cfg.Lookup(name); strings.EqualFold(value, "auto") {
		return true
	}
	return l.bool(name, true)
}

func (l *lenient) int(name string, def int64) int64 {
	v, err := l.cfg.Int(name, def)
	return orDefault(l, v, err, def)
}

func (l *lenient) real(name string, def float64) float64 {
	v, err := l.cfg.Real(name, def)
	return orDefault(l, v, err, def)
}

func (l *lenient) seconds(name string, def time.Duration) time.Duration {
	v, err := l.cfg.Seconds(name, def)
	return orDefault(l, v, err, def)
}

func setting(cfg *config.Config, name string) Setting {
	value, set := cfg.Lookup(name)
	return Setting{value, set}
}

// condor reads HTCondor's knobs.
func (r *reader) condor() Condor {
	cfg, l := r.cfg, &lenient{cfg: r.cfg}
	c := Condor{
		Version:        cfg.String("CONDOR_VERSION", "0.0.0"),
		Execute:        cfg.String("EXECUTE", ""),
		Lock:           cfg.String("LOCK", os.TempDir()),
		Configuration:  configuration(cfg),
		ResourcePrefix: cfg.String("STARTD_RESOURCE_PREFIX", ""),
		UIDDomain:      cfg.String("UID_DOMAIN", ""), FilesystemDomain: cfg.String("FILESYSTEM_DOMAIN", ""),
		NestedScratch:      l.bool("STARTER_NESTED_SCRATCH", false),
		ExecDirPermissions: cfg.String("JOB_EXECDIR_PERMISSIONS", "user"),
		JobWrapper:         setting(cfg, "USER_JOB_WRAPPER"),
		TargetDir:          setting(cfg, "SINGULARITY_TARGET_DIR"),
		Renice:             setting(cfg, "JOB_RENICE_INCREMENT"),
		KeygenArgs:         cfg.String("SSH_TO_JOB_SSH_KEYGEN_ARGS", ""),
		GracefulTimeout:    l.seconds("SHUTDOWN_GRACEFUL_TIMEOUT", defaultGraceful),
		HoldOnOOM:          l.bool("STARTER_ALWAYS_HOLD_ON_OOM", true),
		AskToRestart:       l.bool("CHECK_REACTIVATE_AFTER_CHECKPOINT", true),
		NoNetwork:          r.bool("NO_JOB_NETWORKING", false), // who misspells it does not want the default
		Sandbox:            SandboxEnd{Delay: l.seconds("STARTER_REMOVE_EXECUTE_DIR_DELAY_TIME", 0), MoveTo: cfg.String("STARTER_MOVE_WORKING_DIR_ON_EXIT", "")},
		Updates:            l.updates(),
		Measuring: Measuring{
			PSS: r.bool("USE_PSS", false), Peak: r.bool("CGROUP_USE_PEAK_MEMORY", false), FileCache: !r.bool("CGROUP_IGNORE_CACHE_MEMORY", true),
		},
		Chirp: Chirp{
			Enabled: l.bool("ENABLE_CHIRP", true), IO: l.bool("ENABLE_CHIRP_IO", true),
			Updates: l.bool("ENABLE_CHIRP_UPDATES", true), Delayed: l.bool("ENABLE_CHIRP_DELAYED", true),
			Prefix: cfg.String("CHIRP_DELAYED_UPDATE_PREFIX", "Chirp*"), MaxAttributes: int(max(l.int("CHIRP_DELAYED_UPDATE_MAX_ATTRS", 100), 0)),
			IPv4: l.protocol("ENABLE_IPV4"),
		},
		Credentials: Credentials{
			Refresh:          time.Duration(max(0, min(l.int("SEC_CREDENTIAL_REFRESH", defaultRefresh), maxRefresh))) * time.Second,
			PlainTokens:      os.Getuid() != 0 && l.bool("ALLOW_OAUTH_WITHOUT_ENCRYPTION", false),
			KerberosDir:      cfg.String("SEC_CREDENTIAL_DIRECTORY_KRB", ""),
			KerberosFresh:    time.Duration(max(-1, min(l.int("SEC_CREDENTIAL_REFRESH_INTERVAL", -1), maxRefresh))) * time.Second,
			KerberosPatience: l.seconds("CREDD_POLLING_TIMEOUT", 20*time.Second),
			UIDDomain:        cfg.String("UID_DOMAIN", "DOMAIN"),
		},
		Transfer: Transfer{
			Timeout: r.duration("STARTER_UPLOAD_TIMEOUT", shadow.DefaultTimeout), Stall: r.duration("STARTER_FILE_XFER_STALL_TIMEOUT", defaultStall),
			SignURLs: l.bool("SIGN_S3_URLS", true), HistoryLog: setting(cfg, "FILE_TRANSFER_STATS_LOG"),
			PluginLifetime: r.duration("MAX_FILE_TRANSFER_PLUGIN_LIFETIME", plugin.DefaultLifetime),
			KeepErrors:     r.bool("REDIRECT_FILETRANSFER_PLUGIN_STDERR_TO_STDOUT", true),
			PlainData:      r.bool("ASSUME_COMPATIBLE_MULTIFILE_PLUGINS", true),
			LogSuccess:     cfg.String("LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS", ""),
			LogFailure:     cfg.String("LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE", "D_ALWAYS"),
		},
	}
	silent, err := cfg.Bool("GUIDANCE_MUMS_THE_WORD", false)
	c.Silent = orDefault(l, silent, err, true)
	c.Apptainer, c.Namespaces = r.apptainer(l), l.namespaces()
	for _, name := range []string{"TIMEOUT_MULTIPLIER", "STARTER_TIMEOUT_MULTIPLIER"} { // startd.Network
		l.int(name, 0)
	}
	c.Warnings = l.warnings
	return c
}

// bool reads a knob that has to be understood.
func (r *reader) bool(name string, def bool) bool {
	v, err := r.cfg.Bool(name, def)
	r.problem(err)
	return v
}

func (r *reader) duration(name string, def time.Duration) time.Duration {
	v, err := r.cfg.Seconds(name, def)
	r.problem(err)
	return v
}

func (l *lenient) updates() Updates {
	u := Updates{
		Initial: l.seconds("STARTER_INITIAL_UPDATE_INTERVAL", defaultInitialUpdate),
		Regular: max(l.seconds("STARTER_UPDATE_INTERVAL", defaultUpdate), time.Second),
		Slice:   l.real("STARTER_UPDATE_INTERVAL_TIMESLICE", defaultSlice),
		Look:    max(l.seconds("CGROUP_POLLING_INTERVAL", defaultLook), time.Second),
	}
	if u.Slice <= 0 || u.Slice > 1 {
		u.Slice = defaultSlice
	}
	u.Initial = min(u.Initial, u.Regular)
	u.Longest = max(u.Regular, l.seconds("STARTER_UPDATE_INTERVAL_MAX", time.Duration(float64(u.Regular)/u.Slice)))
	return u
}
