package payload

import (
	"cmp"
	"math"
	"time"
)

// Hello is the first line the wrapper sends on a connection: who it is and
// under which conditions it would run a payload.
type Hello struct {
	// Protocol is the version the wrapper speaks; see [Protocol].
	Protocol int `json:"protocol"`
	// Nonce is the value of the variable [NonceEnv] the wrapper was started with. A wrapper
	// that announces a binding's nonce was created after that binding changed the pod.
	Nonce string `json:"nonce"`
	// Boot is random for each wrapper process. The same nonce under another
	// Boot means that the container restarted.
	Boot string `json:"boot"`
	// PID is the wrapper's process ID in its own PID namespace.
	PID int `json:"pid"`
	// PIDNamespace is what /proc/self/ns/pid points to, for example
	// "pid:[4026531836]"; empty when it cannot be read.
	PIDNamespace string `json:"pid_namespace,omitempty"`
	// UID is the wrapper's user ID: 0 in a pod. A wrapper that is not root can
	// run payloads under its own UID only.
	UID int `json:"uid"`
	// NoNewPrivs is the wrapper's own no_new_privs bit (proc(5), /proc/PID/status). The
	// payload always has it.
	NoNewPrivs bool `json:"no_new_privs"`
	// OwnMounts says that the wrapper has a mount namespace to itself, and can mount there what a [Spec] asks for.
	OwnMounts bool `json:"own_mounts,omitempty"`
	// OwnProcesses says that the wrapper is the first process of a PID namespace that was made for it on this machine. The kernel kills
	// all that runs there when the wrapper ends.
	OwnProcesses bool `json:"own_processes,omitempty"`
	// Version is the version of the wrapper's build, for the log.
	Version string `json:"version,omitempty"`
	// Busy says that the wrapper serves another connection: it closes this one right after
	// the Hello.
	Busy bool `json:"busy,omitempty"`
}

// Link is a symbolic link: another name for a place, since nothing can be mounted in a container that runs.
type Link struct {
	At string // where the link is
	To string // where it leads; nothing need be there
}

// Spec says how to start the payload's main process.
//
// Strings may hold any byte but NUL; they reach the process unchanged.
type Spec struct {
	// Activation names the run, and its exit record in the control directory:
	// 1 to 128 letters, digits, '.', '_' and '-', not starting with '.'.
	Activation string
	// UID and GID of the process. When the wrapper is root both must be above 0;
	// when it is not, both must be its own.
	UID, GID int
	// Groups are the supplementary groups. Ignored when the wrapper is not root.
	Groups []int
	// Path of the program. A relative path is resolved in Dir, or in the
	// payload's PATH when SearchPath is set and Path holds no slash.
	Path string
	// Args is the whole argument vector; Args[0] is the program's own name. Empty means only
	// Path.
	Args []string
	// Env holds "NAME=value" entries. When ImageEnv is set, they are added to the
	// environment that the container was created with, and override it.
	Env      []string
	ImageEnv bool
	// HideEnv names variables of the container's environment that do not come from the image
	// and are not for the payload; a name that ends in '*' is a prefix. It does not affect
	// Env.
	HideEnv []string
	// SearchPath looks up a Path without a slash as execvp(3) does.
	SearchPath bool
	// Dir is the working directory, an absolute path.
	Dir string
	// Links are made before the start, in the container's own root file system. The wrapper
	// makes missing directories above them, replaces empty directories, and removes those links before
	// the next start that asks for others. Only for a wrapper in its own container.
	Links []Link
	// Mounts are made before the start, unless an earlier start has asked for the same; they cannot change. nil: none are asked for.
	Mounts *Mounts
	// Program, if not empty, is the content of the program file; Path is then only its name.
	// The file is not in the container's file system, but a script's interpreter is.
	Program []byte
	// Itself runs the wrapper's own program, under the name in Args[0], which must be one that
	// it has for this. Path is only a name then, too.
	Itself bool
	// AsRoot runs the program as container-root without capabilities. UID and GID remain
	// those of the payload that runs before or after it. It needs a Program, or is the wrapper Itself, and a container
	// in which no process of the payload is alive; it executes nothing of the image unless
	// the program does.
	AsRoot bool
	// Capture is how many bytes of the program's standard output and error are kept for
	// [Exit.Output], at most [MaxCapture]; the rest is read and dropped. 0: Stdout and
	// Stderr say where the output goes.
	Capture int
	// Umask of the process; only the low nine bits count.
	Umask int
	// Stdin, Stdout and Stderr name files, opened as the payload's user after
	// the change to Dir; empty is /dev/null. When Stderr equals Stdout the two
	// share one open file. Output files are created with mode 0666 less the
	// umask, and truncated unless Append is set. FIFOs do not block: an output
	// FIFO needs its reader beforehand.
	Stdin, Stdout, Stderr string
	Append                bool
	// Passed names standard files ("stdin", "stdout", "stderr") that come as open files with
	// the request, in this order; the wrapper opens nothing for them; see [Client.Start].
	Passed []string
	// Rehearse has the launcher open the standard files, FIFOs excepted, and then exit with 0:
	// nothing is executed. Not with Program, Itself, Capture or Passed.
	Rehearse bool
	// Nice is added to the wrapper's nice value.
	Nice int
	// CPUs are the numbers of the CPUs that the process may run on (sched_setaffinity(2));
	// empty for all that the wrapper may. If the wrapper may use none of them, it ignores
	// the list.
	CPUs []int
	// MaxTasks is how many processes and threads the payload may have; 0: any number. With
	// more, the wrapper kills the whole payload, see [KilledTasks]: within a fraction of a
	// second if only the payload uses the wrapper's control group, else at the next usage
	// request.
	MaxTasks int
	// NoNetwork takes the network away: the program, and all that it starts, can make sockets of
	// the family AF_UNIX only (payload/nonetwork). A process beside a payload without network has none
	// either, whatever its own Spec says. A wrapper that does not know this refuses the start.
	NoNetwork bool
	// Limits are resource limits (setrlimit(2)). The wrapper raises a hard limit only as far
	// as it may.
	Limits []Limit
}

const (
	// MaxProgram bounds [Spec.Program], in bytes, so that it fits into a line.
	MaxProgram = 5 << 20
	// MaxCapture bounds [Spec.Capture], so that it fits into an exit record.
	MaxCapture = 32 << 10
)

// Unlimited is RLIM_INFINITY in a [Limit].
const Unlimited uint64 = math.MaxUint64

// Limit is one resource limit. Units are those of setrlimit(2): bytes, seconds
// or a count.
type Limit struct {
	// Resource is the name in lower case and without RLIMIT_: "core", "stack",
	// "as", "nproc", "nofile", "fsize", "cpu", "data", "memlock" ...
	Resource string `json:"resource"`
	Soft     uint64 `json:"soft"`
	Hard     uint64 `json:"hard"`
}

// Started is the answer to a start request whose payload reached execve(2).
type Started struct {
	// Activation as in the [Spec].
	Activation string `json:"activation"`
	// PID of the main process in the wrapper's PID namespace, which is the
	// pod's when the pod shares one; with [Hello.OwnProcesses], on the machine.
	PID int `json:"pid"`
	// OwnPID is the process ID that the main process has for itself; 0 if it is PID.
	OwnPID int `json:"own_pid,omitempty"`
	// Time of the successful execve(2).
	Time time.Time `json:"time"`
}

// Own is the process ID that the main process has for itself, and by which the kernel names its core file.
func (s Started) Own() int { return cmp.Or(s.OwnPID, s.PID) }

// Exit is the exit record of an activation.
type Exit struct {
	Activation string `json:"activation"`
	// WaitStatus is the raw wait status of the main process (wait(2)), to be
	// read as a [syscall.WaitStatus].
	WaitStatus int `json:"wait_status"`
	// Started and Ended are the times of execve(2) and of the reaping of the
	// main process.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// UserCPU and SystemCPU count the main process, the descendants it waited
	// for, and the orphans that the wrapper had reaped by then.
	UserCPU   time.Duration `json:"user_cpu_ns"`
	SystemCPU time.Duration `json:"system_cpu_ns"`
	// MaxRSS is the largest resident set of any single one of those processes,
	// in bytes (getrusage(2)).
	MaxRSS int64 `json:"max_rss_bytes"`
	// Cgroup holds the container's figures for this activation; nil if the wrapper's cgroup
	// cannot be read or other programs use it.
	Cgroup *CgroupUsage `json:"cgroup,omitempty"`
	// OOMKills is how many processes of the container the kernel killed for lack of memory
	// during the activation.
	OOMKills int64 `json:"oom_kills"`
	// Killed says why the wrapper killed the payload; empty if it did not. See the Killed
	// constants.
	Killed string `json:"killed,omitempty"`
	// Output is the output that [Spec.Capture] asked for.
	Output []byte `json:"output,omitempty"`
}

// Values of [Exit.Killed].
const (
	KilledSweep   = "sweep"              // the starter asked for a sweep
	KilledLost    = "connection lost"    // the connection to the starter ended
	KilledTasks   = "too many processes" // more than [Spec.MaxTasks]
	KilledLeaving = "leaving"            // the wrapper left, on request or by a stop signal to its container
)

// CgroupUsage holds the figures of the container's cgroup. Counters are deltas since the
// start of the activation, peaks and current values are absolute. A figure that the kernel
// does not offer is -1.
type CgroupUsage struct {
	// Version is 1 or 2.
	Version int `json:"version"`
	// MemoryCurrent is all memory charged, page cache included, in bytes.
	MemoryCurrent int64 `json:"memory_current"`
	// MemoryUsed is anonymous and shared memory, without page cache, in bytes: what
	// condor_starter reports with CGROUP_IGNORE_CACHE_MEMORY, minus what was used before the
	// activation.
	MemoryUsed int64 `json:"memory_used"`
	// MemoryCache is page cache, in bytes, without the shared memory that MemoryUsed counts.
	// The kernel frees it before it kills anything.
	MemoryCache int64 `json:"memory_cache"`
	// MemoryPeak is the largest MemoryCurrent of the activation, in bytes. The kernel keeps
	// it for the life of the container; if an earlier activation's peak was higher, this is
	// the highest value seen in this one.
	MemoryPeak int64 `json:"memory_peak"`
	// MemoryLimit is the least limit of the cgroup and those above it that the wrapper can
	// see, in bytes, -1 without one.
	MemoryLimit int64 `json:"memory_limit"`
	// MemorySwapped is what is swapped out, in bytes.
	MemorySwapped int64 `json:"memory_swapped"`
	// MemoryHigh counts how often memory.high slowed the payload down (version 2).
	MemoryHigh int64 `json:"memory_high"`
	// OOMKills counts processes killed for lack of memory.
	OOMKills int64 `json:"oom_kills"`
	// UserCPU and SystemCPU in nanoseconds.
	UserCPU   time.Duration `json:"user_cpu_ns"`
	SystemCPU time.Duration `json:"system_cpu_ns"`
	// ThrottledCPU is how long the container's CPU quota kept it from running.
	ThrottledCPU time.Duration `json:"throttled_cpu_ns"`
	// Periods counts the quota's periods in which the payload ran, Throttled those in which it
	// used the quota up.
	Periods   int64 `json:"cpu_periods"`
	Throttled int64 `json:"cpu_periods_throttled"`
	// Pids and PidsPeak count tasks (threads).
	Pids     int64 `json:"pids"`
	PidsPeak int64 `json:"pids_peak"`
	// PidsRefused counts processes and threads that the kernel refused because the cgroup,
	// or with kernels before 6.11 one above it, had reached its limit.
	PidsRefused int64 `json:"pids_refused"`
	// ReadBytes, WriteBytes, Reads and Writes are block I/O over all devices.
	ReadBytes  int64 `json:"read_bytes"`
	WriteBytes int64 `json:"write_bytes"`
	Reads      int64 `json:"reads"`
	Writes     int64 `json:"writes"`
}

// ContainerUsage is what the wrapper knows of the payload at one moment: the
// answer to a usage request, and the only source of usage when the pod does not
// share its PID namespace.
type ContainerUsage struct {
	Time time.Time `json:"time"`
	// Processes and Threads of the payload that are alive.
	Processes int `json:"processes"`
	Threads   int `json:"threads"`
	// RSS and ImageSize are sums over the living processes, in bytes.
	RSS       int64 `json:"rss_bytes"`
	ImageSize int64 `json:"image_size_bytes"`
	// UserCPU and SystemCPU count the living processes, what they waited for,
	// and everything the wrapper has reaped in this activation.
	UserCPU   time.Duration `json:"user_cpu_ns"`
	SystemCPU time.Duration `json:"system_cpu_ns"`
	// MaxRSS is the largest resident set of a single process that has been
	// reaped, in bytes.
	MaxRSS int64 `json:"max_rss_bytes"`
	// Cgroup as in [Exit].
	Cgroup *CgroupUsage `json:"cgroup,omitempty"`
}
