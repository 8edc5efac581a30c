package settings

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

// TestStockKnobs: each of HTCondor's knobs changes the setting that it is for, and nothing else.
func TestStockKnobs(t *testing.T) {
	usual := map[string]string{"POD_STARTER_BACKEND": "local"}
	read := func(name, value string) Condor {
		t.Helper()
		knobs := map[string]string{name: value}
		for k, v := range usual {
			knobs[k] = v
		}
		s, err := Read(config.FromMap(knobs))
		if err != nil {
			t.Fatal(err)
		}
		return s.Condor
	}
	for name, tt := range map[string]struct {
		value string
		want  func(*Condor)
	}{
		"STARTD_RESOURCE_PREFIX":                        {"place", func(c *Condor) { c.ResourcePrefix = "place" }},
		"FILESYSTEM_DOMAIN":                             {"files", func(c *Condor) { c.FilesystemDomain = "files" }},
		"UID_DOMAIN":                                    {"users", func(c *Condor) { c.UIDDomain, c.Credentials.UIDDomain = "users", "users" }},
		"STARTER_NESTED_SCRATCH":                        {"true", func(c *Condor) { c.NestedScratch = true }},
		"JOB_EXECDIR_PERMISSIONS":                       {"world", func(c *Condor) { c.ExecDirPermissions = "world" }},
		"SHUTDOWN_GRACEFUL_TIMEOUT":                     {"7", func(c *Condor) { c.GracefulTimeout = 7 * time.Second }},
		"STARTER_ALWAYS_HOLD_ON_OOM":                    {"false", func(c *Condor) { c.HoldOnOOM = false }},
		"CHECK_REACTIVATE_AFTER_CHECKPOINT":             {"false", func(c *Condor) { c.AskToRestart = false }},
		"GUIDANCE_MUMS_THE_WORD":                        {"true", func(c *Condor) { c.Silent = true }},
		"NO_JOB_NETWORKING":                             {"true", func(c *Condor) { c.NoNetwork = true }},
		"STARTER_INITIAL_UPDATE_INTERVAL":               {"3", func(c *Condor) { c.Updates.Initial = 3 * time.Second }},
		"STARTER_UPDATE_INTERVAL":                       {"20", func(c *Condor) { c.Updates.Regular, c.Updates.Longest = 20*time.Second, 200*time.Second }},
		"STARTER_UPDATE_INTERVAL_TIMESLICE":             {"0.5", func(c *Condor) { c.Updates.Slice, c.Updates.Longest = 0.5, 600*time.Second }},
		"STARTER_UPDATE_INTERVAL_MAX":                   {"400", func(c *Condor) { c.Updates.Longest = 400 * time.Second }},
		"CGROUP_POLLING_INTERVAL":                       {"9", func(c *Condor) { c.Updates.Look = 9 * time.Second }},
		"USE_PSS":                                       {"true", func(c *Condor) { c.Measuring.PSS = true }},
		"CGROUP_USE_PEAK_MEMORY":                        {"true", func(c *Condor) { c.Measuring.Peak = true }},
		"CGROUP_IGNORE_CACHE_MEMORY":                    {"false", func(c *Condor) { c.Measuring.FileCache = true }},
		"ENABLE_CHIRP":                                  {"false", func(c *Condor) { c.Chirp.Enabled = false }},
		"ENABLE_CHIRP_IO":                               {"false", func(c *Condor) { c.Chirp.IO = false }},
		"ENABLE_CHIRP_UPDATES":                          {"false", func(c *Condor) { c.Chirp.Updates = false }},
		"ENABLE_CHIRP_DELAYED":                          {"false", func(c *Condor) { c.Chirp.Delayed = false }},
		"CHIRP_DELAYED_UPDATE_PREFIX":                   {"Site*", func(c *Condor) { c.Chirp.Prefix = "Site*" }},
		"CHIRP_DELAYED_UPDATE_MAX_ATTRS":                {"4", func(c *Condor) { c.Chirp.MaxAttributes = 4 }},
		"ENABLE_IPV4":                                   {"false", func(c *Condor) { c.Chirp.IPv4 = false }},
		"SEC_CREDENTIAL_REFRESH":                        {"11", func(c *Condor) { c.Credentials.Refresh = 11 * time.Second }},
		"SEC_CREDENTIAL_DIRECTORY_KRB":                  {"/tickets", func(c *Condor) { c.Credentials.KerberosDir = "/tickets" }},
		"SEC_CREDENTIAL_REFRESH_INTERVAL":               {"12", func(c *Condor) { c.Credentials.KerberosFresh = 12 * time.Second }},
		"CREDD_POLLING_TIMEOUT":                         {"13", func(c *Condor) { c.Credentials.KerberosPatience = 13 * time.Second }},
		"ALLOW_OAUTH_WITHOUT_ENCRYPTION":                {"true", func(c *Condor) { c.Credentials.PlainTokens = os.Getuid() != 0 }},
		"STARTER_UPLOAD_TIMEOUT":                        {"14", func(c *Condor) { c.Transfer.Timeout = 14 * time.Second }},
		"STARTER_FILE_XFER_STALL_TIMEOUT":               {"15", func(c *Condor) { c.Transfer.Stall = 15 * time.Second }},
		"SIGN_S3_URLS":                                  {"false", func(c *Condor) { c.Transfer.SignURLs = false }},
		"FILE_TRANSFER_STATS_LOG":                       {"/log/history", func(c *Condor) { c.Transfer.HistoryLog = Setting{"/log/history", true} }},
		"MAX_FILE_TRANSFER_PLUGIN_LIFETIME":             {"16", func(c *Condor) { c.Transfer.PluginLifetime = 16 * time.Second }},
		"REDIRECT_FILETRANSFER_PLUGIN_STDERR_TO_STDOUT": {"false", func(c *Condor) { c.Transfer.KeepErrors = false }},
		"ASSUME_COMPATIBLE_MULTIFILE_PLUGINS":           {"false", func(c *Condor) { c.Transfer.PlainData = false }},
		"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS":     {"D_STATUS", func(c *Condor) { c.Transfer.LogSuccess = "D_STATUS" }},
		"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE":     {"D_STATUS", func(c *Condor) { c.Transfer.LogFailure = "D_STATUS" }},
	} {
		t.Run(name, func(t *testing.T) {
			want := read("UNRELATED", "x")
			tt.want(&want)
			if diff := cmp.Diff(want, read(name, tt.value)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
