package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"podstarter/integration/images/probe/facts"
)

// findPlugins looks for what a plugin of the job's has left.
func findPlugins(a *attempt) {
	for _, p := range processes() {
		if strings.Contains(p.args, facts.PluginLeft) {
			a.try(p.args, nil)
		}
	}
}

// lookAtFlood looks at the memory that starters have needed, of which everybody can
// read how much it was (proc_pid_status(5), VmHWM).
func lookAtFlood(a *attempt) {
	const most = 128 << 10 // in KiB, half of the flood
	for _, p := range processes() {
		if !strings.HasPrefix(p.name, "condor_pod_star") {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			a.try("memory of "+p.name, err)
			continue
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		line, _, _ := strings.Cut(rest, "\n")
		if n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(line), " kB")); err == nil && n <= most {
			a.try(fmt.Sprintf("memory of %s, %d KiB", p.name, n), errors.New("not flooded"))
		} else {
			a.try(fmt.Sprintf("memory of %s, %s", p.name, strings.TrimSpace(line)), err)
		}
	}
}
