package podfailures

// Class is what follows from a verdict.
type Class string

// The classes.
const (
	// User failures hold the job: its user has to change something.
	User Class = "user"
	// Again failures are retried for a limited time, and then the job goes back to the queue.
	Again Class = "here again"
	// Elsewhere failures give the job back to the queue.
	Elsewhere Class = "elsewhere"
	// Pilot failures do too; no other job would do better in this pod.
	Pilot Class = "pilot is sick"
	// Vacated jobs had the soft kill that their user asked for, and are in the queue again.
	Vacated Class = "vacated"
	// Survived means that the job ran as if nothing had happened.
	Survived Class = "survived"
)

// Row is one failure and its required outcome.
type Row struct {
	Name string
	// Cause is how the test makes it; Injected says that the API server's answers are changed.
	Cause    string
	Injected bool
	// Guest rows are about the node, and run only where it is a guest.
	Guest bool
	Class Class
	// Ending is what the event log says, as Outcome.String puts it.
	Ending string
	// Say are words that the event must have for the user.
	Says []string
	// Unjudged failures do not concern a container: the starter itself decides what becomes of the
	// job.
	Unjudged bool
	// Logged are words that the starter's log must have.
	Logged []string
}

const (
	requeued = "requeued 1021/0" // CONTAINER_ERROR
	vacated  = "evicted 1013/0"  // STARTD_SHUTDOWN

	// If the kubelet gives the pod a second, which is too short on a busy node, only its shadow can tell of the job's end.
	vacatedOrLost = vacated + " or lost"

	heldForImage = "held 35/6"
)

// blamed are words for the user of an image in which the wrapper does not work.
var blamed = []string{"With the pod's default image it works", "must have no link"}

// hostile is the cause of a row with a hostile image, after which the pod still works.
func hostile(kind string) string {
	return "an image: " + Hostile[kind].What + "; the pod runs the next job"
}

// Rows is the table of failures.
var Rows = []Row{
	// What the registry answers about the image.
	{Name: "unknown name", Cause: "registry: 404", Class: User, Ending: "held 35/2", Says: []string{"does not exist in its registry", "check the name and the tag"}},
	{Name: "unknown tag", Cause: "registry: 404", Class: User, Ending: "held 35/2", Says: []string{"does not exist in its registry", "check the name and the tag"}},
	{Name: "unauthorized", Cause: "registry: 401", Class: User, Ending: "held 35/3", Says: []string{"does not allow pulling", "401 Unauthorized"}},
	{Name: "denied", Cause: "registry: 403", Class: User, Ending: "held 35/3", Says: []string{"does not allow pulling", "403 Forbidden"}},
	{Name: "other architecture", Cause: "an index without a variant for the node", Class: User, Ending: "held 35/4", Says: []string{"has no variant for linux/"}},
	{Name: "invalid reference", Cause: "UPPER/Case:::tag", Class: User, Ending: "held 35/1", Says: []string{"is not valid", "registry/name:tag"}, Unjudged: true},
	{Name: "site policy", Cause: "POD_STARTER_IMAGES_DENIED = */not-here/*", Class: User, Ending: "held 35/21", Says: []string{"is not allowed here", "POD_STARTER_IMAGES_DENIED"}, Unjudged: true},
	{Name: "layer is no archive", Cause: "an image whose layer is text", Class: User, Ending: "held 35/6", Says: []string{"cannot be unpacked"}},
	{Name: "signature", Cause: "SignatureValidationFailed", Injected: true, Class: User, Ending: "held 35/5", Says: []string{"does not have a signature"}},
	{Name: "rate limit", Cause: "registry: 429", Class: Elsewhere, Ending: requeued, Says: []string{"too many requests", "use a mirror"}},
	{Name: "registry not trusted", Cause: "a registry with a self-signed certificate", Class: Elsewhere, Ending: requeued, Says: []string{"does not trust the registry", "x509"}},
	{Name: "registry's name does not resolve", Cause: "a name below .invalid", Class: Again, Ending: requeued, Says: []string{"cannot be resolved", "check its spelling"}},
	{Name: "registry refuses connections", Cause: "a port on which nothing listens", Class: Again, Ending: requeued, Says: []string{"cannot be reached", "connection refused"}},
	{Name: "registry fails", Cause: "registry: 500", Class: Again, Ending: requeued, Says: []string{"out of order"}},
	{Name: "registry down", Cause: "registry: 503", Class: Again, Ending: requeued, Says: []string{"out of order"}},
	{Name: "registry unavailable", Cause: "RegistryUnavailable", Injected: true, Class: Again, Ending: requeued, Says: []string{"out of order"}},
	{Name: "connection breaks off in a layer", Cause: "a registry that closes the connection half way", Class: Again, Ending: requeued, Says: []string{"cannot be reached"}},
	{Name: "slow pull", Cause: "a layer that takes 8 s", Class: Survived, Ending: "exit 0", Logged: []string{"Binding: container payload: waiting for", "status: "}},
	{Name: "hung pull", Cause: "a registry that accepts connections and never answers; POD_STARTER_BIND_TIMEOUT = 5", Class: Elsewhere, Ending: requeued, Says: []string{"did not come up", "in time"}},

	// What the node makes of it.
	{Name: "disk full", Cause: "a full file system where containerd stores pulled images", Class: Elsewhere, Ending: requeued, Says: []string{"disk is full", "no space left on device", "default image can be started"}},
	{Name: "never pull", Cause: "ErrImageNeverPull", Injected: true, Class: Pilot, Ending: requeued, Says: []string{"imagePullPolicy is Never"}},
	{Name: "container cannot be configured", Cause: "CreateContainerConfigError; POD_STARTER_BIND_TIMEOUT = 20", Injected: true, Class: Again, Ending: requeued, Says: []string{"could not be started"}},
	{Name: "container cannot be created", Cause: "CreateContainerError; POD_STARTER_BIND_TIMEOUT = 20", Injected: true, Class: Again, Ending: requeued, Says: []string{"could not be started"}},
	{Name: "file in the place of a mount", Cause: "an image with a file /var/lib/condor", Class: User, Ending: "held 35/6", Says: []string{"where the pod mounts a directory", "must leave that path free"}},
	{Name: "link on the way to the control directory", Cause: hostile("run-link"), Class: User, Ending: heldForImage, Says: blamed},
	{Name: "link to /proc", Cause: hostile("run-proc"), Class: User, Ending: heldForImage, Says: blamed},
	{Name: "closed directory on the way to the control directory", Cause: hostile("run-closed"), Class: User, Ending: heldForImage, Says: blamed},
	{Name: "volume of the image's over the control directory", Cause: hostile("volume"), Class: User, Ending: heldForImage, Says: blamed},
	{Name: "volume of the image's over the wrapper", Cause: hostile("volume-link"), Class: User, Ending: heldForImage, Says: blamed},
	{Name: "variable too long", Cause: hostile("variable"), Class: User, Ending: heldForImage, Says: blamed},
	{Name: "variable that ends the wrapper", Cause: hostile("go-variable"), Class: User, Ending: heldForImage, Says: blamed},
	{Name: "wrapper missing", Cause: "the wrapper's file is renamed in a new pod", Class: Pilot, Ending: requeued, Says: []string{"wrapper cannot be run", "default image fails, too"}},
	{Name: "wrapper lost", Cause: "the wrapper's file is renamed in a pod that has run jobs", Class: Pilot, Ending: requeued, Says: []string{"wrapper cannot be run", "default image fails, too"}},
	{Name: "wrapper crashes", Cause: "another program in the wrapper's place that ends at once (CrashLoopBackOff)", Class: Pilot, Ending: requeued, Says: []string{"ends as soon as it starts"}},
	{Name: "wrapper silent", Cause: "another program in the wrapper's place that does nothing", Class: Pilot, Ending: requeued, Says: []string{"does not announce itself"}},
	{Name: "program missing in the image", Cause: "executable = /no/such/program", Class: User, Ending: "held 6/2", Says: []string{"/no/such/program", "No such file or directory"}, Unjudged: true},
	{Name: "program of another architecture", Cause: "an image for s390x that does not say so", Class: User, Ending: "held 6/8", Says: []string{"/program", "Exec format error"}, Unjudged: true},

	// What the cluster answers to the patch.
	{Name: "admission policy", Cause: "a ValidatingAdmissionPolicy", Class: Elsewhere, Ending: requeued, Says: []string{"admission control does not let this pod run the image", "ValidatingAdmissionPolicy"}},
	{Name: "admission webhook", Cause: "a webhook that denies", Class: Elsewhere, Ending: requeued, Says: []string{"admission control does not let this pod run the image", "not here, said the webhook"}},
	{Name: "admission webhook away", Cause: "a webhook on a port on which nothing listens; POD_STARTER_BIND_TIMEOUT = 4", Class: Elsewhere, Ending: requeued, Says: []string{"webhook did not answer"}},
	{Name: "forbidden", Cause: "the token of another service account", Class: Pilot, Ending: requeued, Says: []string{"lacks permission on its own pod", "get, watch and patch"}},
	{Name: "token not accepted", Cause: "a token that nobody issued", Class: Pilot, Ending: requeued, Says: []string{"does not accept the pilot's token"}},
	{Name: "patch refused", Cause: "422", Injected: true, Class: Pilot, Ending: requeued, Says: []string{"refuses to put image"}},
	{Name: "pod unknown", Cause: "404", Injected: true, Class: Pilot, Ending: requeued, Says: []string{"does not exist under the configured name"}},
	{Name: "patch conflicts", Cause: "409, twice", Injected: true, Class: Survived, Ending: "exit 0"},
	{Name: "API server overloaded", Cause: "429 and 503", Injected: true, Class: Survived, Ending: "exit 0"},
	{Name: "API server away for seconds", Cause: "every connection is closed for 3 s", Class: Survived, Ending: "exit 0"},
	{Name: "API server away for longer", Cause: "every connection is closed; POD_STARTER_BIND_TIMEOUT = 3", Class: Elsewhere, Ending: requeued, Says: []string{"API server cannot be used at the moment"}},
	{Name: "API server away under a running job", Cause: "every connection is closed until the job has ended", Class: Survived, Ending: "exit 7"},
	{Name: "watch expired", Cause: "410 Gone, and an image that does not exist", Injected: true, Class: User, Ending: "held 35/2", Says: []string{"does not exist in its registry"}},
	{Name: "watch closed", Cause: "after each event, and an image that does not exist", Injected: true, Class: User, Ending: "held 35/2", Says: []string{"does not exist in its registry"}},
	{Name: "watch forbidden", Cause: "403 for watch only, and an image that does not exist; POD_STARTER_BIND_TIMEOUT = 4", Injected: true, Class: Elsewhere, Ending: requeued,
		Says: []string{"did not come up"}, Logged: []string{"may not watch the pod"}},

	// What happens to the container under a running job.
	{Name: "wrapper killed", Cause: "SIGKILL", Class: Elsewhere, Ending: requeued, Says: []string{"ended while the job ran", "exit code 137"}},
	{Name: "container told to stop", Cause: "SIGTERM to the wrapper", Class: Vacated, Ending: vacated, Says: []string{"being taken down"}},
	{Name: "out of memory, job alone", Cause: "a limit of 256 MiB and a job that uses 600 MiB", Class: User, Ending: "held 34/102", Says: []string{"memory"}, Unjudged: true},
	{Name: "out of memory, whole container", Cause: "SIGKILL to the wrapper; OOMKilled", Injected: true, Class: User, Ending: "held 34/102", Says: []string{"request more memory"}},
	{Name: "evicted under a running job", Cause: "SIGKILL to the wrapper; Evicted", Injected: true, Class: Pilot, Ending: requeued, Says: []string{"evicted from its node", "low on resource"}},

	// What happens to the pod.
	{Name: "evicted while binding", Cause: "Evicted", Injected: true, Class: Pilot, Ending: requeued, Says: []string{"evicted from its node", "low on resource"}},
	{Name: "node shuts down", Cause: "Terminated", Injected: true, Class: Pilot, Ending: requeued, Says: []string{"takes the pod down"}},
	{Name: "preempted while binding", Cause: "DisruptionTarget", Injected: true, Class: Pilot, Ending: requeued, Says: []string{"comes to its end", "PreemptionByScheduler"}},
	{Name: "pod deleted", Cause: "under a running job", Class: Vacated, Ending: vacated, Says: []string{"PodDeleted"}},
	{Name: "pod deleted where jobs may retire", Cause: "MAXJOBRETIREMENTTIME = 3600", Class: Vacated, Ending: vacated, Says: []string{"PodDeleted"}},
	{Name: "pod evicted by the API", Cause: "its eviction is requested under a running job", Class: Vacated, Ending: vacated, Says: []string{"EvictionByEvictionAPI"}},
	{Name: "active deadline", Cause: "activeDeadlineSeconds = 1 under a running job", Class: Vacated, Ending: vacated, Says: []string{"activeDeadlineSeconds"}},
	{Name: "pod deleted while binding", Cause: "during a pull that hangs", Class: Pilot, Ending: "evicted or requeued", Says: []string{}, Unjudged: true},

	// What the kubelet does to it for the sake of the node.
	{Name: "volume over its limit", Cause: "a job writes 400 MiB into the volume of sandboxes, which has sizeLimit: 256Mi", Guest: true, Class: Vacated, Ending: vacatedOrLost},
	{Name: "node low on memory", Cause: "evictionHard memory.available, and a job that takes the rest", Guest: true, Class: Vacated, Ending: vacatedOrLost},
	{Name: "node low on disk", Cause: "evictionHard nodefs.available, and a job that takes the rest", Guest: true, Class: Vacated, Ending: vacatedOrLost},
	{Name: "preempted by the kubelet", Cause: "a pod of system-node-critical that needs its CPUs", Guest: true, Class: Vacated, Ending: vacated},
}
