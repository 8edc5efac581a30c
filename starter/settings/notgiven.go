package settings

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"podstarter/condor/config"
)

// NotGiven is a knob of HTCondor that the site has set, and that does not do here what it does under the stock starter.
type NotGiven struct {
	Name    string
	Where   string // file and line, "" if not known
	Means   string // what becomes of it here
	Instead string // what to do in its place
}

// String is a sentence for -check and the log.
func (n NotGiven) String() string {
	return fmt.Sprintf("%s%s is not obeyed: %s", n.Name, setAt(n.Where), n.Means)
}

func setAt(where string) string {
	if where == "" {
		return ""
	}
	return " (set at " + where + ")"
}

// scope says on which execution points a knob is not obeyed.
type scope string

const (
	anywhere   scope = "all"
	inPods     scope = "in a pod"
	withoutPod scope = "without a pod"
)

func (s scope) covers(pod bool) bool { return s == anywhere || pod == (s == inPods) }

// withoutEffect is a row of a table of such knobs.
type withoutEffect struct {
	name           string // a pattern, in which * stands for any letters
	on             scope
	means, instead string
	harmless       func(value string) bool // values with which nobody misses anything; nil: only an empty one
}

const (
	setVolumes   = "volumes and volumeMounts of the payload container, in the pod's manifest"
	noVolumes    = "what is mounted in a container is decided before its job is known"
	noLibraries  = "no library is loaded, and a call of one of its functions is an error in each expression"
	insteadMaps  = "maps in STARTER_CLASSAD_USER_MAP_NAMES, or the knob for other daemons only"
	payloadUser  = "jobs run as the payload user of their slot"
	ticketsOnly  = payloadUser + ", and the account only names files that the site keeps for it, such as Kerberos tickets"
	insteadUser  = "remove the knob; POD_STARTER_PAYLOAD_UID is the user of jobs"
	ownSSH       = "the ssh server is part of the starter, and no sshd is started"
	noLimits     = "the kubelet makes the control group, and its limits are those of the container"
	insteadLimit = "resources of the payload container, in the pod's manifest, or POD_STARTER_RESIZE"
	insteadPorts = "a network in which the starter's connections may leave from any port"
)

// knobsWithoutEffect are in the order of the pages. Those that nobody can miss are only in docs/admin/images.md: how Docker is
// called, logs, and caches its images.
var knobsWithoutEffect = []withoutEffect{
	{name: "DOCKER_NETWORKS", on: inPods, means: "a pod has one network. Jobs that ask for one of these match this slot and go back to the queue, again and again", instead: "remove DOCKER_NETWORKS"},
	{name: "DOCKER_EXTRA_ARGUMENTS", on: inPods, means: "the container is made by the kubelet, from the pod's manifest", instead: "the payload container in the pod's manifest"},
	{name: "DOCKER_MOUNT_VOLUMES", on: inPods, means: noVolumes, instead: setVolumes},
	{name: "DOCKER_VOLUME_DIR_*", on: inPods, means: noVolumes, instead: setVolumes},
	{name: "DOCKER_SHM_SIZE", on: inPods, means: "the size of /dev/shm is that of the volume there", instead: "sizeLimit of the payload container's volume at /dev/shm"},
	{name: "DOCKER_DROP_ALL_CAPABILITIES", on: inPods, means: "jobs never have capabilities", instead: "remove DOCKER_DROP_ALL_CAPABILITIES; a job that needs them cannot run in such a pod", harmless: isTrue},
	{name: "DOCKER_RUN_AS_ROOT", on: anywhere, means: "jobs are never root", instead: "remove DOCKER_RUN_AS_ROOT; a job that needs to be root cannot run here", harmless: isFalse},
	{name: "SINGULARITY_EXTRA_ARGUMENTS", on: inPods, means: "no Apptainer is called", instead: "the payload container in the pod's manifest"},
	{name: "MOUNT_UNDER_SCRATCH", on: inPods, means: "/tmp and /var/tmp are private anyway, and nothing else is mounted for a job", instead: "mount_under_scratch in jobs, which is obeyed", harmless: onlyTemporary},
	{name: "SINGULARITY_IS_SETUID", on: anywhere, means: "no job gets rights from a program's set-user-ID bit, so that an Apptainer that needs it does not work", instead: "an Apptainer that works without; see docs/admin/plain.md", harmless: isFalse},
	{name: "USE_PID_NAMESPACES", on: inPods, means: "the mode of the pod decides which processes a job sees", instead: "another mode; see docs/admin/modes.md", harmless: isFalse},
	{name: "PER_JOB_NAMESPACES", on: inPods, means: "what a job has mounted is that of its container", instead: "remove it", harmless: isTrue},
	{name: "USE_PID_NAMESPACE_INIT", on: withoutPod, means: "the first process of a job's PID namespace is always one of the starter's, which waits for orphans", instead: "remove it", harmless: isTrue},
	{name: "CGROUP_MEMORY_LIMIT_POLICY", on: inPods, means: noLimits, instead: insteadLimit, harmless: is("hard")},
	{name: "CGROUP_HARD_MEMORY_LIMIT_EXPR", on: inPods, means: noLimits, instead: insteadLimit},
	{name: "CGROUP_LOW_MEMORY_LIMIT", on: inPods, means: noLimits, instead: insteadLimit},
	{name: "STARTD_ENFORCE_DISK_LIMITS", on: anywhere, means: "no logical volume is made for a job, so that only its volume limits the disk that it uses", instead: "sizeLimit of the volume of EXECUTE, in the pod's manifest", harmless: isFalse},
	{name: "PID_SNAPSHOT_INTERVAL", on: anywhere, means: "what a job uses is looked at in the interval CGROUP_POLLING_INTERVAL", instead: "CGROUP_POLLING_INTERVAL", harmless: is("15")},
	{name: "SSH_TO_JOB_SSHD", on: anywhere, means: ownSSH, instead: "remove it"},
	{name: "SSH_TO_JOB_SSHD_ARGS", on: anywhere, means: ownSSH, instead: "remove it"},
	{name: "SSH_TO_JOB_SSHD_CONFIG_TEMPLATE", on: anywhere, means: ownSSH, instead: "remove it"},
	{name: "SSH_TO_JOB_SSH_KEYGEN", on: anywhere, means: "the starter makes the keys itself", instead: "SSH_TO_JOB_SSH_KEYGEN_ARGS, whose -t says of which type"},
	{name: "NOBODY_SLOT_USER", on: anywhere, means: ticketsOnly, instead: insteadUser},
	{name: "SLOT*_USER", on: anywhere, means: ticketsOnly, instead: insteadUser},
	{name: "SOFT_UID_DOMAIN", on: anywhere, means: payloadUser, instead: insteadUser, harmless: isFalse},
	{name: "GLEXEC_JOB", on: anywhere, means: payloadUser, instead: insteadUser, harmless: isFalse},
	{name: "RUN_FILETRANSFER_PLUGINS_WITH_ROOT", on: anywhere, means: "plugins never run as root", instead: "remove it", harmless: isFalse},
	{name: "CLASSAD_USER_LIBS", on: anywhere, means: noLibraries, instead: insteadMaps},
	{name: "CLASSAD_USER_PYTHON_MODULES", on: anywhere, means: noLibraries, instead: insteadMaps},
	{name: "CLASSAD_USER_PYTHON_LIB", on: anywhere, means: noLibraries, instead: insteadMaps},
	{name: "LOG_TO_SYSLOG", on: anywhere, means: "the log is in the file STARTER_LOG only", instead: "a program that sends that file on; in a pod, POD_STARTER_EVENT_LOG tells of jobs on standard output", harmless: isFalse},
	{name: "STARTER_*_LOG", on: anywhere, means: "there is one log, STARTER_LOG, and none of a single category", instead: "STARTER_DEBUG"},
	{name: "NAMED_CHROOT", on: anywhere, means: "a job has the root directory of its image or of the machine; one that asks for another (+RequestedChroot) is held", instead: "images"},
	{name: "PARROT", on: anywhere, means: "jobs that ask for Parrot (+UseParrot) are held", instead: "images with Parrot"},
	{name: "LIGO_NFS_SERVER_HACKS", on: anywhere, means: "modes of a job's files are never changed for a file server", instead: "file transfer", harmless: isFalse},
	{name: "DATA_REUSE_DIRECTORY", on: anywhere, means: "no data is kept from one job for the next, as in all releases of HTCondor", instead: "common input files; see docs/admin/transfer.md"},
	{name: "LOWPORT", on: anywhere, means: "it only tells jobs; the starter's connections leave from any port", instead: insteadPorts},
	{name: "OUT_LOWPORT", on: anywhere, means: "it only tells jobs; the starter's connections leave from any port", instead: insteadPorts},
	{name: "TCP_KEEPALIVE_INTERVAL", on: anywhere, means: "the starter's connections are probed when they were idle for 360 s", instead: "360, or remove it", harmless: is("360")},
}

// knobsRefused are knobs that make a job run in another way or at another place than the site
// demands: with one of them, no job runs.
var knobsRefused = []withoutEffect{
	{name: "ENCRYPT_EXECUTE_DIRECTORY", on: anywhere, means: "this starter cannot encrypt the volume of the sandboxes",
		instead: "set STARTER.ENCRYPT_EXECUTE_DIRECTORY = False where the volume is encrypted by other means, such as the node's disk", harmless: isFalse},
	{name: "STARTD_ENCRYPT_EXECUTE_DISK", on: anywhere, means: "this starter cannot encrypt the volume of the sandboxes",
		instead: "set STARTER.STARTD_ENCRYPT_EXECUTE_DISK = False where the volume is encrypted by other means, such as the node's disk", harmless: isFalse},
	{name: "STARTER_REMOTE_CMD", on: anywhere, means: "jobs run here, and never on a machine that a command reaches", instead: "remove STARTER_REMOTE_CMD, or use HTCondor's own starter for such slots"},
}

func isTrue(value string) bool { return strings.EqualFold(value, "true") || value == "1" }

// isFalse takes a single letter, too (condor_config.cpp:param_boolean_crufty).
func isFalse(value string) bool {
	return strings.EqualFold(value, "false") || strings.EqualFold(value, "f") || value == "0"
}

func is(what string) func(string) bool {
	return func(value string) bool { return strings.EqualFold(value, what) }
}

// onlyTemporary tells whether MOUNT_UNDER_SCRATCH names what each container has anyway, as HTCondor's default does.
func onlyTemporary(value string) bool {
	for _, dir := range config.Split(strings.Trim(strings.TrimSpace(value), `"`)) {
		if dir != "/tmp" && dir != "/var/tmp" {
			return false
		}
	}
	return true
}

// otherDaemons have nothing to do with the jobs here. A knob that is set for one of them says nothing of starters
// (condor_utils/subsystem_info.cpp). The startd is none of them: it decides on slots.
var otherDaemons = []string{
	"ANNEXD", "COLLECTOR", "CREDD", "DAGMAN", "DEFRAG", "GAHP", "GANGLIAD", "GRIDMANAGER", "HAD", "JOB_ROUTER", "KBDD", "MASTER", "NEGOTIATOR",
	"REPLICATION", "ROOSTER", "SCHEDD", "SHADOW", "SHARED_PORT", "SUBMIT", "TOOL",
}

// defaultPlace is where condor_config_val says a knob is set that the site does not set.
const defaultPlace = "<Default>"

// KnobsNotGiven finds knobs that the configuration sets and that are not obeyed here, in the order of the table.
func KnobsNotGiven(cfg *config.Config, pod bool) []NotGiven {
	return append(setOf(cfg, knobsWithoutEffect, pod), withoutMounts(cfg, pod)...)
}

func setOf(cfg *config.Config, table []withoutEffect, pod bool) []NotGiven {
	found := make([][]NotGiven, len(table))
	// Each starter looks through 1500 names, so they are compared with patterns only where there are any.
	rows, patterns := map[string][]int{}, []int(nil)
	for i, w := range table {
		switch {
		case !w.on.covers(pod):
		case strings.Contains(w.name, "*"):
			patterns = append(patterns, i)
		default:
			rows[w.name] = append(rows[w.name], i)
		}
	}
	for _, full := range cfg.Names() {
		// A knob may be set for a subsystem or a slot type: STARTER.NAME.
		prefix, _, _ := strings.Cut(full, ".")
		if slices.Contains(otherDaemons, prefix) {
			continue
		}
		name := full[strings.LastIndexByte(full, '.')+1:]
		for _, i := range rows[name] {
			found[i] = append(found[i], table[i].given(cfg, full)...)
		}
		for _, i := range patterns {
			if ok, err := path.Match(table[i].name, name); err == nil && ok {
				found[i] = append(found[i], table[i].given(cfg, full)...)
			}
		}
	}
	return slices.Concat(found...)
}

// given looks at one knob of the row.
func (w withoutEffect) given(cfg *config.Config, full string) []NotGiven {
	value, where := strings.TrimSpace(cfg.String(full, "")), cfg.Where(full)
	if value == "" || w.harmless != nil && w.harmless(value) || where == defaultPlace {
		return nil
	}
	return []NotGiven{{Name: full, Where: where, Means: w.means, Instead: w.instead}}
}

// refuse reports the knobs with which no job runs here. For another subsystem, they do not count.
func (r *reader) refuse() {
	for _, w := range knobsRefused {
		value, set := r.cfg.Lookup(w.name)
		if !set || w.harmless != nil && w.harmless(strings.TrimSpace(value)) {
			continue
		}
		if w.harmless != nil { // a boolean, perhaps as an expression
			if on, err := r.cfg.Bool(w.name, false); err == nil && !on {
				continue
			}
		}
		r.problem(fmt.Errorf("%s: %s, so that no job runs%s; %s", w.name, w.means, setAt(r.cfg.Where(w.name)), w.instead))
	}
}

// Remarks are sentences for the log about knobs that do not do what the site may expect: those
// that are not understood, that are misspelt, and that are not obeyed here.
func (s Settings) Remarks() []string {
	var remarks []string
	for _, w := range s.Condor.Warnings {
		remarks = append(remarks, "A knob is not understood, its default holds: "+w.Error())
	}
	for _, u := range UnknownKnobs(s.Config) {
		remarks = append(remarks, u.String())
	}
	for _, n := range KnobsNotGiven(s.Config, s.InPod()) {
		remarks = append(remarks, n.String())
	}
	return remarks
}
