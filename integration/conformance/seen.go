package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// userPattern is the users of payloads, one for each slot or container.
var userPattern = regexp.MustCompile(`\b1000[1-8]\b`)

// Seen is what a job saw of itself and its surroundings, without anything particular
// to one run.
func Seen(f facts.Facts, job harness.Job) map[string]string {
	seen := map[string]string{
		"directory":             f.Dir,
		"arguments":             strings.Join(f.Args, " ¦ "),
		"user":                  fmt.Sprint(f.UID),
		"group":                 fmt.Sprint(f.GID),
		"supplementary groups":  fmt.Sprint(f.Groups),
		"leads a session":       fmt.Sprint(f.Session),
		"umask":                 fmt.Sprintf("%#o", f.Umask),
		"nice value":            fmt.Sprint(f.Nice),
		"oom_score_adj":         f.OOMScore,
		"standard input":        f.Stdin,
		"open file descriptors": fmt.Sprint(sortedKeys(f.Descriptor)),
	}
	for _, variable := range f.Env {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "_CONDOR_ANCESTOR_") {
			// The name holds a process number, the value a time and a random number.
			name, value = "_CONDOR_ANCESTOR_<pid>", "<particular>"
		}
		if name == "CONDOR_STARTER_PID" {
			value = "<pid>"
		}
		seen["environment "+name] = value
	}
	for name, value := range f.Status {
		seen["status "+name] = value
	}
	for name, value := range f.Limits {
		seen["limit "+name] = value
	}
	for name, value := range f.Files {
		if base := name[strings.LastIndexByte(name, '/')+1:]; base == ".job.ad" || base == ".machine.ad" || base == ".update.ad" || base == ".chirp.config" || base == "out" || strings.HasPrefix(base, "_condor_std") {
			value, _, _ = strings.Cut(value, " ") // its size changes from run to run
		}
		seen["file "+name] = value
	}
	for name, value := range seen {
		value = words(value, job)
		switch name {
		case "user", "group", "supplementary groups", "status Uid", "status Gid":
			value = userPattern.ReplaceAllString(value, "<payload user>")
		}
		seen[name] = value
	}
	return seen
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
