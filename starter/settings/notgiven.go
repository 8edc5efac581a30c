package settings

import (
	"fmt"
	"strings"

	"podstarter/condor/config"
)

// NotGiven is a knob of HTCondor that the site has set, and that can do nothing here: it is about
// how Docker or Apptainer run a container, or about mounts.
type NotGiven struct {
	Name    string
	Where   string // file and line, "" if not known
	Means   string // what becomes of it here
	Instead string // what to do in its place
}

// String is a sentence for -check.
func (n NotGiven) String() string {
	where := ""
	if n.Where != "" {
		where = " (set at " + n.Where + ")"
	}
	return fmt.Sprintf("%s%s has no effect: %s", n.Name, where, n.Means)
}

// withoutEffect is a row of the table of such knobs.
type withoutEffect struct {
	name           string // one that ends in '*' is the beginning of names
	means, instead string
	harmless       func(value string) bool // values with which nobody misses anything; nil: only an empty one
}

const setVolumes = "volumes and volumeMounts of the payload container, in the pod's manifest"

// knobsWithoutEffect are in the order of docs/admin/images.md. Those that nobody can miss are only there: how Docker is
// called, logs, and caches its images.
var knobsWithoutEffect = []withoutEffect{
	{name: "DOCKER_NETWORKS", means: "a pod has one network. Jobs that ask for one of these match this slot and go back to the queue, again and again", instead: "remove DOCKER_NETWORKS"},
	{name: "DOCKER_EXTRA_ARGUMENTS", means: "the container is made by the kubelet, from the pod's manifest", instead: "the payload container in the pod's manifest"},
	{name: "DOCKER_MOUNT_VOLUMES", means: "what is mounted in a container is decided before its job is known", instead: setVolumes},
	{name: "DOCKER_VOLUME_DIR_*", means: "what is mounted in a container is decided before its job is known", instead: setVolumes},
	{name: "DOCKER_SHM_SIZE", means: "the size of /dev/shm is that of the volume there", instead: "sizeLimit of the payload container's volume at /dev/shm"},
	{name: "DOCKER_DROP_ALL_CAPABILITIES", means: "jobs never have capabilities", instead: "remove DOCKER_DROP_ALL_CAPABILITIES; a job that needs them cannot run in such a pod", harmless: isTrue},
	{name: "DOCKER_RUN_AS_ROOT", means: "jobs are never root", instead: "remove DOCKER_RUN_AS_ROOT; a job that needs to be root cannot run in such a pod", harmless: isFalse},
	{name: "SINGULARITY_EXTRA_ARGUMENTS", means: "no Apptainer is called", instead: "the payload container in the pod's manifest"},
	{name: "MOUNT_UNDER_SCRATCH", means: "/tmp and /var/tmp are private anyway, and nothing else is mounted for a job", instead: "mount_under_scratch in jobs, which is obeyed", harmless: onlyTemporary},
}

func isTrue(value string) bool  { return strings.EqualFold(value, "true") || value == "1" }
func isFalse(value string) bool { return strings.EqualFold(value, "false") || value == "0" }

// onlyTemporary tells whether MOUNT_UNDER_SCRATCH names what each container has anyway, as HTCondor's default does.
func onlyTemporary(value string) bool {
	for _, dir := range config.Split(strings.Trim(strings.TrimSpace(value), `"`)) {
		if dir != "/tmp" && dir != "/var/tmp" {
			return false
		}
	}
	return true
}

// KnobsNotGiven finds knobs that the configuration sets and that have no effect here, in the order of the table.
func KnobsNotGiven(cfg *config.Config) []NotGiven {
	var found []NotGiven
	for _, w := range knobsWithoutEffect {
		prefix, many := strings.CutSuffix(w.name, "*")
		for _, full := range cfg.Names() {
			// A knob may be set for a subsystem or a slot type: STARTER.NAME.
			name := full[strings.LastIndexByte(full, '.')+1:]
			if name != w.name && !(many && strings.HasPrefix(name, prefix)) {
				continue
			}
			value := strings.TrimSpace(cfg.String(full, ""))
			if value == "" || w.harmless != nil && w.harmless(value) {
				continue
			}
			found = append(found, NotGiven{Name: full, Where: cfg.Where(full), Means: w.means, Instead: w.instead})
		}
	}
	return found
}
