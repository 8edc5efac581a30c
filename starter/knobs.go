package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/condor/config"
	"podstarter/condor/image"
)

// knob is one line of the table from which docs/knobs.md and the snippet in
// condor_config.d are written, so that neither can drift from the code.
type knob struct {
	name     string
	def      string // as an admin would write it; empty is a meaning of its own
	sentence string
}

// fallback is the value of a knob that the configuration does not set. A
// default that comes from the environment is written as a configuration file
// would write it, $ENV(NAME:), which is empty for an unset variable.
func (k knob) fallback() string {
	if name, ok := strings.CutPrefix(k.def, "$ENV("); ok {
		return os.Getenv(strings.TrimSuffix(name, ":)"))
	}
	return k.def
}

// The knobs that are ours. Those of HTCondor that the starter honours keep
// HTCondor's names, defaults and meaning.
var (
	knobBackend = knob{"POD_STARTER_BACKEND", "auto",
		"Where payloads run: `pod` (a sibling container of this pod), `local` (beside the starter, no choice of image), or `auto`: `pod` when a service account token and a pod name are there."}
	knobPodName = knob{"POD_STARTER_POD_NAME", "$ENV(POD_NAME:)",
		"Name of the pod that the pilot runs in; the downward API's `metadata.name`."}
	knobPodNamespace = knob{"POD_STARTER_POD_NAMESPACE", "$ENV(POD_NAMESPACE:)",
		"Namespace of that pod; when empty, the one that the service account's directory names."}
	knobContainers = knob{"POD_STARTER_CONTAINERS", "payload",
		"Names of the payload containers of the pod, the first gets POD_STARTER_PAYLOAD_UID, the next that plus one, and so on."}
	knobPayloadUID = knob{"POD_STARTER_PAYLOAD_UID", "10001",
		"User and group id of the first payload container's jobs; must belong to nobody else in the pod."}
	knobControlDir = knob{"POD_STARTER_CONTROL_DIR", "/run/podstarter/control",
		"Directory on a volume that pilot and payload containers share and that only root may enter: sockets and exit records of the wrapper."}
	knobScratchDir = knob{"POD_STARTER_SCRATCH_DIR", "",
		"Directory of sandboxes for a pilot without root, in a volume that it shares with its one payload container, in place of EXECUTE, which is the pilot's alone. Everything in it is removed before each job."}
	knobPrivateDir = knob{"POD_STARTER_PRIVATE_DIR", "/run/podstarter/private",
		"Directory of the pilot container alone: leases of payload containers and the digests of images."}
	knobDefaultImage = knob{image.KnobDefault, "",
		"Image of jobs that name none: a reference, or an expression over slot (MY) and job (TARGET) that gives one; when empty or undefined, the image with which the pod was created. See docs/images.md."}
	knobImagePolicy = knob{image.KnobPolicy, string(image.PolicyOptional),
		"Which jobs run here: `never` those that name an image, `required` those alone, `optional` all; or an expression over slot (MY) and job (TARGET) that gives one of the words."}
	knobImageMap = knob{image.KnobMap, "",
		"File with rules that turn what jobs name (SingularityImage, paths, .sif files) into images of a registry, in the syntax of HTCondor's map files; asked before the built-in rules for CVMFS."}
	knobImagesAllowed = knob{image.KnobAllowed, "",
		"Images that jobs may use: patterns over registry/repository:tag, with * and ?; when empty, all. Others are held."}
	knobImagesDenied = knob{image.KnobDenied, "",
		"Images that jobs may not use, in the same form; wins over POD_STARTER_IMAGES_ALLOWED."}
	knobImageMirrors = knob{image.KnobMirrors, "",
		"Where images are pulled from instead: a list of FROM=TO, such as docker.io=mirror.example.org/dockerhub."}
	knobBindTimeout = knob{"POD_STARTER_BIND_TIMEOUT", "900",
		"Seconds that an image may take to be pulled and started before the job goes back to the queue."}
	knobReset = knob{"POD_STARTER_RESET", "always",
		"When a payload container is made anew: `always` gives each job a fresh one, `image` keeps it for the next job of the same owner in the same image. That starts in milliseconds instead of a second when jobs follow each other closely, and finds the files that the last one left in the image, but for those in /tmp and /var/tmp; its processes are gone, or the container is not used again. A tag is looked up again after POD_STARTER_DIGEST_LIFETIME."}
	knobThrowawayTags = knob{"POD_STARTER_THROWAWAY_TAGS", "True",
		"Write a known image as `name:<once>@<digest>`, which the kubelet does not count as a crash loop when it comes back; False where an image policy refuses such references."}
	knobDigestLifetime = knob{"POD_STARTER_DIGEST_LIFETIME", "600",
		"Seconds for which the digest that a tag pointed to is taken to be its digest still; 0 asks the registry each time."}
	knobMaxRest = knob{"POD_STARTER_MAX_REST", "300",
		"Longest time in seconds for which a slot takes no jobs after one that failed through nobody's fault; a pod in which no job can run rests up to six times as long. 0: jobs are taken whatever happened."}
	knobAdvertisedImages = knob{"POD_STARTER_ADVERTISED_IMAGES", "20",
		"How many of the images that ran here last are told to the pool as `PodStarterImages`; 0 for none."}
	knobEndPod = knob{"POD_STARTER_END_POD", "False",
		"Whether the entrypoint of the pilot image ends the pod when condor_master has ended by itself and without an error. Without it, a pod with `restartPolicy: Always` starts its pilot anew."}
	knobSetup = knob{"POD_STARTER_SETUP", "",
		"Program that the starter runs in the pilot container before each job, as its own user, with `setup` as its argument and the job's ad on its standard input. If it fails, the job goes back to the queue. See docs/hooks.md."}
	knobTeardown = knob{"POD_STARTER_TEARDOWN", "",
		"The same after each job, with `teardown`; that it fails is only logged."}
	knobContainerSetup = knob{"POD_STARTER_CONTAINER_SETUP", "",
		"Program of the pilot container that is run inside the payload container before each job, in its image, with `setup` as its argument."}
	knobContainerTeardown = knob{"POD_STARTER_CONTAINER_TEARDOWN", "",
		"The same after each job, when nothing of it is alive any more, with `teardown`."}
	knobContainerScriptsAs = knob{"POD_STARTER_CONTAINER_SCRIPTS_AS", scriptsAsPayload,
		"Who the programs inside the payload container are: `payload` (the job's user), `root` (container-root without capabilities; only programs that execute nothing of the image, statically linked ones), or `root-in-image` (scripts too: their shell is the image's, so every image that is allowed must be trusted like the pilot's own)."}
	knobScriptTimeout = knob{"POD_STARTER_SCRIPT_TIMEOUT", "60",
		"Seconds that each of these programs may take before it is killed."}
	knobWrapImages = knob{"POD_STARTER_WRAP_IMAGES", "True",
		"Whether USER_JOB_WRAPPER starts jobs that have an image, too, inside of it; or an expression over slot (MY) and job (TARGET). Jobs without one are always started by it."}
	knobMaxOutputFiles = knob{"POD_STARTER_MAX_OUTPUT_FILES", "10000000",
		"How many files and directories a job may return in one transfer; with more, it is held, and its standard output and error alone are returned. 0: any number."}
	knobProgramPaths = knob{"POD_STARTER_PROGRAM_PATHS", "",
		"Files and directories of the pilot container that the site's plugins and hooks may read and execute for a job, where the pilot is not root, beside the sandbox and what the image has in /usr, /etc, /opt, /bin, /sbin and /lib*: what is mounted, such as a volume with plugins, has to be named. Never one that holds what is secret. See docs/modes.md."}
	knobMaxProcesses = knob{"POD_STARTER_MAX_PROCESSES", "2048",
		"How many processes and threads a job may have at a time; with more it is killed and held. The pod's own limit (the kubelet's podPidsLimit) should leave room for as many from each payload container and 500 besides. 0: any number. See docs/usage.md."}
	knobKubernetesDir = knob{"POD_STARTER_KUBERNETES_DIR", "/var/run/secrets/kubernetes.io/serviceaccount",
		"Directory with the pilot's `token`, `ca.crt` and `namespace`."}
)

var knobs = []knob{
	knobBackend, knobPodName, knobPodNamespace, knobContainers, knobPayloadUID, knobControlDir, knobScratchDir, knobPrivateDir,
	knobDefaultImage, knobImagePolicy, knobImageMap, knobImagesAllowed, knobImagesDenied, knobImageMirrors, knobBindTimeout, knobReset, knobThrowawayTags, knobDigestLifetime,
	knobMaxRest, knobAdvertisedImages, knobEndPod,
	knobSetup, knobTeardown, knobContainerSetup, knobContainerTeardown, knobContainerScriptsAs, knobScriptTimeout, knobWrapImages,
	knobMaxOutputFiles, knobProgramPaths, knobMaxProcesses,
	knobKubernetesDir,
}

// settings are the values of our knobs, checked.
type settings struct {
	backend        string
	podName        string
	podNamespace   string
	containers     []string
	payloadUID     int
	controlDir     string
	scratchDir     string // empty: EXECUTE
	privateDir     string
	images         *image.Site
	bindTimeout    time.Duration
	reset          string
	throwawayTags  bool
	digestLifetime time.Duration
	maxRest        time.Duration
	maxOutputFiles int64
	maxTasks       int // 0: any number
	kubernetesDir  string
	programPaths   []string
	site           sitePrograms

	advertisedImages int
}

const (
	backendAuto  = "auto"
	backendPod   = "pod"
	backendLocal = "local"

	resetAlways = "always"
	resetImage  = "image"
)

// maxUID is the largest id that a payload may have; the kernel keeps the
// all-ones value for "no change" (setresuid(2)).
const maxUID = 1<<31 - 2

// maxTasks is the largest limit of processes: what the kernel can number
// (proc(5), PID_MAX_LIMIT).
const maxTasks = 1 << 22

// readSettings reads our knobs and says everything that is wrong with them at
// once.
func readSettings(cfg *config.Config) (settings, error) {
	var problems *multierror.Error
	bad := func(k knob, format string, args ...any) {
		problems = multierror.Append(problems, fmt.Errorf("%s: %s", k.name, fmt.Sprintf(format, args...)))
	}
	text := func(k knob) string {
		value := strings.TrimSpace(cfg.String(k.name, k.fallback()))
		if strings.EqualFold(value, "UNDEFINED") { // what $ENV() of an unset variable gives
			return ""
		}
		return value
	}
	count := func(k knob, least, most int64) int64 {
		def, _ := strconv.ParseInt(k.def, 10, 64) // the table's own digits
		n, err := cfg.Int(k.name, def)
		switch {
		case err != nil:
			problems = multierror.Append(problems, err)
		case n < least || n > most:
			bad(k, "%d is not between %d and %d", n, least, most)
		}
		return n
	}

	s := settings{
		backend:        strings.ToLower(text(knobBackend)),
		podName:        text(knobPodName),
		podNamespace:   text(knobPodNamespace),
		controlDir:     text(knobControlDir),
		privateDir:     text(knobPrivateDir),
		scratchDir:     text(knobScratchDir),
		reset:          strings.ToLower(text(knobReset)),
		kubernetesDir:  text(knobKubernetesDir),
		payloadUID:     int(count(knobPayloadUID, 1, maxUID)),
		bindTimeout:    time.Duration(count(knobBindTimeout, 1, 86400)) * time.Second,
		digestLifetime: time.Duration(count(knobDigestLifetime, 0, 30*86400)) * time.Second,
		maxRest:        time.Duration(count(knobMaxRest, 0, int64(maxMaxRest/time.Second))) * time.Second,

		maxOutputFiles:   count(knobMaxOutputFiles, 0, math.MaxInt64),
		maxTasks:         int(count(knobMaxProcesses, 0, maxTasks)),
		advertisedImages: int(count(knobAdvertisedImages, 0, maxAdvertised/3)),
	}
	list := func(k knob) []string {
		return strings.FieldsFunc(text(k), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	}
	s.programPaths = list(knobProgramPaths)
	for _, path := range s.programPaths {
		if !strings.HasPrefix(path, "/") {
			bad(knobProgramPaths, "%q is not an absolute path", path)
		}
	}
	s.containers = list(knobContainers)
	if len(s.containers) == 0 {
		bad(knobContainers, "names no container; give the name of the payload container, such as %q", knobContainers.def)
	}
	var err error
	if s.images, err = image.NewSite(cfg); err != nil {
		problems = multierror.Append(problems, err)
	}
	if s.throwawayTags, err = cfg.Bool(knobThrowawayTags.name, true); err != nil {
		problems = multierror.Append(problems, err)
	}
	if s.site, err = readSitePrograms(text, time.Duration(count(knobScriptTimeout, 1, 3600))*time.Second); err != nil {
		problems = multierror.Append(problems, err)
	}
	switch s.backend {
	case backendAuto, backendPod, backendLocal:
	default:
		bad(knobBackend, "%q is none of auto, pod, local", s.backend)
	}
	if s.reset != resetAlways && s.reset != resetImage {
		bad(knobReset, "%q is neither always nor image", s.reset)
	}
	for _, k := range []struct {
		knob knob
		path string
	}{{knobControlDir, s.controlDir}, {knobPrivateDir, s.privateDir}, {knobKubernetesDir, s.kubernetesDir}} {
		if !strings.HasPrefix(k.path, "/") {
			bad(k.knob, "%q is not an absolute path", k.path)
		}
	}
	switch {
	case s.scratchDir == "":
	case !strings.HasPrefix(s.scratchDir, "/"):
		bad(knobScratchDir, "%q is not an absolute path", s.scratchDir)
	case len(s.containers) > 1:
		bad(knobScratchDir, "is for one payload container, since all in it is removed before each job, but %s names %d", knobContainers.name, len(s.containers))
	}
	if s.backend == backendAuto {
		s.backend = backendLocal
		if _, err := os.Stat(s.kubernetesDir + "/token"); err == nil && s.podName != "" {
			s.backend = backendPod
		}
	}
	if s.backend == backendLocal {
		s.scratchDir = ""
	}
	return s, problems.ErrorOrNil()
}
