// Package settings reads the provisioner's configuration file.
package settings

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"podstarter/classads"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/batch"
)

// Settings is what a site says of its provisioner.
type Settings struct {
	// Name begins the names of all pods, and tells several provisioners of one
	// namespace apart.
	Name string
	// Namespace is where pods are made; empty is the provisioner's own.
	Namespace string
	// Collector and Schedds are of the pool; empty are that of HTCondor's
	// configuration, and all of the pool.
	Collector string
	Schedds   []demand.Source
	// Flocking is how many schedds of other pools are asked at most, if none are named.
	Flocking int
	// Filter selects jobs, or is nil.
	Filter *classads.Expr
	// Runtime says of a job how many seconds it runs at most, or is nil.
	Runtime      *classads.Expr
	Interval     time.Duration
	ReportWithin time.Duration
	BeginWithin  time.Duration
	GPU          string
	// Batch is how a batch system is spoken to; nil stands for Kubernetes.
	Batch  *batch.Config
	Limits decision.Limits
	Policy decision.Policy
	Lease  Lease
	// OfflineAds: units are made for matches of offline ads, in place of idle jobs.
	OfflineAds bool
	Offline    Offline
}

// Lease says which of several provisioners of one name makes pods.
type Lease struct {
	// Off: this is the only one, or something else sees to that.
	Off bool
	// Name is that of the Lease.
	Name string
	// Duration is how long the others wait for one that is silent.
	Duration time.Duration
}

// file is the form of the file.
type file struct {
	Name         string      `json:"name"`
	Namespace    string      `json:"namespace"`
	Collector    string      `json:"collector"`
	Schedds      []schedd    `json:"schedds"`
	Flocking     flocking    `json:"flocking"`
	Filter       string      `json:"filter"`
	Runtime      string      `json:"runtime"`
	Interval     string      `json:"interval"`
	ReportWithin string      `json:"reportWithin"`
	BeginWithin  string      `json:"beginWithin"`
	GPU          string      `json:"gpuResource"`
	Platform     string      `json:"platform"`
	Batch        *batch.File `json:"batch"`
	Limits       struct {
		Pods     int `json:"pods"`
		Coming   int `json:"coming"`
		PerUser  int `json:"perUser"`
		PerRound int `json:"perRound"`
	} `json:"limits"`
	Policy struct {
		Patience string `json:"patience"`
		Horizon  string `json:"horizon"`
		Start    string `json:"start"`
		Settle   string `json:"settle"`
		Ramp     struct {
			First int     `json:"first"`
			Part  float64 `json:"part"`
		} `json:"ramp"`
	} `json:"policy"`
	Lease struct {
		Off      bool   `json:"disabled"` // off is a boolean in YAML
		Name     string `json:"name"`
		Duration string `json:"duration"`
	} `json:"lease"`
	Mode    string      `json:"mode"`
	Offline fileOffline `json:"offline"`
}

const maxFile = 1 << 20

// Read reads a file. All mistakes are reported together.
func Read(name string) (Settings, error) {
	info, err := os.Stat(name)
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("it has %d bytes, and at most %d are read", info.Size(), maxFile)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return Settings{}, fmt.Errorf("reading the configuration %s: %w", name, err)
	}
	s, err := parse(text)
	if err != nil {
		return Settings{}, fmt.Errorf("reading the configuration %s: %w", name, err)
	}
	return s, nil
}

func parse(text []byte) (Settings, error) {
	var f file
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return Settings{}, err
	}
	var wrong *multierror.Error
	s := Settings{
		Name: f.Name, Namespace: f.Namespace, Collector: f.Collector, GPU: f.GPU,
		Limits: decision.Limits{Pods: f.Limits.Pods, Coming: f.Limits.Coming, PerUser: f.Limits.PerUser, PerRound: f.Limits.PerRound},
	}
	if msgs := validation.IsDNS1123Label(f.Name); len(msgs) > 0 || len(f.Name) > 20 {
		wrong = multierror.Append(wrong, fmt.Errorf("name is %q; it must have at most 20 lower case letters, digits and hyphens", f.Name))
	}
	expression := func(key, text string) *classads.Expr {
		if text == "" {
			return nil
		}
		e, err := classads.ParseExpr(text)
		if err != nil {
			wrong = multierror.Append(wrong, fmt.Errorf("%s: %w", key, err))
			return nil
		}
		return e
	}
	s.Filter, s.Runtime = expression("filter", f.Filter), expression("runtime", f.Runtime)
	var err error
	if s.Schedds, s.Flocking, err = f.schedds(); err != nil {
		wrong = multierror.Append(wrong, err)
	}
	if s.Batch, err = f.system(); err != nil {
		wrong = multierror.Append(wrong, err)
	}
	duration := func(key, text string, normal, least, most time.Duration) time.Duration {
		if text == "" {
			return normal
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			wrong = multierror.Append(wrong, fmt.Errorf("%s is %q; it must be a duration from %s to %s", key, text, least, most))
		}
		return d
	}
	s.Interval = duration("interval", f.Interval, time.Minute, 10*time.Second, time.Hour)
	s.ReportWithin = duration("reportWithin", f.ReportWithin, 10*time.Minute, time.Minute, 24*time.Hour)
	s.BeginWithin = duration("beginWithin", f.BeginWithin, platform.DefaultBeginWithin, time.Minute, 24*time.Hour)
	normal := decision.DefaultPolicy
	s.Policy = decision.Policy{
		Patience: duration("policy.patience", f.Policy.Patience, normal.Patience, 0, 24*time.Hour),
		Horizon:  duration("policy.horizon", f.Policy.Horizon, normal.Horizon, 0, 24*time.Hour),
		Start:    duration("policy.start", f.Policy.Start, normal.Start, 0, time.Hour),
		Settle:   duration("policy.settle", f.Policy.Settle, normal.Settle, time.Minute, 24*time.Hour),
		Ramp:     decision.Ramp{First: f.Policy.Ramp.First, Part: f.Policy.Ramp.Part},
	}
	s.Lease = Lease{Off: f.Lease.Off, Name: f.Lease.Name, Duration: duration("lease.duration", f.Lease.Duration, 15*time.Second, 5*time.Second, 5*time.Minute)}
	if s.Lease.Name == "" {
		s.Lease.Name = "podstarter-provisioner-" + s.Name
	}
	if msgs := validation.IsDNS1123Subdomain(s.Lease.Name); len(msgs) > 0 {
		wrong = multierror.Append(wrong, fmt.Errorf("lease.name is %q: %s", s.Lease.Name, strings.Join(msgs, "; ")))
	}
	if s.Lease.Duration%time.Second != 0 {
		wrong = multierror.Append(wrong, fmt.Errorf("lease.duration is %q; a Lease counts in whole seconds", f.Lease.Duration))
	}
	if r := s.Policy.Ramp; r.First < 0 || !(r.Part >= 0 && r.Part <= 1) {
		wrong = multierror.Append(wrong, fmt.Errorf("policy.ramp has first %d and part %v; first must not be negative, and part is from 0 to 1", r.First, r.Part))
	}
	l := s.Limits
	if min(l.Pods, l.Coming, l.PerUser, l.PerRound) < 0 {
		wrong = multierror.Append(wrong, fmt.Errorf("limits must not be negative; 0 is no limit"))
	}
	wrong = multierror.Append(wrong, s.offline(f, duration))
	return s, wrong.ErrorOrNil()
}

// References returns the attributes of jobs to which Runtime refers.
func (s Settings) References() []string {
	var names []string
	if s.Runtime != nil {
		for ref := range s.Runtime.References() {
			names = append(names, ref.Name)
		}
	}
	return names
}

// system reads what is said of a batch system, if the platform is one.
func (f file) system() (*batch.Config, error) {
	switch f.Platform {
	case "", "kubernetes":
		if f.Batch != nil {
			return nil, fmt.Errorf("batch is set, and the platform is not; write platform: batch, or take batch out")
		}
		return nil, nil
	case "batch":
	default:
		return nil, fmt.Errorf("platform is %q; it must be kubernetes or batch", f.Platform)
	}
	var wrong *multierror.Error
	if f.Namespace != "" || f.GPU != "" || f.Lease.Off || f.Lease.Name != "" || f.Lease.Duration != "" {
		wrong = multierror.Append(wrong, fmt.Errorf("namespace, gpuResource or lease is set; they are of the platform kubernetes, so take them out"))
	}
	if f.Batch == nil {
		return nil, multierror.Append(wrong, fmt.Errorf("batch is missing; it must have the commands of the batch system"))
	}
	c, err := f.Batch.Parse()
	return c, multierror.Append(wrong, err).ErrorOrNil()
}
