package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/platform/batch"
	"podstarter/provisioner/platform/model"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/template"
)

// rooster makes a site one of the mode offline-ads, with a collector that is a
// folder: what is sent to it is in the file sent. The negotiator has matched the ad
// that it has.
func rooster(t *testing.T) (args []string, m *model.Model, dir string) {
	t.Helper()
	args, m = site(t)
	dir = filepath.Dir(args[1])
	for name, text := range map[string]string{
		"provisioner.yaml": "name: site\ninterval: 10s\nmode: offline-ads\noffline: {spare: 2}\n",
		"condor_status":    "#!/bin/sh\ncase \"$*\" in *Offline,Mach*) printf 'Name = \"offline@site-plain-a.one\"\\nMachineLastMatchTime = 1700000000\\n\\n' ;; esac\n",
		"condor_advertise": "#!/bin/sh\n(echo \"$*\"; cat) >>" + dir + "/sent\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return args, m, dir
}

func sent(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "sent"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOfflineMode(t *testing.T) {
	args, m, dir := rooster(t)
	out, _, err := start(t.Context(), m, append(args, "-dry-run")...)
	if err != nil || !strings.Contains(out, "make site-plain-a of plain/one for a match\n") || count(t, m) != 0 {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sent")); err == nil {
		t.Error("a dry run sends ads")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	var words strings.Builder
	go func() {
		done <- run(ctx, args, &strings.Builder{}, writer(func(p []byte) {
			words.Write(p)
			if strings.Contains(string(p), "A round is done") {
				cancel()
			}
		}), inMemory(m, nil))
	}()
	select {
	case err = <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("it does not end")
	}
	if err != nil || count(t, m) != 1 || !strings.Contains(words.String(), `"coming":1`) {
		t.Errorf("%d pods, %v\n%s", count(t, m), err, words.String())
	}
	text := sent(t, dir)
	update, away, _ := strings.Cut(text, "INVALIDATE_STARTD_ADS")
	if strings.Count(update, "Offline = true") != 3 || !strings.Contains(away, `Name = "offline@site-plain-a.one"`) {
		t.Errorf("what is sent is\n%s", text)
	}
	if _, _, err := start(t.Context(), m, append(args, "-explain", "x")...); err == nil || !strings.Contains(err.Error(), "condor_q -better-analyze") {
		t.Errorf("the error is %v", err)
	}
}

func TestPrintedAds(t *testing.T) {
	args, m := site(t)
	out, _, err := start(t.Context(), m, append(args, "-ads", "2")...)
	if err != nil || strings.Count(out, "Offline = true") != 2 || !strings.Contains(out, `Name = "offline@site-plain-2.one"`) || !strings.Contains(out, "Unhibernate = ") {
		t.Errorf("%s\n%v", out, err)
	}
	if _, _, err := start(t.Context(), m, append(args, "-ads", "10001")...); err == nil {
		t.Error("any number is printed")
	}
}

func TestWake(t *testing.T) {
	args, m := site(t)
	name := filepath.Join(t.TempDir(), "ad")
	wake := func(text string) (string, error) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		before := os.Stdin
		os.Stdin = f
		defer func() { os.Stdin = before }()
		out, _, err := start(t.Context(), m, append(args, "-wake")...)
		return out, err
	}
	ad := fmt.Sprintf("Name = \"offline@site-plain-1.one\"\nMachineLastMatchTime = %d\n", time.Now().Unix())
	for _, want := range []string{"is made", "was made for this match before"} {
		if out, err := wake(ad); err != nil || !strings.Contains(out, want) || !strings.HasSuffix(out, "\n") {
			t.Errorf("%q, %v, want %q", out, err, want)
		}
	}
	if _, err := wake("Name = \"slot1@other\"\n"); err == nil {
		t.Error("another machine is woken")
	}
	if n := count(t, m); n != 1 {
		t.Errorf("there are %d pods", n)
	}
}

// A batch system has no Secrets.
func TestTokensOfABatchSystem(t *testing.T) {
	set := settings.Settings{Name: "site", Batch: &batch.Config{}}
	_, err := connect(t.Context(), set, []template.Template{{Name: "plain", Token: &template.Token{}}})
	if err == nil || !strings.Contains(err.Error(), "the template plain has a token") {
		t.Errorf("the error is %v", err)
	}
}
