package job

import (
	"math"
	"syscall"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
)

// State is the state of the job's process in an update.
type State string

// The states (condor_starter.V6.1/os_proc.cpp:OsProc::PublishUpdateAd).
const (
	Running      State = "Running"
	Suspended    State = "Suspended"
	Checkpointed State = "Checkpointed"
	Exited       State = "Exited"
)

// IO is what a job read from and wrote to block devices.
type IO struct {
	ReadBytes, WriteBytes int64
	Reads, Writes         int64 // operations; negative if unknown
}

// Usage is what a job has used. Zero means unknown unless a field says otherwise.
type Usage struct {
	UserCPU, SystemCPU  time.Duration // with those of earlier runs of this activation
	ImageBytes          int64         // largest virtual size, or peak of the cgroup
	ResidentBytes       int64         // largest so far
	ProportionalBytes   int64         // largest so far
	Processes           int           // now
	IO                  *IO
	IOWait              time.Duration // negative if unknown
	Instructions        int64
	NetworkIn, NetworkO int64 // bytes; both 0 if unknown
}

// Process is what an update says about the job's process.
type Process struct {
	PID        int // 0 before it was started
	Started    time.Time
	Ended      time.Time // with State Exited
	State      State     // "" before the process was started: the shadow takes any state for the start of execution
	Status     syscall.WaitStatus
	CoreDumped bool // a core file was found
	Cgroup     bool // it is in a control group of its own, with limits
	Usage      Usage
	// Statistics count the job's I/O over all updates; nil leaves only the
	// totals.
	Statistics *Statistics
	Now        time.Time // of the update, for Statistics
}

// PublishProcess writes the known facts about the process into an update
// (condor_starter.V6.1/vanilla_proc.cpp:VanillaProc::PublishUpdateAd,
// os_proc.cpp, user_proc.cpp). The update at the end of the process and the
// job_termination call contain nothing else.
func PublishProcess(ad *classads.Ad, p Process, k Knobs) {
	if p.State == "" {
		return
	}
	publishUsage(ad, p.Usage, k)
	if p.Statistics != nil {
		p.Statistics.Publish(ad, p.Usage.IO, p.Now)
	}
	ad.SetString("JobState", string(p.State))
	processes := p.Usage.Processes
	if p.State == Exited {
		processes = 0
	}
	ad.SetInt("NumPids", int64(processes))
	if p.Cgroup {
		ad.SetBool("CgroupEnforced", true)
	}
	if p.PID > 0 {
		ad.SetInt("JobPid", int64(p.PID))
	}
	if !p.Started.IsZero() {
		ad.SetInt("JobStartDate", p.Started.Unix())
	}
	if p.State == Exited {
		publishEnd(ad, p)
	}
}

func publishEnd(ad *classads.Ad, p Process) {
	if p.CoreDumped {
		ad.SetBool("JobCoreDumped", true)
	}
	if !p.Ended.IsZero() && !p.Started.IsZero() {
		ad.SetReal("JobDuration", max(0, p.Ended.Sub(p.Started).Seconds()))
	}
	if p.Status.Signaled() {
		ad.SetBool("ExitBySignal", true)
		ad.SetInt("ExitSignal", int64(p.Status.Signal()))
		ad.SetString("ExitReason", "died on "+describeSignal(p.Status.Signal()))
		return
	}
	ad.SetBool("ExitBySignal", false)
	ad.SetInt("ExitCode", int64(p.Status.ExitStatus()))
}

// defaultMemoryMetric is the default of MEMORY_USAGE_METRIC: MiB of the resident
// set, rounded up.
const defaultMemoryMetric = "((ResidentSetSize+1023)/1024)"

// publishUsage writes the amounts in HTCondor's units: CPU as reals of whole
// seconds, sizes in KiB rounded down, network in megabytes of 10^6 bytes.
func publishUsage(ad *classads.Ad, u Usage, k Knobs) {
	ad.SetReal("RemoteSysCpu", math.Trunc(u.SystemCPU.Seconds()))
	ad.SetReal("RemoteUserCpu", math.Trunc(u.UserCPU.Seconds()))
	ad.SetInt("ImageSize", kibibytes(u.ImageBytes))
	ad.SetInt("ResidentSetSize", kibibytes(u.ResidentBytes))
	metric, ok := k.Lookup("MEMORY_USAGE_METRIC")
	if !ok || ad.SetExpr("MemoryUsage", metric) != nil {
		// The default is well-formed.
		_ = ad.SetExpr("MemoryUsage", defaultMemoryMetric)
	}
	if u.ProportionalBytes > 0 {
		ad.SetInt("ProportionalSetSizeKb", kibibytes(u.ProportionalBytes))
	}
	if u.IO != nil {
		ad.SetInt("BlockReadKbytes", kibibytes(u.IO.ReadBytes))
		ad.SetInt("BlockWriteKbytes", kibibytes(u.IO.WriteBytes))
		if u.IO.Reads >= 0 {
			ad.SetInt("BlockReads", u.IO.Reads)
		}
		if u.IO.Writes >= 0 {
			ad.SetInt("BlockWrites", u.IO.Writes)
		}
	}
	if u.IOWait > 0 {
		ad.SetReal("IOWait", u.IOWait.Seconds())
	}
	if u.Instructions > 0 {
		ad.SetInt("CPUInstructions", u.Instructions)
	}
	if u.NetworkIn > 0 || u.NetworkO > 0 {
		const megabyte = 1e6
		ad.SetReal("NetworkInputMb", float64(u.NetworkIn)/megabyte)
		ad.SetReal("NetworkOutputMb", float64(u.NetworkO)/megabyte)
	}
}

func kibibytes(n int64) int64 { return max(0, n) / 1024 }

// Activation is what an update says besides the process.
type Activation struct {
	StarterAddress string // without it there is no reconnect
	// Sandbox is nil for a job without file transfer.
	Sandbox *Sandbox
	// Spooled lists the files that went back to the spool, comma-separated;
	// nil before anything was uploaded.
	Spooled *string
	// Delayed are attributes that the job set for the next update.
	Delayed *classads.Ad
	// NestDelayed: the shadow knows ChirpDelayedAttrs (25.3.0 or newer);
	// otherwise the attributes are set in the update itself.
	NestDelayed bool
	// Startd is what the startd measured, from .update.ad; may be nil.
	Startd *classads.Ad
	// Exiting: the update is for a job that has ended, before and after its
	// output is transferred. It lacks some attributes that the last call to the
	// shadow has again.
	Exiting bool
}

// Sandbox is how full a job's scratch directory is.
type Sandbox struct {
	Bytes, Files   int64
	Stdout, Stderr time.Time // last changes of the files; zero if there are none
}

// Vacated is why a job is vacated.
type Vacated struct {
	Reason        string
	Code, Subcode int
}

// PublishVacate writes why a job is vacated; nothing if no reason was given
// (condor_starter.V6.1/starter.cpp:Starter::publishJobInfoAd).
func PublishVacate(ad *classads.Ad, v Vacated) {
	if v.Reason == "" {
		return
	}
	ad.SetString("VacateReason", v.Reason)
	ad.SetInt("VacateReasonCode", int64(v.Code))
	ad.SetInt("VacateReasonSubCode", int64(v.Subcode))
}

// PublishActivation writes the rest of an update
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::publishUpdateAd,
// publishJobExitAd).
func PublishActivation(ad *classads.Ad, a Activation, k Knobs) {
	if !a.Exiting {
		publishDelayed(ad, a)
	}
	if s := a.Sandbox; s != nil {
		ad.SetInt("DiskUsage", (max(0, s.Bytes)+1023)/1024)
		ad.SetInt("ScratchDirFileCount", s.Files)
		if !s.Stdout.IsZero() && !a.Exiting {
			ad.SetInt("StdoutMtime", s.Stdout.Unix())
		}
		if !s.Stderr.IsZero() && !a.Exiting {
			ad.SetInt("StderrMtime", s.Stderr.Unix())
		}
	}
	ad.SetBool("ExecuteDirWasEncrypted", false)
	if a.Spooled != nil && (*a.Spooled != "" || !a.Exiting) {
		ad.SetString("SpooledOutputFiles", *a.Spooled)
	}
	if a.StarterAddress != "" {
		ad.SetString("StarterIpAddr", a.StarterAddress)
	}
	if a.Startd != nil {
		for _, name := range StartdMetrics(k) {
			if e, ok := a.Startd.Lookup(name); ok {
				ad.Insert(name, e)
			}
		}
	}
}

func publishDelayed(ad *classads.Ad, a Activation) {
	if a.Delayed == nil {
		a.Delayed = classads.NewAd()
	}
	if a.NestDelayed {
		ad.SetAd("ChirpDelayedAttrs", a.Delayed)
	} else {
		ad.Update(a.Delayed)
	}
}

// StartdMetrics lists the attributes that the starter forwards from the ad that
// the startd writes into the sandbox
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::publishStartdUpdates).
func StartdMetrics(k Knobs) []string {
	names := []string{"CpusUsage"}
	jobs, _ := k.Lookup("STARTD_CRON_JOBLIST")
	for _, job := range config.Split(jobs) {
		metrics, _ := k.Lookup("STARTD_CRON_" + job + "_METRICS")
		for _, pair := range config.Split(metrics) {
			if resource := afterColon(pair); resource != "" {
				names = append(names, resource+"Usage", resource+"AverageUsage", "Recent"+resource+"Usage")
			}
		}
	}
	return names
}

// PublishInterval sets how long the shadow may have to wait for the next update;
// -1 while none is planned
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::updateShadow).
func PublishInterval(ad *classads.Ad, longest time.Duration) {
	n := int64(-1)
	if longest > 0 {
		n = int64(longest / time.Second)
	}
	ad.SetInt("_condor_JOBINFO_MAXINTERVAL", n)
}
