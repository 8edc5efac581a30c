package job

import (
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	tests := map[string]struct {
		ad      string
		without bool // without file transfer
		alone   bool // without a shadow
		beside  bool // not in a pod
		code    int  // 0: it runs
		names   []string
	}{
		"an ordinary job":                  {ad: "Requirements = true\nRunAsOwner = undefined"},
		"the universe of jobs with images": {ad: "JobUniverse = 5\nWantDocker = true"},
		"local":                            {ad: "JobUniverse = 12"},
		"java":                             {ad: "JobUniverse = 10\nJarFiles = \"a.jar\"", code: 6, names: []string{"universe = java", "docker", "executable"}},
		"java beside the starter":          {ad: "JobUniverse = 10", beside: true},
		"parallel":                         {ad: "JobUniverse = 11\nNode = 0"},
		"vm beside the starter":            {ad: "JobUniverse = 13", beside: true, code: 6, names: []string{"universe = vm", "java"}},
		"vm":                               {ad: "JobUniverse = 13", code: 6, names: []string{"universe = vm"}},
		"mpi":                              {ad: "JobUniverse = 8", code: 6, names: []string{"universe = mpi", "parallel universe"}},
		"one that nobody knows":            {ad: "JobUniverse = 99", code: 6, names: []string{"JobUniverse = 99"}},

		"a tool":                        {ad: `ToolDaemonCmd = "/usr/bin/tracer"`, code: 6, names: []string{"tool_daemon_cmd"}},
		"arguments for no tool":         {ad: `ToolDaemonArgs = "-x"`},
		"stopped at exec":               {ad: "SuspendJobAtExec = true", code: 6, names: []string{"suspend_job_at_exec"}},
		"not stopped at exec":           {ad: "SuspendJobAtExec = false"},
		"a tool and a stop":             {ad: "ToolDaemonCmd = \"t\"\nSuspendJobAtExec = true", code: 6, names: []string{"tool_daemon_cmd", "suspend_job_at_exec"}},
		"a log beside the job":          {ad: `StarterUserLog = "log"`, code: 6, names: []string{"StarterUserLog", "log ="}},
		"a log without a shadow":        {ad: `StarterUserLog = "log"`, alone: true},
		"the form of no log":            {ad: "StarterUserLogUseXML = true"},
		"a log that is no text":         {ad: "StarterUserLog = 7"},
		"an encrypted sandbox":          {ad: "EncryptExecuteDirectory = true", code: 6, names: []string{"encrypt_execute_directory"}},
		"a sandbox that is as usual":    {ad: "EncryptExecuteDirectory = false"},
		"another root directory":        {ad: "RequestedChroot = \"SL7\"", code: 6, names: []string{"+RequestedChroot"}},
		"no other root directory":       {ad: "RequestedChroot = \"\""},
		"parrot":                        {ad: "UseParrot = true", code: 6, names: []string{"UseParrot"}},
		"no parrot":                     {ad: "UseParrot = false"},
		"a visa":                        {ad: "WantExecutionVisaFromStarter = true", code: 6, names: []string{"WantExecutionVisaFromStarter"}},
		"a debugger":                    {ad: "StarterWaitForDebug = 1", code: 6, names: []string{"StarterWaitForDebug"}},
		"no debugger":                   {ad: "StarterWaitForDebug = 0"},
		"an attribute that is an error": {ad: "SuspendJobAtExec = error\nUseParrot = \"yes\"\nStarterWaitForDebug = \"1\""},

		// The submit side obeys the group when it writes the output; the job's container has no accounts.
		"a group for files that return":     {ad: `PrimaryUnixGroup = "physics"`},
		"a group for files that are shared": {ad: `PrimaryUnixGroup = "physics"`, without: true, code: 49, names: []string{"primary_unix_group", "should_transfer_files"}},
		"as owner":                          {ad: "RunAsOwner = true"},
		"as owner on shared files":          {ad: "RunAsOwner = true", without: true},
		"not as owner":                      {ad: "RunAsOwner = false"},

		"a manifest":                          {ad: "ManifestDesired = true"},
		"a manifest in a directory":           {ad: `ManifestDir = "notes/all"`},
		"a manifest in an absolute place":     {ad: `ManifestDir = "/tmp/x"`, code: 6, names: []string{"manifest_dir"}},
		"a manifest outside of the sandbox":   {ad: `ManifestDir = "a/../../b"`, code: 6, names: []string{"manifest_dir"}},
		"a manifest in the sandbox itself":    {ad: `ManifestDir = "a/.."`, code: 6, names: []string{"manifest_dir"}},
		"a manifest with a long name":         {ad: `ManifestDir = "` + strings.Repeat("x", 5000) + `"`, code: 6, names: []string{"manifest_dir"}},
		"a directory of a manifest, not text": {ad: "ManifestDir = 5"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ad := mustAd(t, tt.ad)
			err := Refused(ad, Info{ShadowAddress: map[bool]string{false: "<127.0.0.1:1>"}[tt.alone], Universe: Universe(ad.IntOr("JobUniverse", 5)), FileTransfer: !tt.without}, !tt.beside)
			if tt.code == 0 {
				if err != nil {
					t.Errorf("the job is refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("the job is not refused")
			}
			if err.Code != tt.code || err.Subcode != 0 {
				t.Errorf("held with %d/%d, want %d/0", err.Code, err.Subcode, tt.code)
			}
			for _, words := range tt.names {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("the reason %q lacks %q", err, words)
				}
			}
			if len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
				t.Errorf("the reason is %d bytes long, or has several lines: %q", len(err.Error()), err)
			}
		})
	}
}

func TestManifestDir(t *testing.T) {
	i := Info{Cluster: 12, Proc: 3}
	for ad, want := range map[string]string{
		"Cmd = \"x\"":                                  "",
		"ManifestDesired = true":                       "12_3_manifest",
		"ManifestDesired = false":                      "",
		"ManifestDesired = \"yes\"":                    "",
		"ManifestDir = \"notes/\"":                     "notes",
		"ManifestDir = \"a\"\nManifestDesired = false": "a", // a name is enough
		"ManifestDir = 5\nManifestDesired = true":      "12_3_manifest",
	} {
		if got := ManifestDir(mustAd(t, ad), i); got != want {
			t.Errorf("%s: %q, want %q", ad, got, want)
		}
	}
}
