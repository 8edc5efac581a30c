package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/image"
	"podstarter/condor/java"
	"podstarter/starter/hostprog"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
)

// proofs names, for each ability that is advertised, tests that show it: cases
// of integration/conformance by their names, where the stock starter can show it
// too, or Go tests. An ability is a promise to jobs that are matched by it, so
// none is made that nothing keeps.
var proofs = map[string][]string{
	"HasFileTransfer":            {"conformance/plain", "conformance/output"},
	"HasPerFileEncryption":       {"conformance/encrypted", "sandbox/filetransfer/TestUploadList"},
	"HasJobNetworking":           {"conformance/plain"}, // whose Requirements ask for nothing else
	"HasReconnect":               {"conformance/reconnect", "conformance/ended-disconnected"},
	"HasTransferInputRemaps":     {"conformance/input-remaps"},
	"HasOsUser":                  {"condor/job/TestRead"},
	"HasContainer":               {"integration/e2e/TestImages"},
	"HasDocker":                  {"integration/e2e/TestImages"},
	"HasDockerURL":               {"integration/e2e/TestImages"},
	"HasSIF":                     {"integration/e2e/TestImageChoice"},
	"HasSandboxImage":            {"integration/e2e/TestImageChoice"},
	"HasPodStarter":              {"integration/e2e/TestPlainJob"},
	"HasCommonFilesTransfer":     {"conformance/common-files", "conformance/common-catalogs", "conformance/url-common"},
	"HasJobDeferral":             {"conformance/deferred", "conformance/deferral-missed"},
	"HasSshd":                    {"conformance/ssh-outlasts", "integration/e2e/TestModeVisit"},
	"HasSelfCheckpointTransfers": {"conformance/checkpoint", "integration/e2e/TestCheckpoint"},

	"HasJava": {"integration/e2e/TestJavaWithoutPod", "starter/TestFindJava"},

	"HasFileTransferPluginMethods":  {"conformance/plugin", "conformance/plugin-one"},
	"HasJobTransferPlugins":         {"conformance/plugin-own"},
	"HasDisableUserTransferPlugins": {"conformance/plugin-own-refused", "conformance/plugin-own-ignored"},
}

// TestEveryAbilityIsProven: what -classad promises and what is tested are the
// same.
func TestEveryAbilityIsProven(t *testing.T) {
	site, err := image.NewSite(config.FromMap(map[string]string{image.KnobMap: mapFile(t)}))
	if err != nil {
		t.Fatal(err)
	}
	ad := classads.NewAd()
	abilities(ad, settings.Settings{Config: config.FromMap(nil), Backend: settings.BackendPod, Images: site,
		CommonFiles: settings.CommonFiles{Offered: true, Links: true}})
	plugin := hostprogtest.Script(t, `echo 'SupportedMethods = "m"'`)
	cfg := config.FromMap(map[string]string{
		"FILETRANSFER_PLUGINS": plugin, "STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS": "2", "LOCK": t.TempDir(),
	})
	set := settings.Settings{Backend: settings.BackendLocal, PrivateDir: t.TempDir(), Config: cfg}
	urlAbilities(t.Context(), ad, hostprog.New(hostprog.Options{SeparateUsers: true}), set, cfg, nil, slog.New(slog.DiscardHandler))
	if err := java.Publish(ad, []byte("JavaVersion = \"21\"\n")); err != nil {
		t.Fatal(err)
	}
	promised := map[string]bool{}
	for name := range ad.All() {
		if strings.HasPrefix(name, "Has") {
			promised[name] = true
			if len(proofs[name]) == 0 {
				t.Errorf("%s is promised to jobs, but no test in the table shows that it is kept", name)
			}
		}
	}
	for name, tests := range proofs {
		if !promised[name] {
			t.Errorf("%s is in the table, but it is not promised", name)
		}
		for _, test := range tests {
			if !exists(t, test) {
				t.Errorf("%s is to be shown by %s, but there is no such test", name, test)
			}
		}
	}
}

func mapFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "map")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// exists looks for a test by folder and name.
func exists(t *testing.T, test string) bool {
	t.Helper()
	folder, name := filepath.Split(test)
	pattern, text := filepath.Join("..", folder, "*_test.go"), "func "+name+"("
	made := text // by a function
	if folder == "conformance/" {
		pattern, text, made = "../integration/conformance/cases_*.go", `Name: "`+name+`"`, `("`+name+`", `
	}
	blanks := regexp.MustCompile(`[ \t]+`) // by which gofmt aligns
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(path string) bool {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		plain := blanks.ReplaceAllString(string(code), " ")
		return strings.Contains(plain, text) || strings.Contains(plain, made)
	})
}

// TestNoJobNetworking: a startd whose site gives jobs no network takes only jobs that want none.
func TestNoJobNetworking(t *testing.T) {
	for knob, want := range map[string]bool{"": true, "false": true, "true": false} {
		set, err := settings.Read(config.FromMap(map[string]string{"POD_STARTER_BACKEND": "local", "NO_JOB_NETWORKING": knob}))
		if err != nil {
			t.Fatal(err)
		}
		ad := classads.NewAd()
		abilities(ad, set)
		if got := ad.BoolOr("HasJobNetworking", !want); got != want {
			t.Errorf("NO_JOB_NETWORKING = %s advertises %v", knob, got)
		}
	}
}

// TestPluginsNeverAsRoot: the log says that the site's wish is not obeyed.
func TestPluginsNeverAsRoot(t *testing.T) {
	for knob, want := range map[string]bool{"false": false, "true": true, "perhaps": true} {
		set, err := settings.Read(config.FromMap(map[string]string{"POD_STARTER_BACKEND": "local", "RUN_FILETRANSFER_PLUGINS_WITH_ROOT": knob}))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(set.Remarks(), "\n")
		if got := strings.Contains(said, "plugins never run as root"); got != want {
			t.Errorf("%s: the log says %q", knob, said)
		}
	}
}
