package template

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"podstarter/classads"
)

// Seen is what a slot of a pod advertised, as a slot of a pod that begins now would
// have it.
type Seen struct {
	// Shape is the name of the pod's shape.
	Shape string
	// Digest is another one if something has changed that jobs may notice.
	Digest string
	// References are the attributes of jobs to which START and what belongs to it
	// refer.
	References []string
	// At is when the slot was asked.
	At time.Time
	// Old: it was so long ago that its START counts no longer. A START that refused
	// all jobs once would keep away the pods that could say something else.
	Old  bool
	ad   *classads.Ad
	gpus []string // attributes of the slot that describe a GPU each
}

// Bounds of what a slot may say.
const (
	maxSeen       = 32 << 10 // bytes that are kept
	maxReferences = 50
)

// changing are attributes of a slot's ad that say something of one slot at one
// moment. A new pod has its own: those of beginning are about when it began, and the
// slot's own Requirements may refer to them.
var changing = []string{
	"Activity", "AddressV1", "AssignedGPUs", "AuthenticatedIdentity", "AvailableGPUs", "ClientMachine", "ConcurrencyLimits",
	"CurrentRank", "DaemonStartTime", "EnteredCurrentActivity", "EnteredCurrentState", "GlobalJobId", "ImageSize",
	"JobId", "JobStart", "K8SPodName", "LastHeardFrom", "Machine", "MyAddress", "MyCurrentTime", "Name", "NumDynamicSlots", "NumPids",
	"PodStarterHealthy", "PodStarterImages", "PodStarterOfflineReason", "PodStarterOfflineUntil", "PodStarterRestReason", "PodStarterRestUntil",
	"PublicNetworkIpAddr", "RemoteAutoregroup", "RemoteGroup", "RemoteNegotiatingGroup", "RemoteOwner", "RemoteScheddName", "RemoteUser",
	"State", "UpdateSequenceNumber", "UpdatesHistory", "UpdatesLost", "UpdatesSequenced", "UpdatesTotal", "WorkingCM",
}

var beginning = []string{"DaemonStartTime", "EnteredCurrentActivity", "EnteredCurrentState", "LastHeardFrom", "MyCurrentTime"}

// figures begin the names of attributes by which a slot tells what it measures. They
// are dropped unless the slot's own Requirements refer to them: then they are those of
// a machine on which nothing runs.
var figures = []string{
	"Child", "Clock", "Condor_", "CondorLoad", "ConsoleIdle", "CpuBusy", "CpusUsage", "DaemonCoreDutyCycle", "DaemonLastReconfig", "JobBusy", "JobDuration", "JobPreempt",
	"JobRank", "JobStarts", "JobUserPrio", "KeyboardIdle", "LastBenchmark", "LastUpdate", "LoadAvg", "Monitor", "Recent", "SelfMonitor", "Statistics", "TotalClaim", "TotalCondorLoad", "TotalJob", "TotalLoad",
	"TotalTime", "MyCurrent", "ActivationRequests", "ClaimRequests",
}

// unique are attributes that each job has for itself. Grouping jobs by them would
// make a group of each job.
var unique = []string{"ClusterId", "GlobalJobId", "JobId", "ProcId", "QDate", "Iwd", "Out", "Err", "In", "UserLog", "Args", "Arguments", "Cmd", "Env", "Environment", "EnteredCurrentStatus", "AutoClusterId", "ServerTime"}

// ErrEnds is returned for a slot that takes no more jobs, because its pod ends or is
// drained (HTCondor src/condor_startd.V6/Reqexp.cpp: Resource::publish_requirements).
// Where START refuses all jobs, the Requirements are still an expression.
var ErrEnds = errors.New("the slot takes no more jobs")

// Learn takes over what the slot of a pod advertises. An ad that is of no use, or
// would do harm, is an error.
func Learn(ad *classads.Ad, shape string, now time.Time) (*Seen, error) {
	real := ad.Public()
	requirements, ok := real.Lookup(classads.AttrRequirements)
	if !ok {
		return nil, errors.New("the slot has no Requirements")
	}
	if v, fixed := requirements.Literal(); fixed {
		if b, ok := v.Bool(); !ok || !b {
			return nil, fmt.Errorf("%w: its Requirements are %s", ErrEnds, v)
		}
	}
	references, err := real.ExternalReferences(requirements, true)
	if err != nil {
		return nil, err
	}
	own, err := real.InternalReferences(requirements)
	if err != nil {
		return nil, err
	}
	s := &Seen{Shape: shape, At: now, ad: real}
	for _, name := range references {
		if scope, rest, ok := strings.Cut(name, "."); ok && isScope(scope) {
			name = rest
		}
		switch {
		case isScope(name), strings.Contains(name, "."), base.Has(name), isSize(name):
		case slices.ContainsFunc(unique, func(u string) bool { return strings.EqualFold(u, name) }):
			return nil, fmt.Errorf("the slot's Requirements refer to %s, which each job has for itself", name)
		default:
			s.References = append(s.References, name)
		}
	}
	if len(s.References) > maxReferences {
		return nil, fmt.Errorf("the slot's Requirements refer to %d attributes of the job, and at most %d are asked for", len(s.References), maxReferences)
	}
	s.asNew(own)
	text := real.FormatSorted()
	if len(text) > maxSeen {
		return nil, fmt.Errorf("the slot advertises %d bytes beside what it measures, and at most %d are kept", len(text), maxSeen)
	}
	sum := sha256.Sum256([]byte(text))
	s.Digest = hex.EncodeToString(sum[:8])
	return s, nil
}

// asNew makes the ad that of a pod which begins when the ad is evaluated. own are the
// attributes to which the slot's Requirements refer.
func (s *Seen) asNew(own []string) {
	began, said := s.ad.IntOr("DaemonStartTime", 0), s.ad.IntOr("MyCurrentTime", s.At.Unix())
	resources := strings.FieldsFunc(s.ad.StringOr("MachineResources", ""), func(r rune) bool { return r == ' ' || r == ',' })
	for _, name := range changing {
		s.ad.Delete(name)
	}
	for _, name := range own {
		switch {
		case contains(beginning, name):
			s.ad.Insert(name, after(0))
		case strings.EqualFold(name, "NumDynamicSlots"):
			s.ad.SetInt(name, 0)
		}
	}
	// What jobs have of a resource of the site's own is free in a new pod.
	for _, name := range resources {
		if total, ok := s.ad.Lookup("TotalSlot" + name); ok && !isSize(name) {
			s.ad.Insert(name, total)
		}
	}
	s.ad.Insert("State", classads.StringExpr("Unclaimed"))
	s.ad.Insert("Activity", classads.StringExpr("Idle"))
	change := map[string]*classads.Expr{} // nil is to be dropped
	for name, e := range s.ad.All() {
		if _, ok := e.Ad(); ok && len(name) > len(gpuPrefix) && strings.EqualFold(name[:len(gpuPrefix)], gpuPrefix) {
			s.gpus = append(s.gpus, name)
			continue
		}
		if slices.ContainsFunc(figures, func(f string) bool { return len(name) >= len(f) && strings.EqualFold(name[:len(f)], f) }) {
			if change[name] = nil; contains(own, name) {
				change[name] = idle(name, e, said)
			}
			continue
		}
		// A time of the pod's life, such as its end, is as much later in a new one.
		v, fixed := e.Literal()
		if n, ok := v.Int(); fixed && ok && began > 0 && n >= began-life && n <= began+life {
			change[name] = after(n - began)
		}
	}
	for name, e := range change {
		if s.ad.Delete(name); e != nil {
			s.ad.Insert(name, e)
		}
	}
}

func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(o string) bool { return strings.EqualFold(o, name) })
}

// after is so many seconds after a pod begins that begins now. A number would pass if
// no pod comes for long, and then none could come any more.
func after(seconds int64) *classads.Expr { return must("time() + %d", seconds) }

// idle is what a machine measures on which nothing runs. said is when the slot said
// what it measures: its clock goes on.
func idle(name string, e *classads.Expr, said int64) *classads.Expr {
	v, fixed := e.Literal()
	n, integer := v.Int()
	_, number := v.Number()
	_, truth := v.Bool()
	switch {
	case fixed && integer && strings.EqualFold(name, "ClockMin"):
		return must("(time() / 60 + %d) %% 1440", ((n-said/60)%1440+1440)%1440)
	case strings.EqualFold(name, "ClockDay"), strings.HasSuffix(strings.ToLower(name), "idle"):
		return e
	case fixed && truth:
		return classads.BoolExpr(false)
	case fixed && number:
		return must("%d", 0)
	}
	return e
}

// must is an expression that can be read.
func must(format string, numbers ...any) *classads.Expr {
	e, err := classads.ParseExpr(fmt.Sprintf(format, numbers...))
	if err != nil {
		panic(err) // all of it is ours but numbers
	}
	return e
}

// gpuPrefix begins the names of attributes that describe a GPU. AvailableGPUs lists
// those that no job has, and jobs with require_gpus count among them.
const gpuPrefix = "GPUs_"

// available returns the list of a number of free GPUs, or nil if the slot describes
// none. All GPUs of a template are alike, so that those that were seen stand for
// others.
func (s *Seen) available(number int64) *classads.Expr {
	if len(s.gpus) == 0 {
		return nil
	}
	var list []*classads.Expr
	for i := range int(number) {
		e, err := classads.ParseExpr(s.gpus[i%len(s.gpus)])
		if err != nil {
			return nil
		}
		list = append(list, e)
	}
	return classads.ListExpr(list...)
}

// life bounds how far from the beginning of a pod its times are, in seconds.
const life = 366 * 24 * 3600
