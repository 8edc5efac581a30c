package main

import (
	"os"
	"os/exec"
	"slices"
	"syscall"

	"podstarter/classads"
	"podstarter/integration/images/probe/facts"
)

// plugin is the probe as the file transfer plugin of a hostile job. It leaves a process,
// floods the starter, and tries the attacks that a variable names; it writes their results
// to the file that the job asks for. It does not read the starter's files, which it cannot
// see where the starter is careless with identities.
func plugin(args []string) error {
	report := ""
	if i := slices.Index(args, "-outfile"); i >= 0 && i+1 < len(args) {
		report = args[i+1]
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	left := exec.Command(self, "forever", "--", facts.PluginLeft)
	left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := left.Start(); err != nil {
		return err
	}
	nothing := make([]byte, 1<<20)
	for range facts.PluginFlood / len(nothing) {
		if _, err := os.Stdout.Write(nothing); err != nil {
			return err
		}
	}
	_ = os.Remove(facts.Tried)
	_ = os.Remove(report)
	tried, err := os.Create(facts.Tried)
	if err != nil {
		return err
	}
	defer tried.Close()
	os.Stdout = tried
	if names := os.Getenv("HOSTILE_ATTACKS"); names != "" {
		if err := attack(nil, names); err != nil {
			return err
		}
	}
	said := "[ TransferUrl = " + classads.Quote("hostile://h/"+facts.Tried) + "; TransferSuccess = true ]\n"
	return os.WriteFile(report, []byte(said), 0o644)
}
