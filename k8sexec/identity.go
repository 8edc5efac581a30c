package k8sexec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"podstarter/payload"
)

// containerIDInPath finds the ID that container runtimes end a cgroup's path
// with: 64 hexadecimal digits, as they are (cgroupfs driver) or inside a name
// such as cri-containerd-ID.scope or crio-ID.scope (systemd driver).
var containerIDInPath = regexp.MustCompile(`[0-9a-f]{64}`)

// maxCgroupFile bounds what is read of /proc/PID/cgroup: a dozen hierarchies with
// a path each.
const maxCgroupFile = 64 << 10

// containerOf finds out in which container a process runs, by its cgroup
// (cgroups(7), /proc/PID/cgroup). In a pod whose containers have cgroup
// namespaces of their own the path is relative to the reader's and leads out of
// it (/../ID), but the last component is the same.
func containerOf(proc string, pid int) (string, error) {
	f, err := os.Open(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCgroupFile))
	if err != nil {
		return "", err
	}
	id := containerInCgroups(string(data))
	if id == "" {
		return "", fmt.Errorf("no container ID in the cgroups of process %d", pid)
	}
	return id, nil
}

// containerInCgroups gives the ID if all hierarchies that show one agree.
func containerInCgroups(text string) string {
	var id string
	for line := range strings.Lines(text) {
		ids := containerIDInPath.FindAllString(line, -1)
		if len(ids) == 0 {
			continue
		}
		last := ids[len(ids)-1]
		if id != "" && id != last {
			return ""
		}
		id = last
	}
	return id
}

// errNoCgroup means that nothing shows in which container the wrapper runs.
var errNoCgroup = errors.New("the wrapper sent no file that shows its control group, and the pod does not share its process namespace")

// containerOfWrapper finds out which container a wrapper runs in. This links its
// announcement to the status of a container without comparing times.
func containerOfWrapper(proc string, client *payload.Client) (string, error) {
	if id := containerInCgroups(client.Cgroups()); id != "" {
		return id, nil
	}
	if !client.SharesPIDNamespace() {
		return "", errNoCgroup
	}
	return containerOf(proc, client.Hello().PID)
}
