package settings

import (
	"os"
	"strings"

	"podstarter/condor/image"
)

// Knob is one line of the table from which docs/admin/knobs.md and the snippet in
// condor_config.d are written, so that neither can drift from the code.
type Knob struct {
	Name     string
	Default  string // as an admin would write it; empty has a meaning of its own
	Sentence string
}

// fallback is the value of a knob that the configuration does not set. A
// default that comes from the environment is written as a configuration file
// would write it, $ENV(NAME:), which is empty for an unset variable.
func (k Knob) fallback() string {
	if name, ok := strings.CutPrefix(k.Default, "$ENV("); ok {
		return os.Getenv(strings.TrimSuffix(name, ":)"))
	}
	return k.Default
}

// The knobs that are ours. Those of HTCondor that the starter honours keep
// HTCondor's names, defaults and meaning.
var (
	KnobBackend = Knob{"POD_STARTER_BACKEND", "auto",
		"Where payloads run: `pod` (a sibling container of this pod), `local` (on the machine itself, in images by its Apptainer; see docs/admin/plain.md), or `auto`: `pod` when a service account token and a pod name are there."}
	KnobPodName = Knob{"POD_STARTER_POD_NAME", "$ENV(POD_NAME:)",
		"Name of the pod that the pilot runs in; the downward API's `metadata.name`."}
	KnobPodNamespace = Knob{"POD_STARTER_POD_NAMESPACE", "$ENV(POD_NAMESPACE:)",
		"Namespace of that pod; when empty, the one that the service account's directory names."}
	KnobContainers = Knob{"POD_STARTER_CONTAINERS", "payload",
		"Names of the payload containers of the pod. Jobs of the first run as POD_STARTER_PAYLOAD_UID, those of the second as that plus one, and so on."}
	KnobSpares = Knob{"POD_STARTER_SPARES", "0",
		"How many of POD_STARTER_CONTAINERS are spares: more than the slots need, so that a job finds a container that is fresh and has its image already, while used ones are made anew. No more jobs run at a time than there are other containers. See docs/admin/size.md."}
	KnobGPUContainers = Knob{"POD_STARTER_GPU_CONTAINERS", "",
		"Those of POD_STARTER_CONTAINERS that have GPUs. When the startd starts, a program inside them says which. A job of a slot with GPUs runs in a container that has exactly these, and a job of any other slot in a container without. See docs/admin/gpus.md."}
	KnobGPUDiscovery = Knob{"POD_STARTER_GPU_DISCOVERY", "",
		"That program, a file of the pilot container. It gets the arguments in STARTD_DETECT_GPUS and prints what condor_gpu_discovery prints. If empty, it is condor_gpu_discovery in LIBEXEC. Where it finds nothing, or cannot run because the image lacks its libraries, the GPUs are those of the device nodes."}
	KnobPullers = Knob{"POD_STARTER_PULLERS", "",
		"Pods on the pilot's node that get images onto it, so that no job waits for the pull of another: POD, whose container is called `puller`, or POD/CONTAINER. If empty, payload containers pull their images themselves. See docs/admin/size.md."}
	KnobPayloadUID = Knob{"POD_STARTER_PAYLOAD_UID", "10001",
		"User and group id of the first payload container's jobs; those of each further container, a spare as well, have the next. No other process of the pod may have one of them."}
	KnobControlDir = Knob{"POD_STARTER_CONTROL_DIR", "/run/podstarter/control",
		"Directory that only root may enter, on a volume that pilot and payload containers share. It has the wrapper's sockets and exit records."}
	KnobScratchDir = Knob{"POD_STARTER_SCRATCH_DIR", "",
		"Directory of sandboxes for a pilot without root, in a volume that it shares with its one payload container. It replaces EXECUTE, which only the pilot uses. Everything in it is removed before each job."}
	KnobPrivateDir = Knob{"POD_STARTER_PRIVATE_DIR", "/run/podstarter/private",
		"Directory that only the pilot container has, for leases of payload containers and digests of images."}
	KnobDefaultImage = Knob{image.KnobDefault, "",
		"Image of jobs that name none: a reference, or an expression over slot (MY) and job (TARGET) that gives one. If it is empty or undefined, the image with which the pod was created. See docs/admin/images.md."}
	KnobImagePolicy = Knob{image.KnobPolicy, string(image.PolicyOptional),
		"Which jobs run here. `never`: jobs that name no image; `required`: only jobs that name one; `optional`: all. Or an expression over slot (MY) and job (TARGET) that gives one of these words."}
	KnobImageMap = Knob{image.KnobMap, "",
		"File with rules that turn what jobs name (SingularityImage, paths, .sif files) into images of a registry, in the syntax of HTCondor's map files. Its rules come before the built-in ones for CVMFS."}
	KnobImagesAllowed = Knob{image.KnobAllowed, "",
		"Images that jobs may use: patterns over registry/repository:tag, with * and ?. If empty, all. Jobs with other images are held."}
	KnobImagesDenied = Knob{image.KnobDenied, "",
		"Images that jobs may not use, in the same form. It wins over POD_STARTER_IMAGES_ALLOWED."}
	KnobImageMirrors = Knob{image.KnobMirrors, "",
		"Mirrors to pull images from: a list of FROM=TO, such as docker.io=mirror.example.org/dockerhub."}
	KnobCarrierImage = Knob{image.KnobCarrier, "",
		"Image of a registry that is all but empty. If set, jobs may bring .sif files and directories as images: their files are copied into a container with this image. It takes a pilot with root. See docs/admin/images.md."}
	KnobImagePaths = Knob{image.KnobPaths, "",
		"Directories of the pilot container, such as /cvmfs, in which jobs may name such images by their path. Everything in them that the jobs' users may read, jobs can get."}
	KnobUnknownImages = Knob{image.KnobUnknown, "hold",
		"What becomes of a job whose image neither the map nor the rest of the site knows, such as `oras://…`, or a path that is not here: `hold`, or `requeue` for sites of a federation, where another site may know it."}
	KnobMaxImageFile = Knob{"POD_STARTER_MAX_IMAGE_FILE", "20480",
		"How many MiB the files of such an image may have. Jobs with larger ones are held. The files are in the payload container and count for its ephemeral storage."}
	KnobResize = Knob{"POD_STARTER_RESIZE", "False",
		"Whether a payload container gets the CPUs and the memory that its job's slot was provisioned with, and its own limits back afterwards (Kubernetes 1.33 or later). It needs deploy/components/resize. If not, or where the manifest states no limit, limits stay as they are. See docs/admin/size.md."}
	KnobBindTimeout = Knob{"POD_STARTER_BIND_TIMEOUT", "900",
		"Seconds that an image may take to be pulled and started before the job goes back to the queue."}
	KnobReset = Knob{"POD_STARTER_RESET", "always",
		"When a payload container is made anew: `always` gives each job a fresh one, `image` keeps it for the next job of the same owner in the same image. With `image`, jobs that follow each other closely start in milliseconds instead of a second, and find the files that the last job left in the container, except those in /tmp and /var/tmp. If a process of the last job may be alive, the container is not used again. A tag is looked up again after POD_STARTER_DIGEST_LIFETIME."}
	KnobThrowawayTags = Knob{"POD_STARTER_THROWAWAY_TAGS", "True",
		"Write a known image as `name:<once>@<digest>`, so that the kubelet does not take an image that comes back for a crash loop. Set False where an image policy refuses such references."}
	KnobDigestLifetime = Knob{"POD_STARTER_DIGEST_LIFETIME", "600",
		"Seconds for which a tag is assumed to point to the same digest; 0 asks the registry each time."}
	KnobAskRegistries = Knob{"POD_STARTER_ASK_REGISTRIES", "True",
		"Whether the starter asks an image's registry for ENTRYPOINT and CMD, for jobs that run by docker's rules. If not, or where the pilot container does not reach the registry, the job's own program runs without the image's entry point, and a job without a program is held. See docs/admin/images.md."}
	KnobRegistryAuth = Knob{"POD_STARTER_REGISTRY_AUTH", "",
		"File of the pilot container with credentials for registries, as `docker login` and a Secret of the type kubernetes.io/dockerconfigjson have them. Only the starter's questions use them, not the kubelet's pulls. Jobs must not be able to read it."}
	KnobPlainRegistries = Knob{"POD_STARTER_PLAIN_REGISTRIES", "",
		"Registries of the site, HOST or HOST:PORT, that the starter asks by HTTP without TLS. One on a loopback address is asked only if it is listed: any job of the pod could answer there."}
	KnobMaxRest = Knob{"POD_STARTER_MAX_REST", "300",
		"Longest time in seconds for which a slot takes no jobs after a job failed without fault of its own. A pod in which no job can run rests up to six times as long. 0: slots never rest."}
	KnobAdvertisedImages = Knob{"POD_STARTER_ADVERTISED_IMAGES", "20",
		"How many of the images that ran here last are advertised to the pool as `PodStarterImages`; 0 for none."}
	KnobEventLog = Knob{"POD_STARTER_EVENT_LOG", "text",
		"Lines on the standard output of the pilot container, which `kubectl logs` shows: one for each job that begins, gets its image and ends, and for what happens to the pod. `text` (KEY=VALUE), `json`, or `none`. See docs/operator/logs.md."}
	KnobMetricsAddress = Knob{"POD_STARTER_METRICS_ADDRESS", "",
		"Address at which `condor_pod_metrics` serves metrics for Prometheus, such as `:9464`; empty for none. The job shares the pod's network and can read them. See docs/operator/logs.md."}
	KnobPodEvents = Knob{"POD_STARTER_POD_EVENTS", "False",
		"Whether failures and the pod's health become Kubernetes events of the pod, which `kubectl describe pod` shows: three at once and then one a minute at most. It needs a permission that `deploy/components/events` gives. See docs/operator/logs.md."}
	KnobEndPod = Knob{"POD_STARTER_END_POD", "False",
		"Whether the entrypoint of the pilot image ends the pod when condor_master has ended by itself without an error. If not, a pod with `restartPolicy: Always` starts its pilot anew."}
	KnobSetup = Knob{"POD_STARTER_SETUP", "",
		"Program that the starter runs in the pilot container before each job, as the starter's own user, with `setup` as its argument and the job's ad on its standard input. If it fails, the job goes back to the queue. See docs/admin/hooks.md."}
	KnobTeardown = Knob{"POD_STARTER_TEARDOWN", "",
		"The same after each job, with `teardown`. A failure is only logged."}
	KnobContainerSetup = Knob{"POD_STARTER_CONTAINER_SETUP", "",
		"Program of the pilot container that runs inside the payload container before each job, in its image, with `setup` as its argument."}
	KnobContainerTeardown = Knob{"POD_STARTER_CONTAINER_TEARDOWN", "",
		"The same after each job, when all its processes are dead, with `teardown`."}
	KnobContainerScriptsAs = Knob{"POD_STARTER_CONTAINER_SCRIPTS_AS", ScriptsAsPayload,
		"The user of the programs inside the payload container: `payload` (the job's user), `root` (container-root without capabilities; only programs that execute nothing of the image, statically linked ones), or `root-in-image` (scripts too; their shell is the image's, so trust every allowed image like the pilot's own)."}
	KnobScriptTimeout = Knob{"POD_STARTER_SCRIPT_TIMEOUT", "60",
		"Seconds that each of these programs may take before it is killed."}
	KnobWrapImages = Knob{"POD_STARTER_WRAP_IMAGES", "True",
		"Whether USER_JOB_WRAPPER also starts jobs that have an image, inside it; or an expression over slot (MY) and job (TARGET). It always starts jobs without an image."}
	KnobMaxOutputFiles = Knob{"POD_STARTER_MAX_OUTPUT_FILES", "10000000",
		"How many files and directories a job may return in one transfer. With more, it is held, and only its standard output and error are returned. 0: any number."}
	KnobProgramPaths = Knob{"POD_STARTER_PROGRAM_PATHS", "",
		"For pilots without root: files and directories of the pilot container that the site's plugins and hooks may read and execute for a job, besides the sandbox and what the image has in /usr, /etc, /opt, /bin, /sbin and /lib*. Name what is mounted, such as a volume with plugins, and never a directory with secrets. See docs/admin/modes.md."}
	KnobCommonFiles = Knob{"POD_STARTER_COMMON_FILES", "auto",
		"Whether data slots fetch the common input files of a cluster once for all its jobs, and how a job of the same owner gets them: `auto` (sharing the volume's blocks, else with root as hard links that it cannot write to, else as copies), `copy` (without hard links), or `never`. It takes partitionable slots and HTCondor 25.10. See docs/admin/transfer.md."}
	KnobMaxProcesses = Knob{"POD_STARTER_MAX_PROCESSES", "2048",
		"How many processes and threads a job may have at a time. With more it is killed and held. The pod's own limit (the kubelet's podPidsLimit) should leave room for this many in each payload container, and for 500 more. 0: any number. See docs/admin/usage.md."}
	KnobKubernetesDir = Knob{"POD_STARTER_KUBERNETES_DIR", "/var/run/secrets/kubernetes.io/serviceaccount",
		"Directory with the pilot's `token`, `ca.crt` and `namespace`."}
)

// Knobs are all of ours, in the order of the page.
var Knobs = []Knob{
	KnobBackend, KnobPodName, KnobPodNamespace, KnobContainers, KnobSpares, KnobGPUContainers, KnobGPUDiscovery, KnobPullers, KnobPayloadUID, KnobControlDir, KnobScratchDir, KnobPrivateDir,
	KnobDefaultImage, KnobImagePolicy, KnobImageMap, KnobImagesAllowed, KnobImagesDenied, KnobImageMirrors, KnobCarrierImage, KnobImagePaths, KnobUnknownImages, KnobMaxImageFile, KnobBindTimeout, KnobResize, KnobReset, KnobThrowawayTags, KnobDigestLifetime, KnobAskRegistries, KnobRegistryAuth, KnobPlainRegistries,
	KnobMaxRest, KnobAdvertisedImages, KnobEventLog, KnobMetricsAddress, KnobPodEvents, KnobEndPod,
	KnobSetup, KnobTeardown, KnobContainerSetup, KnobContainerTeardown, KnobContainerScriptsAs, KnobScriptTimeout, KnobWrapImages,
	KnobMaxOutputFiles, KnobCommonFiles, KnobProgramPaths, KnobMaxProcesses,
	KnobKubernetesDir,
}
