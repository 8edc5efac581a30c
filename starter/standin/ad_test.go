package standin

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/starter/settings"
)

var quiet = slog.New(slog.DiscardHandler)

// settingsOf are the settings of a machine ("local") or a pod.
func settingsOf(t testing.TB, backend string) settings.Settings {
	t.Helper()
	set, err := settings.Read(config.FromMap(map[string]string{"EXECUTE": "/execute", "POD_STARTER_BACKEND": backend, "POD_NAME": "pod", "CONDOR_IDS": "65533.65533",
		"K_executable": "/bin/x y", "K_Iwd": "/data", "K_universe": "vanilla", "K_arguments2": "theirs", "K_kill_sig": "15", "K_output": `"quoted"`, "K_cluster": "4",
		"BAD_universe": "5", "BAD_kill_sig": "15 +"}))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestReadAd(t *testing.T) {
	const cmd = "Cmd = \"/bin/true\"\nIwd = \"/home\"\n"
	tests := map[string]struct {
		text string
		pod  bool
		want map[string]string // attributes; "" for none
		bad  string            // what the error says
	}{
		"only a program": {text: "Cmd = \"x\"\n", want: map[string]string{
			"Cmd": `"x"`, "JobUniverse": "5", "ClusterId": "1", "ProcId": "0", "ShouldTransferFiles": `"NO"`, "WantDelayedUpdates": "false"}},
		"with its ids":       {text: cmd + "ClusterId = 7\nProcId = 3\n", want: map[string]string{"ClusterId": "7", "ProcId": "3", "Iwd": `"/home"`}},
		"a negative process": {text: cmd + "ProcId = -1\n", bad: "ProcId is -1"},
		"local":              {text: cmd + "JobUniverse = 12", want: map[string]string{"JobUniverse": "12"}},
		"java":               {text: cmd + "JobUniverse = 10", want: map[string]string{"JobUniverse": "10"}},
		"no program":         {text: "Iwd = \"/\"\n", bad: "Cmd"},
		"scheduler":          {text: cmd + "JobUniverse = 7", bad: "JobUniverse is 7"},
		"a huge universe":    {text: cmd + "JobUniverse = 9223372036854775807", bad: "JobUniverse is"},
		"transfers":          {text: cmd + "ShouldTransferFiles = \"YES\"\nTransferKey = \"k\"", want: map[string]string{"ShouldTransferFiles": `"NO"`, "TransferKey": ""}},
		"a shadow's":         {text: cmd + "ShadowIpAddr = \"<1.2.3.4:5>\"\nMyAddress = \"<1.2.3.4:5>\"\nShadowVersion = \"x\"", want: map[string]string{"ShadowIpAddr": "", "MyAddress": "", "ShadowVersion": ""}},
		"chirp and streams":  {text: cmd + "WantIOProxy = true\nStreamOut = true", want: map[string]string{"WantIOProxy": "false", "StreamOut": "false", "StreamErr": ""}},
		"a secret":           {text: cmd + "ClaimId = \"secret\"", want: map[string]string{"ClaimId": ""}},
		"its lease":          {text: cmd + "JobLeaseDuration = 7", want: map[string]string{"JobLeaseDuration": "7"}},
		"tokens":             {text: cmd + "OAuthServicesNeeded = \"x\"", bad: "OAuthServicesNeeded"},
		"a credential":       {text: cmd + "SendCredential = true", bad: "SendCredential"},
		"no credential":      {text: cmd + "SendCredential = false", want: map[string]string{"SendCredential": "false"}},
		"a proxy":            {text: cmd + "x509userproxy = \"/tmp/x\"", bad: "x509userproxy"},
		"of the configuration": {text: "JobKeyword = \"K\"\nArguments = \"own\"", want: map[string]string{
			"Cmd": `"/bin/x y"`, "Iwd": `"/data"`, "JobUniverse": "5", "Arguments": `"own"`, "KillSig": "15", "Out": `"quoted"`, "ClusterId": "4", "ProcId": "0"}},
		"a keyword without universe":  {text: "JobKeyword = \"NONE\"\n" + cmd, bad: "no universe"},
		"a keyword without directory": {text: "JobKeyword = \"NONE\"\nJobUniverse = 5\nCmd = \"x\"", bad: "its directory"},
		"a knob that is no value":     {text: "JobKeyword = \"BAD\"\n" + cmd, bad: "BAD_kill_sig"},
		"a log":                       {text: cmd + "StarterUserLog = \"log\"", want: map[string]string{"StarterUserLog": `"log"`}},
		"a log in a pod":              {text: cmd + "StarterUserLog = \"log\"", pod: true, bad: "StarterUserLog"},
		"nothing":                     {bad: "standard input has none"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			backend := "local"
			if tt.pod {
				backend = "pod"
			}
			ad, err := readAd(strings.NewReader(tt.text), settingsOf(t, backend), quiet)
			if tt.bad != "" || err != nil {
				if err == nil || tt.bad == "" || !strings.Contains(err.Error(), tt.bad) {
					t.Fatalf("got %v, want an error with %q", err, tt.bad)
				}
				return
			}
			got := map[string]string{}
			for attribute := range tt.want {
				got[attribute] = ""
				if e, ok := ad.Lookup(attribute); ok {
					got[attribute] = e.OldString()
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestNoDirectory: a job without Iwd starts in its sandbox, and a relative one begins there.
func TestNoDirectory(t *testing.T) {
	sandbox := fmt.Sprintf("/execute/dir_%d", os.Getpid())
	for text, want := range map[string]string{"": sandbox, `Iwd = "."`: sandbox, `Iwd = "below"`: sandbox + "/below", `Iwd = 7`: sandbox} {
		ad, err := readAd(strings.NewReader("Cmd = \"x\"\n"+text+"\n"), settingsOf(t, "local"), quiet)
		if err != nil {
			t.Fatal(err)
		}
		if iwd := ad.StringOr("Iwd", ""); iwd != want {
			t.Errorf("%s: it is %q, want %q", text, iwd, want)
		}
	}
}

// FuzzReadAd: whatever a hook prints, the activation can read what comes of it, or there is an error.
func FuzzReadAd(f *testing.F) {
	f.Add("Cmd = \"x\"\nIwd = \"/\"\nJobUniverse = 5\nClusterId = 1\n#\nStreamOut = true\n")
	f.Add("JobKeyword = \"K\"\nCmd = undefined\n")
	f.Add("Cmd = 1\nJobUniverse = \"x\"\nClusterId = -1\n=\n")
	set := settingsOf(f, "local")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := readAd(strings.NewReader(text), set, quiet)
		if err != nil {
			return
		}
		info, err := job.Read(ad, "")
		if err == nil && info.FileTransfer {
			t.Errorf("files are transferred, to nobody:\n%s", text)
		}
	})
}
