package job

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

// lines shows an ad as sorted text.
func lines(ad *classads.Ad) string { return ad.FormatOld() }

func TestUpdateOfARunningJob(t *testing.T) {
	start := time.Unix(1795210936, 500_000_000)
	ad := classads.NewAd()
	PublishProcess(ad, Process{PID: 661, Started: start, State: Running, Cgroup: true, Usage: Usage{
		UserCPU: 12900 * time.Millisecond, SystemCPU: time.Second, ImageBytes: 5<<20 + 1000, ResidentBytes: 5 << 20, ProportionalBytes: 4 << 20,
		Processes: 3, IO: &IO{ReadBytes: 4096, WriteBytes: 1023, Reads: 2, Writes: -1}, IOWait: 1500 * time.Millisecond, Instructions: 99,
		NetworkIn: 1_500_000, NetworkO: 1,
	}}, knobs(nil))
	PublishActivation(ad, Activation{
		StarterAddress: "<127.0.0.1:9618?sock=slot1_1>", Sandbox: &Sandbox{Bytes: 1025, Files: 14, Stdout: start}, NestDelayed: true,
		Startd: mustAd(t, "CpusUsage = 0.5\nGPUsUsage = 1.0\nMemory = 5"),
	}, knobs(map[string]string{"STARTD_CRON_JOBLIST": "GPUs_MONITOR", "STARTD_CRON_GPUs_MONITOR_METRICS": "SUM:GPUs, PEAK:GPUsMemory"}))
	PublishInterval(ad, 3000*time.Second)
	want := `RemoteSysCpu = 1.0
RemoteUserCpu = 12.0
ImageSize = 5120
ResidentSetSize = 5120
MemoryUsage = ((ResidentSetSize + 1023) / 1024)
ProportionalSetSizeKb = 4096
BlockReadKbytes = 4
BlockWriteKbytes = 0
BlockReads = 2
IOWait = 1.5
CPUInstructions = 99
NetworkInputMb = 1.5
NetworkOutputMb = 1E-06
JobState = "Running"
NumPids = 3
CgroupEnforced = true
JobPid = 661
JobStartDate = 1795210936
ChirpDelayedAttrs = [  ]
DiskUsage = 2
ScratchDirFileCount = 14
StdoutMtime = 1795210936
ExecuteDirWasEncrypted = false
StarterIpAddr = "<127.0.0.1:9618?sock=slot1_1>"
CpusUsage = 0.5
GPUsUsage = 1.0
_condor_JOBINFO_MAXINTERVAL = 3000
`
	if diff := cmp.Diff(squeeze(want), squeeze(lines(ad))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if mib, err := ad.GetInt("MemoryUsage"); err != nil || mib != 5 {
		t.Errorf("MemoryUsage is %d, %v", mib, err)
	}
}

// squeeze ignores how blanks are printed.
func squeeze(s string) string { return strings.ReplaceAll(s, " ", "") }

func TestUpdateOfAnEndedJob(t *testing.T) {
	start := time.Unix(1000, 0)
	ended := func(status syscall.WaitStatus, core bool) *classads.Ad {
		ad := classads.NewAd()
		PublishProcess(ad, Process{PID: 661, Started: start, Ended: start.Add(10067096 * time.Microsecond), State: Exited, Status: status,
			CoreDumped: core, Usage: Usage{Processes: 7}}, knobs(nil))
		return ad
	}
	for name, tt := range map[string]struct {
		ad   *classads.Ad
		want map[string]any
	}{
		"code":   {ended(7<<8, false), map[string]any{"ExitBySignal": false, "ExitCode": 7, "ExitSignal": nil, "ExitReason": nil, "JobCoreDumped": nil, "JobState": "Exited", "NumPids": 0, "JobDuration": 10.067096}},
		"signal": {ended(9, false), map[string]any{"ExitBySignal": true, "ExitCode": nil, "ExitSignal": 9, "ExitReason": "died on signal 9 (Killed)", "JobCoreDumped": nil}},
		"core":   {ended(11|0x80, true), map[string]any{"ExitBySignal": true, "ExitSignal": 11, "ExitReason": "died on signal 11 (Segmentation fault)", "JobCoreDumped": true}},
		"rt":     {ended(36, false), map[string]any{"ExitReason": "died on signal 36 (Real-time signal 2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			for attr, want := range tt.want {
				var got any
				if e, ok := tt.ad.Lookup(attr); ok {
					switch v := e.Eval(classads.Env{}); v.Kind() {
					case classads.Bool:
						got, _ = v.Bool()
					case classads.Int:
						n, _ := v.Int()
						got = int(n)
					case classads.Real:
						got, _ = v.Real()
					default:
						got, _ = v.Str()
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", attr, diff)
				}
			}
		})
	}
}

func TestUpdateBeforeTheStart(t *testing.T) {
	ad := classads.NewAd()
	PublishProcess(ad, Process{}, knobs(nil))
	if ad.Len() != 0 {
		t.Errorf("the shadow would believe that the job runs:\n%s", lines(ad))
	}
	delayed := mustAd(t, `ChirpMine = "x"`)
	PublishActivation(ad, Activation{Delayed: delayed}, knobs(nil))
	PublishVacate(ad, Vacated{})
	PublishVacate(ad, Vacated{Reason: "Claim deactivated", Code: 1009})
	PublishInterval(ad, 0)
	want := "ChirpMine = \"x\"\nExecuteDirWasEncrypted = false\nVacateReason = \"Claim deactivated\"\nVacateReasonCode = 1009\nVacateReasonSubCode = 0\n_condor_JOBINFO_MAXINTERVAL = -1\n"
	if diff := cmp.Diff(want, lines(ad)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemoryMetric(t *testing.T) {
	for metric, want := range map[string]string{"ResidentSetSize/1024": "(ResidentSetSize/1024)", "((": "((ResidentSetSize+1023)/1024)"} {
		ad := classads.NewAd()
		PublishProcess(ad, Process{State: Running}, config.FromMap(map[string]string{"MEMORY_USAGE_METRIC": metric}))
		e, _ := ad.Lookup("MemoryUsage")
		if got := strings.Trim(squeeze(e.OldString()), "()"); got != strings.Trim(want, "()") {
			t.Errorf("%q: %s", metric, got)
		}
	}
}

const slot = `Name = "slot1_1@h"
Cpus = 2
Memory = 2048
Disk = 100
GPUs = 1
MachineResources = "Cpus Memory Disk GPUs"
AssignedGPUs = "GPU-1"
AvailableGPUs = { GPUs_GPU_1 }
GPUs_GPU_1 = [ id = "GPU-1" ]
GPUs_GPU_10 = [ id = "GPU-10" ]
CondorScratchDir = "#CoNdOrScRaTcHdIr#"
SlotAttr = 5
`

func TestProvisioned(t *testing.T) {
	want := `ProvisionedResources = "Cpus Memory Disk GPUs"
CpusProvisioned = 2
MemoryProvisioned = 2048
DiskProvisioned = 100
GPUsProvisioned = 1
AssignedGPUs = "GPU-1"
`
	if diff := cmp.Diff(want, lines(Provisioned(mustAd(t, slot)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = "CPUsProvisioned = 1\n"
	if diff := cmp.Diff(want, lines(Provisioned(mustAd(t, "Cpus = 1")))); diff != "" {
		t.Errorf("a slot that lists nothing (-want +got):\n%s", diff)
	}
}

func TestRegistration(t *testing.T) {
	s := Starter{Address: "<1.2.3.4:9618?sock=x>", Scratch: "/exec/dir_7/scratch", Version: "$CondorVersion: 25.14.1 $", Platform: "$CondorPlatform: X86_64 $",
		Machine: "h", UIDDomain: "u", FilesystemDomain: "f", Now: 1000}
	ad := Registration(s, mustAd(t, `UserLogExecuteEventAttrs = "SlotAttr, Missing Cpus"`), mustAd(t, slot), false)
	want := `UidDomain = "u"
FileSystemDomain = "f"
Name = "slot1_1@h"
StarterIpAddr = "<1.2.3.4:9618?sock=x>"
CondorScratchDir = "/exec/dir_7/scratch"
MachineResources = "Cpus Memory Disk GPUs"
Cpus = 2
Memory = 2048
Disk = 100
GPUs = 1
AvailableGPUs = { GPUs_GPU_1 }
GPUs_GPU_1 = [ id = "GPU-1" ]
SlotAttr = 5
HasReconnect = true
Machine = "h"
CondorVersion = "$CondorVersion: 25.14.1 $"
CondorPlatform = "$CondorPlatform: X86_64 $"
MyAddress = "<1.2.3.4:9618?sock=x>"
MyCurrentTime = 1000
`
	if diff := cmp.Diff(want, lines(ad)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ad := Registration(s, classads.NewAd(), mustAd(t, slot), true); !ad.Has("SlotAd") {
		t.Error("the slot's ad is missing")
	}
}

func TestLogLines(t *testing.T) {
	c := Command{Path: "/s/job.sh", Args: []string{"a", "b c"}}
	for got, want := range map[string]string{
		LineShadow("<1.2.3.4:5>"):                                   "Communicating with shadow <1.2.3.4:5>",
		LineStarting(Info{Cluster: 12, Proc: 3, Universe: Vanilla}): "Starting a VANILLA universe job with ID: 12.3",
		LineExec(c, false):                                          "About to exec /s/job.sh a b' 'c",
		LineExec(Command{Path: "./job.sh"}, true):                   "About to exec docker:./job.sh",
		LineStarted(661):                                            "Create_Process succeeded, pid=661",
		LineExited(661, 7<<8):                                       "Process exited, pid=661, status=7",
		LineExited(661, 9):                                          "Process exited, pid=661, signal=9",
		ExecFailure(c, syscall.ENOENT, "", ""):                      "Failed to execute '/s/job.sh' with arguments a b' 'c: (errno=2: 'No such file or directory')",
		ExecFailure(Command{Path: "/x"}, syscall.EACCES, "", "why"): "Failed to execute '/x': (errno=13: 'Permission denied'): why",
		ExecFailure(Command{Path: "/x"}, syscall.ENOENT, BadInterpreter("/no/sh"), "why"): "Failed to execute '/x': invalid interpreter (/no/sh) specified on first line of script (errno=2: 'No such file or directory'): why",
		ExecFailure(Command{Path: "/x"}, syscall.EACCES, BadDirectory("/d"), ""):          `Failed to execute '/x': Cannot access initial working directory "/d" (errno=13: 'Permission denied')`,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestUpdateOfAnExit: attributes that are missing while the job's output is
// transferred and are back afterwards.
func TestUpdateOfAnExit(t *testing.T) {
	none, some := "", "a,b"
	about := Activation{Sandbox: &Sandbox{Bytes: 1, Files: 1, Stdout: time.Unix(5, 0), Stderr: time.Unix(6, 0)},
		Delayed: mustAd(t, "ChirpX = 1"), NestDelayed: true, Spooled: &none}
	for name, test := range map[string]struct {
		exiting bool
		spooled *string
		want    []string
	}{
		"running":              {false, &none, []string{"ChirpDelayedAttrs", "DiskUsage", "ScratchDirFileCount", "StdoutMtime", "StderrMtime", "ExecuteDirWasEncrypted", "SpooledOutputFiles"}},
		"exiting":              {true, &none, []string{"DiskUsage", "ScratchDirFileCount", "ExecuteDirWasEncrypted"}},
		"exiting, with output": {true, &some, []string{"DiskUsage", "ScratchDirFileCount", "ExecuteDirWasEncrypted", "SpooledOutputFiles"}},
	} {
		about.Exiting, about.Spooled = test.exiting, test.spooled
		ad := classads.NewAd()
		PublishActivation(ad, about, knobs(nil))
		var got []string
		for attr := range ad.All() {
			got = append(got, attr)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
