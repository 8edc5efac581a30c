package settings

import (
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/image"
)

// Settings are the values of all knobs that the starter uses, checked.
type Settings struct {
	Backend string // BackendPod or BackendLocal
	// MissingToken is the file that a pod with a known name lacks, so that BackendAuto became
	// BackendLocal; empty otherwise.
	MissingToken    string
	PodName         string
	PodNamespace    string
	Containers      []string
	Spares          int // so many of Containers are more than the slots need
	GPUs            GPUs
	Pullers         []string
	PayloadUID      int
	ControlDir      string
	ScratchDir      string // empty: EXECUTE
	PrivateDir      string
	Images          *image.Site
	BindTimeout     time.Duration
	Resize          bool
	Reset           string // ResetAlways or ResetImage
	ThrowawayTags   bool
	DigestLifetime  time.Duration
	MaxRest         time.Duration
	AskRegistries   bool     // for the commands of images
	PlainRegistries []string // asked without TLS
	RegistryAuth    string   // file with credentials for them; may be empty
	MaxImageFile    int64    // bytes of an image that is a file
	MaxOutputFiles  int64    // 0: any number
	CommonFiles     CommonFiles
	MaxTasks        int // processes and threads of a job; 0: any number
	KubernetesDir   string
	ProgramPaths    []string
	Programs        Programs
	// AdvertisedImages is how many of the images that ran last are told to the pool.
	AdvertisedImages int
	// EventLog is the form of the lines for the pod's operator: EventLogText, EventLogJSON or
	// EventLogNone.
	EventLog string
	// PodEvents says that failures become events of the pod.
	PodEvents bool
	// MetricsAddress is where metrics are served; empty for nowhere.
	MetricsAddress string

	// Condor are HTCondor's own knobs.
	Condor Condor
	// Language is what the site adds to the ClassAd language.
	Language *classads.Site
	// Config is for knobs that are expressions over a slot and a job.
	Config *config.Config
}

// Values of POD_STARTER_BACKEND, POD_STARTER_RESET and POD_STARTER_EVENT_LOG.
const (
	BackendAuto  = "auto"
	BackendPod   = "pod"
	BackendLocal = "local"

	ResetAlways = "always"
	ResetImage  = "image"

	EventLogText = "text"
	EventLogJSON = "json"
	EventLogNone = "none"
)

const (
	// MaxMaxRest is the largest value of POD_STARTER_MAX_REST.
	MaxMaxRest = 24 * time.Hour
	// MaxAdvertisedImages is the largest value of POD_STARTER_ADVERTISED_IMAGES.
	MaxAdvertisedImages = 21
	// maxUID is the largest id that a payload may have; the kernel keeps the
	// all-ones value for "no change" (setresuid(2)).
	maxUID = 1<<31 - 2
	// maxTasks is the largest limit of processes: what the kernel can number
	// (proc(5), PID_MAX_LIMIT).
	maxTasks = 1 << 22
)

// ForSlots is how many jobs may run at a time: the payload containers that are no spares.
func (s Settings) ForSlots() int { return len(s.Containers) - s.Spares }

// Counted is how many of these a partitionable slot gives out one by one: those with GPUs go
// with their GPUs.
func (s Settings) Counted() int { return s.ForSlots() - len(s.GPUs.Containers) }

// InPod says whether payloads run in a sibling container.
func (s Settings) InPod() bool { return s.Backend == BackendPod }

// BesideStarter is a warning if jobs run in a pilot container because a token is missing; empty
// if not. It begins with the knob.
func (s Settings) BesideStarter() string {
	if s.MissingToken == "" {
		return ""
	}
	return fmt.Sprintf("%s: is auto, and pod %s has no token in %s, so that jobs run in the pilot container, beside HTCondor's daemons and without a choice of image; "+
		"mount the token, or say that this is wanted with %s = %s", KnobBackend.Name, s.PodName, s.MissingToken, KnobBackend.Name, BackendLocal)
}

// SeparateUsers says whether the site's programs run for a job as a user who has
// nothing in the pilot container. A pilot without root has one user, who may read
// the tokens of the pod and of the pool: there no program of a job runs, no URL
// names a file, and the programs of the site are confined.
func (s Settings) SeparateUsers() bool { return !s.InPod() || os.Getuid() == 0 }

// StateDir is where the starters of this machine keep what they know: the private
// directory, or, without root and without a pod, one below HTCondor's LOCK.
func (s Settings) StateDir() string {
	if !s.InPod() && os.Getuid() != 0 { // the directories of /run are root's
		return filepath.Join(s.Condor.Lock, "podstarter")
	}
	return s.PrivateDir
}

// reader reads knobs and keeps the problems that it meets.
type reader struct {
	cfg      *config.Config
	problems *multierror.Error
}

func (r *reader) bad(k Knob, format string, args ...any) {
	r.problem(fmt.Errorf("%s: %s", k.Name, fmt.Sprintf(format, args...)))
}

func (r *reader) problem(err error) {
	if err != nil {
		r.problems = multierror.Append(r.problems, err)
	}
}

func (r *reader) text(k Knob) string {
	value := strings.TrimSpace(r.cfg.String(k.Name, k.fallback()))
	if strings.EqualFold(value, "UNDEFINED") { // what $ENV() of an unset variable gives
		return ""
	}
	return value
}

func (r *reader) list(k Knob) []string {
	return strings.FieldsFunc(r.text(k), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
}

func (r *reader) count(k Knob, least, most int64) int64 {
	def, _ := strconv.ParseInt(k.Default, 10, 64) // the table's own digits
	n, err := r.cfg.Int(k.Name, def)
	switch {
	case err != nil:
		r.problem(err)
	case n < least || n > most:
		r.bad(k, "%d is not between %d and %d", n, least, most)
	}
	return n
}

func (r *reader) seconds(k Knob, least, most int64) time.Duration {
	return time.Duration(r.count(k, least, most)) * time.Second
}

// Read reads all knobs and reports everything that is wrong with them at once,
// one error a knob. With an error no job can be run.
func Read(cfg *config.Config) (Settings, error) {
	site, wrong := cfg.Site()
	cfg = cfg.With(site)
	r := &reader{cfg: cfg}
	s := Settings{
		Backend:         strings.ToLower(r.text(KnobBackend)),
		PodName:         r.text(KnobPodName),
		PodNamespace:    r.text(KnobPodNamespace),
		Containers:      r.list(KnobContainers),
		Spares:          int(r.count(KnobSpares, 0, math.MaxInt32)),
		Pullers:         r.list(KnobPullers),
		ControlDir:      r.text(KnobControlDir),
		PrivateDir:      r.text(KnobPrivateDir),
		ScratchDir:      r.text(KnobScratchDir),
		Reset:           strings.ToLower(r.text(KnobReset)),
		KubernetesDir:   r.text(KnobKubernetesDir),
		ProgramPaths:    r.list(KnobProgramPaths),
		PayloadUID:      int(r.count(KnobPayloadUID, 1, maxUID)),
		RegistryAuth:    r.text(KnobRegistryAuth),
		PlainRegistries: r.list(KnobPlainRegistries),
		BindTimeout:     r.seconds(KnobBindTimeout, 1, 86400),
		DigestLifetime:  r.seconds(KnobDigestLifetime, 0, 30*86400),
		MaxRest:         r.seconds(KnobMaxRest, 0, int64(MaxMaxRest/time.Second)),

		MaxImageFile:     r.count(KnobMaxImageFile, 1, 1<<24) << 20,
		MaxOutputFiles:   r.count(KnobMaxOutputFiles, 0, math.MaxInt64),
		MaxTasks:         int(r.count(KnobMaxProcesses, 0, maxTasks)),
		AdvertisedImages: int(r.count(KnobAdvertisedImages, 0, MaxAdvertisedImages)),
		EventLog:         strings.ToLower(r.text(KnobEventLog)),
		MetricsAddress:   r.text(KnobMetricsAddress),
		Config:           cfg,
		Language:         site,
	}
	var err error
	s.Images, err = image.NewSite(cfg)
	r.problem(err)
	s.ThrowawayTags, err = cfg.Bool(KnobThrowawayTags.Name, true)
	r.problem(err)
	s.PodEvents, err = cfg.Bool(KnobPodEvents.Name, false)
	r.problem(err)
	s.AskRegistries, err = cfg.Bool(KnobAskRegistries.Name, true)
	r.problem(err)
	s.Resize, err = cfg.Bool(KnobResize.Name, false)
	r.problem(err)
	s.Programs = r.programs()
	s.Condor = r.condor()
	s.Condor.Warnings = append(s.Condor.Warnings, wrong...)
	s.CommonFiles = r.commonFiles(&s)
	s.GPUs = r.gpus()
	r.check(&s)
	r.refuse()
	if s.Backend == BackendAuto {
		s.Backend = BackendLocal
		token := filepath.Join(s.KubernetesDir, "token")
		switch _, err := os.Stat(token); {
		case err == nil && s.PodName != "":
			s.Backend = BackendPod
		case s.PodName != "":
			s.MissingToken = token
		}
	}
	if s.Backend == BackendLocal {
		s.ScratchDir, s.GPUs = "", GPUs{}
	}
	s.CommonFiles.offer(&s)
	return s, r.problems.ErrorOrNil()
}

// check looks at values that are words or paths.
func (r *reader) check(s *Settings) {
	switch s.Backend {
	case BackendAuto, BackendPod, BackendLocal:
	default:
		r.bad(KnobBackend, "%q is none of auto, pod, local", s.Backend)
	}
	if s.Reset != ResetAlways && s.Reset != ResetImage {
		r.bad(KnobReset, "%q is neither always nor image", s.Reset)
	}
	switch s.EventLog {
	case EventLogText, EventLogJSON, EventLogNone:
	default:
		r.bad(KnobEventLog, "%q is none of text, json, none", s.EventLog)
	}
	if s.MetricsAddress != "" {
		if _, port, err := net.SplitHostPort(s.MetricsAddress); err != nil {
			r.bad(KnobMetricsAddress, "%q is no address: %v; write :PORT for all addresses of the pod, or ADDRESS:PORT", s.MetricsAddress, err)
		} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			r.bad(KnobMetricsAddress, "%q has no port between 1 and 65535", s.MetricsAddress)
		}
	}
	if len(s.Containers) == 0 {
		r.bad(KnobContainers, "names no container; give the name of the payload container, such as %q", KnobContainers.Default)
	}
	if n := len(s.Containers); n > 0 && s.Spares >= n {
		r.bad(KnobSpares, "%d spares leave none of the containers for slots: %s names %d, so it must be at most %d", s.Spares, KnobContainers.Name, n, n-1)
	}
	r.checkGPUs(s)
	if s.Images != nil && s.Images.HasCarrier() && os.Getuid() != 0 {
		r.bad(KnobCarrierImage, "a pilot without root cannot write an image's files into a container; leave it empty, or use a pilot with root")
	}
	for _, path := range s.ProgramPaths {
		r.absolute(KnobProgramPaths, path)
	}
	r.absolute(KnobControlDir, s.ControlDir)
	r.absolute(KnobPrivateDir, s.PrivateDir)
	r.absolute(KnobKubernetesDir, s.KubernetesDir)
	switch {
	case s.ScratchDir == "":
	case !strings.HasPrefix(s.ScratchDir, "/"):
		r.absolute(KnobScratchDir, s.ScratchDir)
	case len(s.Containers) > 1:
		r.bad(KnobScratchDir, "is for one payload container, since all in it is removed before each job, but %s names %d", KnobContainers.Name, len(s.Containers))
	}
}

func (r *reader) absolute(k Knob, path string) {
	if !strings.HasPrefix(path, "/") {
		r.bad(k, "%q is not an absolute path", path)
	}
}
