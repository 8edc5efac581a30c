package job

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

func TestMergeAd(t *testing.T) {
	for name, tt := range map[string]struct {
		ad   string
		want []string
		err  string
	}{
		"none":                {"", []string{}, ""},
		"V2":                  {`Environment = "A=b 'C=d e' F='it''s'"`, []string{"A=b", "C=d e", "F=it's"}, ""},
		"V1":                  {`Env = "A=b;C=d e"`, []string{"A=b", "C=d e"}, ""},
		"V2 wins":             {"Env = \"A=1\"\nEnvironment = \"A=2\"", []string{"A=2"}, ""},
		"delimiter attribute": {"Env = \"A=b;c|D=e\"\nEnvDelim = \"|\"", []string{"A=b;c", "D=e"}, ""},
		"delimiter in front":  {"Env = \"^A=b;c^D=e\"\nEnvDelim = \"|\"", []string{"A=b;c", "D=e"}, ""},
		"later wins":          {`Environment = "A=1 A=2"`, []string{"A=2"}, ""},
		"unexpanded":          {`Environment = "$$(X) B=1"`, []string{"$$(X)", "B=1"}, ""},
		"no value":            {`Environment = "A"`, []string{}, `attribute Environment: "A" lacks '='`},
		"no name":             {`Env = "=b"`, []string{}, `attribute Env: "=b" lacks a name`},
	} {
		t.Run(name, func(t *testing.T) {
			env := NewEnv()
			err := env.MergeAd(mustAd(t, tt.ad))
			if diff := cmp.Diff(tt.want, env.Strings()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestImport(t *testing.T) {
	environ := []string{"PATH=/bin", "LD_PRELOAD=x", "LD_LIBRARY_PATH=/lib", "SET=theirs", "LINES=a\nb", "=odd", "odd"}
	for list, want := range map[string]string{
		"":                    "LD_LIBRARY_PATH=/lib LD_PRELOAD=x PATH=/bin SET=ours",
		"PATH, ld_*":          "LD_LIBRARY_PATH=/lib LD_PRELOAD=x PATH=/bin SET=ours",
		"LD_* !*preload;path": "LD_LIBRARY_PATH=/lib PATH=/bin SET=ours",
		"!LD_*":               "PATH=/bin SET=ours",
		"NONE ! [":            "SET=ours",
	} {
		env := NewEnv()
		env.Set("SET", "ours")
		env.Import(environ, list)
		if got := env.V2(); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

// knobs returns the part of a stock configuration that affects the environment.
func knobs(change map[string]string) *config.Config {
	all := map[string]string{
		"BIN": "/usr/bin", "CHIRP_DELAYED_UPDATE_PREFIX": "Chirp*", "STARTER_SETS_HOME_ENV": "true", "JOB_INHERITS_STARTER_ENVIRONMENT": "false",
		"STARTER_NUM_THREADS_ENV_VARS":         "GOMAXPROCS OMP_NUM_THREADS OMP_THREAD_LIMIT",
		"ENVIRONMENT_FOR_AssignedGPUs":         "GPU_DEVICE_ORDINAL=/(CUDA|OCL)//  CUDA_VISIBLE_DEVICES=/CUDA//",
		"ENVIRONMENT_VALUE_FOR_UnAssignedGPUs": "10000",
	}
	for name, value := range change {
		all[name] = value
	}
	return config.FromMap(all)
}

func surroundings(machine *classads.Ad) Surroundings {
	return Surroundings{
		Scratch: "/exec/dir_7/scratch", Iwd: "/exec/dir_7/scratch", FileTransfer: true, Slot: "slot1_1", StarterPID: 7,
		Home: "/home/payload", ChirpConfig: "/exec/dir_7/user/.chirp.config", Machine: machine,
		Environ: []string{"PATH=/startd", "CONDOR_INHERIT=secret", "CONDOR_PRIVATE_INHERIT=secret", "_CONDOR_ANCESTOR_1=81:2:3"},
	}
}

func TestEnvironment(t *testing.T) {
	machine := mustAd(t, "Cpus = 4\nMachineResources = \"Cpus Memory Disk Swap GPUs\"\nGPUs = 0")
	ad := mustAd(t, `Environment = "A=job TMPDIR=/mine OMP_NUM_THREADS=2 WHERE=#CoNdOrScRaTcHdIr#/x"`+"\nIwd = \"/home/u\"\nx509userproxy = \"/tmp/x509up\"")
	env, err := Environment(ad, knobs(map[string]string{"STARTER_JOB_ENVIRONMENT": `"A=site B=site"`}), surroundings(machine))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"A=job", "APPTAINER_CACHEDIR=/exec/dir_7/scratch", "B=site", "BATCH_SYSTEM=HTCondor", "CONDOR_STARTER_PID=7",
		"CUDA_VISIBLE_DEVICES=10000", "GOMAXPROCS=4", "GPU_DEVICE_ORDINAL=10000", "HOME=/home/payload", "NVIDIA_VISIBLE_DEVICES=none",
		"OMP_NUM_THREADS=2", "SINGULARITY_CACHEDIR=/exec/dir_7/scratch",
		"TEMP=/exec/dir_7/scratch", "TMP=/exec/dir_7/scratch", "TMPDIR=/exec/dir_7/scratch", "WHERE=/exec/dir_7/scratch/x",
		"X509_USER_PROXY=/exec/dir_7/scratch/x509up", "_CHIRP_DELAYED_UPDATE_PREFIX=Chirp*", "_CONDOR_ANCESTOR_1=81:2:3", "_CONDOR_AssignedGPUs=10000",
		"_CONDOR_BIN=/usr/bin", "_CONDOR_CHIRP_CONFIG=/exec/dir_7/user/.chirp.config", "_CONDOR_JOB_AD=/exec/dir_7/scratch/.job.ad",
		"_CONDOR_JOB_IWD=/exec/dir_7/scratch", "_CONDOR_JOB_PIDS=", "_CONDOR_MACHINE_AD=/exec/dir_7/scratch/.machine.ad",
		"_CONDOR_SCRATCH_DIR=/exec/dir_7/scratch", "_CONDOR_SLOT=slot1_1",
	}
	if diff := cmp.Diff(want, env.Strings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnvironmentExtras(t *testing.T) {
	s := surroundings(mustAd(t, "Cpus = 1"))
	s.FileTransfer, s.Iwd, s.TmpDir = false, "/home/u/", "/tmp"
	s.PIDs, s.CredDir, s.KerberosCache, s.OutputAd = []int{8, 9}, "/exec/creds", "/exec/cc", "/exec/out.ad"
	s.WrapperWorks = true
	s.Secrets = classads.NewAd()
	s.Secrets.SetString("SplitClaimId", `<1>#2#"3`)
	ad := mustAd(t, `x509userproxy = "proxies/mine"`)
	env, err := Environment(ad, knobs(map[string]string{
		"LOWPORT": "9600", "HIGHPORT": "9700", "STARTER_SETS_HOME_ENV": "false", "STARTER_SET_SLOT_SPLIT_CLAIM_IN_JOB_ENV": "SPLIT",
		"JOB_INHERITS_STARTER_ENVIRONMENT": "true",
	}), s)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"X509_USER_PROXY": "/home/u/proxies/mine", "TMPDIR": "/tmp", "_CONDOR_JOB_PIDS": "8 9", "_CONDOR_CREDS": "/exec/creds",
		"KRB5CCNAME": "FILE:/exec/cc", "_CONDOR_OUTPUT_CLASSAD": "/exec/out.ad", "_CONDOR_LOWPORT": "9600", "_CONDOR_HIGHPORT": "9700",
		"_CONDOR_WRAPPER_ERROR_FILE": "/exec/dir_7/scratch/.job_wrapper_failure", "SPLIT": `"<1>#2#\"3"`, "PATH": "/startd",
	} {
		if got, ok := env.Get(name); !ok || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"HOME", "CONDOR_INHERIT", "CONDOR_PRIVATE_INHERIT"} {
		if got, ok := env.Get(name); ok {
			t.Errorf("%s = %q", name, got)
		}
	}
}

func TestEnvironmentErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		ad    string
		knobs map[string]string
		want  string
	}{
		"job's":      {`Environment = "A"`, nil, "attribute Environment"},
		"site's":     {"", map[string]string{"STARTER_JOB_ENVIRONMENT": `"A=b`}, "knob STARTER_JOB_ENVIRONMENT"},
		"home knob":  {"", map[string]string{"STARTER_SETS_HOME_ENV": "perhaps"}, "knob STARTER_SETS_HOME_ENV"},
		"port":       {"", map[string]string{"LOWPORT": "((", "HIGHPORT": "2"}, "knob LOWPORT"},
		"prototypes": {"", map[string]string{"ENVIRONMENT_FOR_AssignedGPUs": "A=/x/"}, "knob ENVIRONMENT_FOR_AssignedGPUs"},
		"pattern":    {"", map[string]string{"ENVIRONMENT_FOR_AssignedGPUs": "A=/(/x/"}, "knob ENVIRONMENT_FOR_AssignedGPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			machine := mustAd(t, "MachineResources = \"GPUs\"\nGPUs = 1\nAssignedGPUs = \"GPU-1\"")
			_, err := Environment(mustAd(t, tt.ad), knobs(tt.knobs), surroundings(machine))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestAssignedGPUs(t *testing.T) {
	const devices = "GPUs_GPU_1 = [ id = \"GPU-1\"; DeviceUuid = \"1-aa\" ]\nGPUs_GPU_2 = [ id = \"GPU-2\"; DeviceUuid = \"2-bb\" ]\n"
	const mig = "GPUs_MIG_1 = [ id = \"MIG-1\"; DeviceUuid = \"MIG-1-cc\" ]\n"
	for name, tt := range map[string]struct {
		machine string
		knobs   map[string]string
		want    map[string]string
	}{
		"two": {"GPUs = 2\nAssignedGPUs = \"GPU-1,GPU-2\"\n" + devices + "AvailableGPUs = { GPUs_GPU_1,GPUs_GPU_2 }", nil, map[string]string{
			"_CONDOR_AssignedGPUs": "GPU-1,GPU-2", "GPU_DEVICE_ORDINAL": "GPU-1,GPU-2",
			"CUDA_VISIBLE_DEVICES": "GPU-1-aa,GPU-2-bb", "NVIDIA_VISIBLE_DEVICES": "GPU-1-aa,GPU-2-bb",
		}},
		"slice": {"GPUs = 1\nAssignedGPUs = \"MIG-1\"\n" + mig + "AvailableGPUs = { GPUs_MIG_1 }", nil, map[string]string{
			"CUDA_VISIBLE_DEVICES": "MIG-1-cc", "NVIDIA_VISIBLE_DEVICES": "MIG-1-cc",
		}},
		"numbered": {"GPUs = 2\nAssignedGPUs = \"CUDA0, CUDA1\"\n", nil, map[string]string{
			"_CONDOR_AssignedGPUs": "CUDA0, CUDA1", "GPU_DEVICE_ORDINAL": "0,1", "CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": "none",
		}},
		"not automatic": {"GPUs = 1\nAssignedGPUs = \"CUDA3\"\n", map[string]string{"AUTO_SET_NVIDIA_VISIBLE_DEVICES": "false"}, map[string]string{
			"CUDA_VISIBLE_DEVICES": "3", "NVIDIA_VISIBLE_DEVICES": "",
		}},
		"bare name": {"GPUs = 1\nAssignedGPUs = \"CUDA3,CUDA4\"\n", map[string]string{"ENVIRONMENT_FOR_AssignedGPUs": "MINE=#^C(U)#$1-$0$9#, CUDA_VISIBLE_DEVICES"}, map[string]string{
			"MINE": "U-CUDA3,U-CUDA4", "CUDA_VISIBLE_DEVICES": "3,4",
		}},
		"broken device": {"GPUs = 1\nAvailableGPUs = { nothing }", nil, map[string]string{"NVIDIA_VISIBLE_DEVICES": "none", "CUDA_VISIBLE_DEVICES": "10000"}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := mustAd(t, "MachineResources = \"Cpus, GPUs\"\n"+tt.machine)
			env := NewEnv()
			if err := publishResources(env, knobs(tt.knobs), machine); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name := range tt.want {
				got[name], _ = env.Get(name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzEnv(f *testing.F) {
	for _, o := range readOracle(f) {
		f.Add(o.Text, "|")
	}
	f.Fuzz(func(t *testing.T, text, delim string) {
		env := NewEnv()
		if env.MergeV2(text) == nil {
			again := NewEnv()
			if err := again.MergeV2(env.V2()); err != nil || again.V2() != env.V2() {
				t.Errorf("%q -> %q -> %q, %v", text, env.V2(), again.V2(), err)
			}
		}
		_ = env.MergeV1(text, delim)
		_ = env.MergeKnob(text)
		env.Import([]string{text}, delim)
		env.Strings()
	})
}

func FuzzAssigned(f *testing.F) {
	f.Add("GPU_DEVICE_ORDINAL=/(CUDA|OCL)//  CUDA_VISIBLE_DEVICES=/CUDA//", "CUDA0,CUDA1")
	f.Fuzz(func(t *testing.T, prototypes, assigned string) {
		_ = assignedVariables(NewEnv(), prototypes, assigned)
	})
}

// Releases without STARTER_SETS_HOME_ENV leave the job the HOME that it asks for.
func TestHome(t *testing.T) {
	for _, tt := range []struct {
		name, environment, knob, want string
	}{
		{"the account's", "", "true", "/home/slot1"},
		{"over the job's", "HOME=/mine", "true", "/home/slot1"},
		{"the job's where nobody knows the knob", "HOME=/mine", "", "/mine"},
		{"the account's where nobody knows the knob", "", "", "/home/slot1"},
		{"the job's by the knob", "HOME=/mine", "false", "/mine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ad := classads.NewAd()
			ad.SetString("Environment", tt.environment)
			env, err := Environment(ad, config.FromMap(map[string]string{"STARTER_SETS_HOME_ENV": tt.knob}), Surroundings{Home: "/home/slot1", Scratch: "/s", Iwd: "/s"})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := env.Get("HOME"); got != tt.want {
				t.Errorf("HOME is %q, want %q", got, tt.want)
			}
		})
	}
}
