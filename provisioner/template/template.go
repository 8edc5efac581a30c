// Package template reads what pods a site lets the provisioner make: templates,
// each with the sizes in which its pods come, and the slots that they would have.
package template

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"podstarter/classads"
	"podstarter/condor/image"
	"podstarter/provisioner/resources"
)

// Limits of what is read.
const (
	maxFile      = 1 << 20
	maxTemplates = 200
	maxShapes    = 50
	maxSlots     = 200
)

// DefaultEndUnreported is when a pod is ended whose startd never reported, after it
// began. Nobody would end it, and it counts in all limits.
const DefaultEndUnreported = time.Hour

// Template is what the pods of a template have in common.
type Template struct {
	Name string
	// Manifest is the text of a Pod or a Job, in YAML, and the name of its file.
	Manifest, File string
	// Slots is how many payload containers the manifest has for slots. Each is a slot,
	// or, where the slot is Partitionable, a place of its jobs. Spares are further
	// containers, which give no room (POD_STARTER_SPARES of the pods).
	Slots, Spares int
	Partitionable bool
	Shapes        []Shape
	// MaxPods and MaxComing limit its pods, and those that have not reported to the
	// collector; 0 is no limit.
	MaxPods, MaxComing int
	// Rank is evaluated with the slot as MY and the job as TARGET; templates with
	// larger values are preferred. Nil is 0 for all jobs.
	Rank *classads.Expr
	// Version is the CondorVersion of its slots; empty is the oldest that we support.
	Version string
	// EndUnreported is when a pod that runs and has never reported to the collector is
	// ended, after it began; 0 is never.
	EndUnreported time.Duration
	// Token, if it is not nil, says that each pod gets a token of its own.
	Token *Token
	// contained: each job takes a payload container.
	contained bool
	// slot is what the site says of the slots.
	slot *classads.Ad
	// images are the rules of the pods about images; nil if the site gives none.
	images *image.Site
}

// Shape is a size of pods of a template.
type Shape struct {
	Name string
	// Size is what each payload container has, and Pod what all of them have.
	Size, Pod resources.Amount
	MaxPods   int
	Lifetime  time.Duration // how long a pod takes jobs; 0 is for ever
}

// file is the form of a file of the folder.
type file struct {
	Name          string      `json:"name"`
	Manifest      string      `json:"manifest"`
	Slots         int         `json:"slots"`
	Spares        int         `json:"spares"`
	Partitionable bool        `json:"partitionable"`
	Slot          string      `json:"slot"`
	Rank          string      `json:"rank"`
	MaxPods       int         `json:"maxPods"`
	MaxComing     int         `json:"maxComing"`
	Lifetime      string      `json:"lifetime"`
	EndUnreported string      `json:"endUnreported"`
	Images        fileImages  `json:"images"`
	Shapes        []fileShape `json:"shapes"`
	Token         *fileToken  `json:"token"`
}

type fileShape struct {
	Name    string `json:"name"`
	CPUs    int64  `json:"cpus"`
	Memory  string `json:"memory"`
	Disk    string `json:"disk"`
	GPUs    int64  `json:"gpus"`
	MaxPods int    `json:"maxPods"`
}

// fileImages are the rules of the pods about images.
type fileImages struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// Load reads all templates of a folder, which may be a mounted ConfigMap: each
// file whose name ends in .template.yaml is one. All mistakes are reported
// together.
func Load(dir string) ([]Template, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.template.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for templates in %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("looking for templates in %s: no file ends in .template.yaml", dir)
	}
	if len(names) > maxTemplates {
		return nil, fmt.Errorf("looking for templates in %s: there are %d, and at most %d are read", dir, len(names), maxTemplates)
	}
	var all []Template
	var wrong *multierror.Error
	for _, name := range names {
		t, err := load(dir, name)
		if err == nil && slices.ContainsFunc(all, func(o Template) bool { return o.Name == t.Name }) {
			err = fmt.Errorf("another template has the name %s", t.Name)
		}
		if err != nil {
			wrong = multierror.Append(wrong, fmt.Errorf("reading the template %s: %w", name, err))
			continue
		}
		all = append(all, t)
	}
	return all, wrong.ErrorOrNil()
}

func load(dir, name string) (Template, error) {
	text, err := read(name)
	if err != nil {
		return Template{}, err
	}
	var f file
	if err := yaml.UnmarshalStrict([]byte(text), &f); err != nil {
		return Template{}, err
	}
	if f.Manifest == "" || f.Manifest != filepath.Base(f.Manifest) {
		return Template{}, fmt.Errorf("manifest is %q; it must be the name of a file beside the template", f.Manifest)
	}
	manifest, err := read(filepath.Join(dir, f.Manifest))
	if err != nil {
		return Template{}, err
	}
	return f.template(manifest)
}

func read(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s has %d bytes, and at most %d are read", name, info.Size(), maxFile)
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// template checks what a file says.
func (f file) template(manifest string) (Template, error) {
	var wrong *multierror.Error
	note := func(format string, args ...any) { wrong = multierror.Append(wrong, fmt.Errorf(format, args...)) }
	t := Template{Name: f.Name, Manifest: manifest, File: f.Manifest, Slots: max(f.Slots, 1), Spares: f.Spares, Partitionable: f.Partitionable, MaxPods: f.MaxPods, MaxComing: f.MaxComing}
	// Names become values of labels and parts of pods' names.
	if msgs := validation.IsDNS1123Label(f.Name); len(msgs) > 0 || len(f.Name) > 30 {
		note("name is %q; it must have at most 30 lower case letters, digits and hyphens", f.Name)
	}
	if f.Slots < 0 || f.Slots > maxSlots {
		note("slots is %d; a pod has 1 to %d payload containers", f.Slots, maxSlots)
	}
	if f.Spares < 0 || f.Spares > maxSlots {
		note("spares is %d; a pod has 0 to %d of them", f.Spares, maxSlots)
	}
	var err error
	if t.slot, err = classads.ParseOld(f.Slot); err != nil {
		note("slot: %w", err)
	}
	if f.Rank != "" {
		if t.Rank, err = classads.ParseExpr(f.Rank); err != nil {
			note("rank: %w", err)
		}
	}
	if t.images, err = f.Images.site(); err != nil {
		note("images: %w", err)
	}
	life := time.Duration(0)
	if f.Lifetime != "" {
		if life, err = time.ParseDuration(f.Lifetime); err != nil || life <= 0 {
			note("lifetime is %q; it must be a duration such as 8h", f.Lifetime)
		}
	}
	t.EndUnreported = DefaultEndUnreported
	if f.EndUnreported != "" && f.EndUnreported != "never" {
		if t.EndUnreported, err = time.ParseDuration(f.EndUnreported); err != nil || t.EndUnreported < time.Minute {
			note("endUnreported is %q; it must be a duration such as 30m, or never", f.EndUnreported)
		}
	} else if f.EndUnreported != "" {
		t.EndUnreported = 0
	}
	if f.Token != nil {
		if t.Token, err = f.Token.token(life); err != nil {
			wrong = multierror.Append(wrong, err)
		}
	}
	if f.MaxPods < 0 || f.MaxComing < 0 {
		note("maxPods and maxComing must not be negative")
	}
	if len(f.Shapes) == 0 || len(f.Shapes) > maxShapes {
		note("it has %d shapes; there must be one to %d", len(f.Shapes), maxShapes)
	}
	for _, s := range f.Shapes {
		shape, err := s.shape()
		if err == nil && slices.ContainsFunc(t.Shapes, func(o Shape) bool { return o.Name == shape.Name }) {
			err = fmt.Errorf("there is another shape %s", shape.Name)
		}
		if err != nil {
			wrong = multierror.Append(wrong, err)
			continue
		}
		shape.Lifetime = life
		for range t.Slots {
			shape.Pod = shape.Pod.Plus(shape.Size)
		}
		if !t.Partitionable {
			shape.Pod.Payloads = int64(t.Slots)
		}
		t.Shapes = append(t.Shapes, shape)
	}
	return t, wrong.ErrorOrNil()
}

func (s fileShape) shape() (Shape, error) {
	if msgs := validation.IsDNS1123Label(s.Name); len(msgs) > 0 || len(s.Name) > 20 {
		return Shape{}, fmt.Errorf("a shape has the name %q; it must have at most 20 lower case letters, digits and hyphens", s.Name)
	}
	memory, err := quantity(s.Memory, 1<<20)
	if err != nil {
		return Shape{}, fmt.Errorf("memory of the shape %s: %w", s.Name, err)
	}
	disk, err := quantity(s.Disk, 1<<10)
	if err != nil {
		return Shape{}, fmt.Errorf("disk of the shape %s: %w", s.Name, err)
	}
	if s.CPUs <= 0 || s.CPUs > 1<<16 || s.GPUs < 0 || s.GPUs > 1<<10 || s.MaxPods < 0 {
		return Shape{}, fmt.Errorf("the shape %s has %d CPUs, %d GPUs and maxPods %d; the first must be positive, the others not negative", s.Name, s.CPUs, s.GPUs, s.MaxPods)
	}
	return Shape{Name: s.Name, Size: resources.Amount{CPUs: s.CPUs, Memory: memory, Disk: disk, GPUs: s.GPUs}, MaxPods: s.MaxPods}, nil
}

// quantity reads an amount of bytes as Kubernetes writes it, in units.
func quantity(text string, unit int64) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no quantity such as 4Gi: %w", text, err)
	}
	n := q.Value() / unit
	if n <= 0 {
		return 0, fmt.Errorf("%q is too small", text)
	}
	return n, nil
}

// Contain says that jobs of these templates run in payload containers, as they do in
// pods: each takes one of a partitionable slot, and gets no more than that has.
// Containers with GPUs are counted by these (condor_config.d/95-podstarter-slots.conf).
func Contain(templates []Template) {
	for i := range templates {
		t := &templates[i]
		t.contained = t.Partitionable
		for j := range t.Shapes {
			if s := &t.Shapes[j]; t.contained && s.Size.GPUs == 0 {
				s.Pod.Payloads = int64(t.Slots)
			}
		}
	}
}

// Request returns what a job with a request takes of a pod: one of the slots that are
// not partitionable, whatever else these have, and from a partitionable one the startd
// cuts memory in pieces of 128 MiB, unless the site has changed that
// (MODIFY_REQUEST_EXPR_REQUESTMEMORY).
func (t Template) Request(s Shape, request resources.Amount) resources.Amount {
	if !t.Partitionable {
		request.Payloads = 1
		return request
	}
	if t.contained && s.Size.GPUs == 0 {
		request.Payloads = 1
	}
	if whole := s.Pod.Memory; request.Memory <= whole {
		request.Memory = min((request.Memory+piece-1)/piece*piece, whole)
	}
	return request
}

// SlotSize returns the size of a slot of a new pod.
func (t Template) SlotSize(s Shape) resources.Amount {
	if t.Partitionable {
		return s.Pod
	}
	return s.Size
}

// Offering returns a shape whose slots have no more than an amount.
func (t Template) Offering(s Shape, most resources.Amount) Shape {
	if t.Partitionable {
		s.Pod = s.Pod.Least(most)
		s.Size = s.Size.Least(s.Pod)
		return s
	}
	s.Size, s.Pod = s.Size.Least(most), resources.Amount{}
	for range t.Slots {
		s.Pod = s.Pod.Plus(s.Size)
	}
	s.Pod.Payloads = int64(t.Slots)
	return s
}

// piece is what a startd rounds memory up to, in MiB.
const piece = 128

// References returns the attributes of jobs to which the template's expressions
// refer. Jobs that differ in one of them may differ in what they match.
func (t Template) References() []string {
	var names []string
	exprs := []*classads.Expr{t.Rank}
	for _, e := range t.slot.All() {
		exprs = append(exprs, e)
	}
	for _, e := range exprs {
		if e == nil {
			continue
		}
		for ref := range e.References() {
			own := t.slot.Has(ref.Name) || base.Has(ref.Name) || isSize(ref.Name)
			scope := strings.ToUpper(ref.Scope())
			switch {
			case scope == "MY", scope == "" && own, isScope(ref.Name):
			case slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, ref.Name) }):
			default:
				names = append(names, ref.Name)
			}
		}
	}
	if t.images != nil {
		names = append(names, imageAttributes...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isScope reports whether a name stands for an ad.
func isScope(name string) bool {
	return strings.EqualFold(name, "MY") || strings.EqualFold(name, "TARGET")
}
