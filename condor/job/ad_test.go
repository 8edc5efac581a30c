package job

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

const vanilla = `ClusterId = 12
ProcId = 3
JobUniverse = 5
Cmd = "/home/u/bin/job.sh"
Iwd = "/home/u"
User = "u@example.org"
Owner = "u"
ShouldTransferFiles = "YES"
WhenToTransferOutput = "ON_EXIT"
In = "data/in.txt"
Out = "out.txt"
Err = "err.txt"
StreamOut = false
StreamErr = false
`

// with merges attributes into an ad's text.
func with(t testing.TB, text, more string) *classads.Ad {
	ad := mustAd(t, text)
	ad.Update(mustAd(t, more))
	return ad
}

func TestRead(t *testing.T) {
	ad := with(t, vanilla, "JobLeaseDuration = 2400\nOsUser = \"osu\"\nGlobalJobId = \"s#12.3#4\"\nShadowIpAddr = \"<1.2.3.4:5>\"\nMyAddress = \"<6.7.8.9:0>\"\nShadowVersion = \"$CondorVersion: 25.14.1 x $\"\nRemoteIwd = \"/r\"")
	got, err := Read(ad, "example.org")
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		Cluster: 12, Proc: 3, Universe: Vanilla, Cmd: "/home/u/bin/job.sh", Iwd: "/home/u", RemoteIwd: "/r", FileTransfer: true,
		User: "u@example.org", Owner: "osu", GlobalID: "s#12.3#4", Lease: 2400 * time.Second,
		ShadowAddress: "<1.2.3.4:5>", ShadowVersion: "$CondorVersion: 25.14.1 x $",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.ID() != "12.3" {
		t.Errorf("ID %q", got.ID())
	}
}

func TestReadTransfer(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		want   Info
		err    string
	}{
		"no":                 {`ShouldTransferFiles = "NO"`, Info{}, ""},
		"needed":             {`ShouldTransferFiles = "IF_NEEDED"`, Info{FileTransfer: true}, ""},
		"needed elsewhere":   {"ShouldTransferFiles = \"IF_NEEDED\"\nFileSystemDomain = \"other\"", Info{FileTransfer: true}, ""},
		"not needed":         {"ShouldTransferFiles = \"if_needed\"\nFileSystemDomain = \"EXAMPLE.org\"", Info{}, ""},
		"nonsense":           {`ShouldTransferFiles = "PERHAPS"`, Info{}, `ShouldTransferFiles: "PERHAPS" is not YES`},
		"several are wrong":  {"ClusterId = undefined\nIwd = 5\nProcId = 2147483648", Info{FileTransfer: true}, "3 errors"},
		"lease without end":  {"JobLeaseDuration = 99999999999999", Info{FileTransfer: true, Lease: 9223372036 * time.Second}, ""},
		"lease is no number": {`JobLeaseDuration = "x"`, Info{FileTransfer: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(with(t, vanilla, tt.change), "example.org")
			if got.FileTransfer != tt.want.FileTransfer || got.Lease != tt.want.Lease {
				t.Errorf("got %+v", got)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestUniverse(t *testing.T) {
	for u, want := range map[Universe]string{Vanilla: "VANILLA", VM: "VM", 0: "UNKNOWN", 99: "UNKNOWN", Parallel: "PARALLEL"} {
		if got := u.String(); got != want {
			t.Errorf("universe %d is %q, want %q", int(u), got, want)
		}
	}
}

func TestStdio(t *testing.T) {
	const scratch = "/exec/dir_7/scratch"
	sandboxed := func(in, out, err string) Stdio {
		return Stdio{In: File{Path: in}, Out: File{Path: out}, Err: File{Path: err}}
	}
	for name, tt := range map[string]struct {
		change string
		want   Stdio
		ad     map[string]string // after Localize
	}{
		"usual": {"", sandboxed(scratch+"/in.txt", scratch+"/_condor_stdout", scratch+"/_condor_stderr"),
			map[string]string{"Out": "_condor_stdout", "OriginalOut": "out.txt", "Err": "_condor_stderr", "OriginalErr": "err.txt", "Iwd": scratch, "OrigIwd": "/home/u", "OrigCmd": "/home/u/bin/job.sh"}},
		"one file for both": {`Err = "out.txt"`, sandboxed(scratch+"/in.txt", scratch+"/_condor_stdout", scratch+"/_condor_stdout"),
			map[string]string{"Err": "_condor_stdout", "OriginalErr": "out.txt"}},
		"nothing": {"In = \"/dev/null\"\nOut = \"/dev/null\"\nErr = \"/dev/null\"", sandboxed("/dev/null", "/dev/null", "/dev/null"),
			map[string]string{"Out": "/dev/null", "OriginalOut": ""}},
		"streaming is not said": {"StreamOut = undefined\nStreamErr = undefined\nOut = \"sub/out.txt\"", sandboxed(scratch+"/in.txt", scratch+"/out.txt", scratch+"/err.txt"),
			map[string]string{"Out": "sub/out.txt", "OriginalOut": ""}},
		"streaming": {"StreamOut = true\nStreamIn = true", Stdio{In: File{"data/in.txt", true}, Out: File{"out.txt", true}, Err: File{Path: scratch + "/_condor_stderr"}},
			map[string]string{"Out": "out.txt"}},
		"restarts": {"WantFTOnCheckpoint = true", Stdio{In: File{Path: scratch + "/in.txt"}, Out: File{Path: scratch + "/_condor_stdout"}, Err: File{Path: scratch + "/_condor_stderr"}, Append: true}, nil},
		"no transfer": {"ShouldTransferFiles = \"NO\"\nOut = \"/abs/out\"", sandboxed("/home/u/data/in.txt", "/abs/out", "/home/u/err.txt"),
			map[string]string{"Out": "/abs/out", "Iwd": "/home/u"}},
		"tricks": {"In = \"..\"\nStreamOut = undefined\nOut = \"x/..\"", sandboxed("/dev/null", "/dev/null", scratch+"/_condor_stderr"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			ad := with(t, vanilla, tt.change)
			info, err := Read(ad, "")
			if err != nil {
				t.Fatal(err)
			}
			Localize(ad, info, scratch)
			got := StdioOf(ad, Place{FileTransfer: info.FileTransfer, Scratch: scratch, Iwd: "/elsewhere"})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for name, want := range tt.ad {
				if got := ad.StringOr(name, ""); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestCommand(t *testing.T) {
	place := Place{FileTransfer: true, Scratch: "/s", Iwd: "/s"}
	stay := Place{Iwd: "/home/u"}
	for name, tt := range map[string]struct {
		change string
		place  Place
		rules  Rules
		want   Command
		err    bool
	}{
		"transferred":         {`Arguments = "a 'b c'"`, place, PlainRules, Command{Path: "/s/job.sh", Args: []string{"a", "b c"}, Transferred: true}, false},
		"not transferred":     {"TransferExecutable = false", place, PlainRules, Command{Path: "/home/u/bin/job.sh"}, false},
		"relative":            {"TransferExecutable = false\nCmd = \"bin/x\"", place, PlainRules, Command{Path: "/s/bin/x"}, false},
		"relative kept":       {"TransferExecutable = false\nPreserveRelativeExecutable = true\nCmd = \"x\"", place, PlainRules, Command{Path: "x"}, false},
		"relative in image":   {"TransferExecutable = false\nPreserveRelativeExecutable = true\nCmd = \"x\"", place, ApptainersRules, Command{Path: "x", Search: true}, false},
		"relative would move": {"PreserveRelativeExecutable = true\nCmd = \"x\"", stay, PlainRules, Command{Path: "/home/u/x"}, false},
		"no transfer":         {"", stay, PlainRules, Command{Path: "/home/u/bin/job.sh"}, false},
		"no command":          {`Cmd = ""`, place, PlainRules, Command{}, true},
		"trick":               {`Cmd = "/bin/.."`, place, PlainRules, Command{}, true},
		"bad arguments":       {`Arguments = "'"`, place, PlainRules, Command{}, true},
		"docker":              {"", place, DockersRules, Command{Path: "./job.sh", Transferred: true}, false},
		"docker's own":        {"TransferExecutable = false\nCmd = \"python3\"", place, DockersRules, Command{Path: "python3", Search: true}, false},
		"docker's own path":   {"TransferExecutable = false\nCmd = \"/bin/sh\"\nDockerOverrideEntrypoint = true", place, DockersRules, Command{Path: "/bin/sh", Entrypoint: true}, false},
		"docker's entrypoint": {"TransferExecutable = false\nCmd = \"\"\nArgs = \"a\"\nDockerOverrideEntrypoint = true", place, DockersRules, Command{Args: []string{"a"}}, false},
		"Apptainer's own":     {"TransferExecutable = false\nCmd = \"\"\nArgs = \"a\"", place, ApptainersRules, Command{Args: []string{"a"}}, false},
		"under Apptainer":     {"", place, ApptainersRules, Command{Path: "/s/job.sh", Transferred: true}, false},
		"docker interactive":  {"InteractiveJob = true\nCmd = \"/bin/sleep\"\nTransferExecutable = false", place, DockersRules, Command{Path: "/bin/sleep", Args: []string{"86400"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CommandOf(with(t, vanilla, tt.change), tt.place, tt.rules)
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.Transformer("", func(s []string) string { return JoinV2(s) })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	wrapped := Command{Path: "/s/job.sh", Args: []string{"a"}, Transferred: true}.Wrap("/usr/libexec/wrap")
	if diff := cmp.Diff(Command{Path: "/usr/libexec/wrap", Args: []string{"/s/job.sh", "a"}}, wrapped); diff != "" {
		t.Errorf("wrapped (-want +got):\n%s", diff)
	}
}

func TestSignals(t *testing.T) {
	for text, want := range map[string]Signals{
		"":                                       {Soft: 15, Remove: 15, Hold: 15, Checkpoint: 15},
		"KillSig = \"SIGINT\"":                   {Soft: 2, Remove: 15, Hold: 15, Checkpoint: 2},
		"KillSig = 10\nRemoveKillSig = \"usr2\"": {Soft: 10, Remove: 12, Hold: 15, Checkpoint: 10, RemoveSet: true},
		"KillSig = \"SIGNONE\"\nHoldKillSig = 0\nCheckpointSig = 99": {Soft: 15, Remove: 15, Hold: 15, Checkpoint: 15},
	} {
		if diff := cmp.Diff(want, SignalsOf(mustAd(t, text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got := SignalName(syscall.SIGUSR1) + SignalName(99); got != "SIGUSR1signal 99" {
		t.Error(got)
	}
}

func TestLimits(t *testing.T) {
	machine := mustAd(t, "Memory = 2048")
	for name, tt := range map[string]struct {
		ad    string
		knobs map[string]string
		want  Limits
		err   bool
	}{
		"stock":     {"", map[string]string{"STARTER_RLIMIT_AS": "0", "JOB_RENICE_INCREMENT": "0"}, Limits{Core: 0, Stack: Unlimited}, false},
		"cores":     {"CoreSize = -5", nil, Limits{Core: Unlimited, Stack: Unlimited}, false},
		"sizes":     {"CoreSize = 1000\nStackSize = 8192", nil, Limits{Core: 1000, Stack: 8192}, false},
		"memory":    {"RequestMemory = 10", map[string]string{"STARTER_RLIMIT_AS": "MY.Memory + TARGET.RequestMemory"}, Limits{Stack: Unlimited, AS: 2058 << 20}, false},
		"niceness":  {"Nicer = 5", map[string]string{"JOB_RENICE_INCREMENT": "Nicer * 2"}, Limits{Stack: Unlimited, Nice: 10}, false},
		"too nice":  {"", map[string]string{"JOB_RENICE_INCREMENT": "50"}, Limits{Stack: Unlimited, Nice: 19}, false},
		"not nice":  {"", map[string]string{"JOB_RENICE_INCREMENT": `"x"`}, Limits{Stack: Unlimited, Nice: 10}, true},
		"its CPU":   {"", map[string]string{"ENFORCE_CPU_AFFINITY": "true"}, Limits{Stack: Unlimited, CPUs: []int{0}}, false},
		"assigned":  {"", map[string]string{"ENFORCE_CPU_AFFINITY": "true", "STARTD_ASSIGNED_AFFINITY": "2 , 5", "SLOT1_CPU_AFFINITY": "7"}, Limits{Stack: Unlimited, CPUs: []int{2, 5}}, false},
		"by slot":   {"", map[string]string{"ENFORCE_CPU_AFFINITY": "true", "SLOT1_CPU_AFFINITY": "0,3"}, Limits{Stack: Unlimited, CPUs: []int{0, 3}}, false},
		"not asked": {"", map[string]string{"SLOT1_CPU_AFFINITY": "0,3"}, Limits{Stack: Unlimited}, false},
		"no CPU":    {"", map[string]string{"ENFORCE_CPU_AFFINITY": "true", "SLOT1_CPU_AFFINITY": "0,4096"}, Limits{Stack: Unlimited}, true},
		"no memory": {"", map[string]string{"STARTER_RLIMIT_AS": "lots"}, Limits{Stack: Unlimited}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LimitsOf(mustAd(t, tt.ad), machine, "slot1_1", knobs(tt.knobs))
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.err {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestSlotNumber(t *testing.T) {
	for slot, want := range map[string]int{"slot1": 1, "slot12_3": 12, "": 0, "slot": 0, "slot99999999999999999999": 0} {
		if got := slotNumber(slot); got != want {
			t.Errorf("%q is %d, want %d", slot, got, want)
		}
	}
}
