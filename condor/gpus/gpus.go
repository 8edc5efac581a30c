// Package gpus reads what HTCondor's condor_gpu_discovery prints, and prints the same for
// a startd, about the devices of several containers. A startd takes it from the program
// that MACHINE_RESOURCE_INVENTORY_GPUs names (condor_startd.V6/ResAttributes.cpp:
// init_machine_resource_from_ad): a list of names in DetectedGPUs, and for each name a
// nested ad of properties, which has the name as its id.
package gpus

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Bounds of what is read.
const (
	// MaxDevices is how many devices a container may have.
	MaxDevices    = 64
	maxProperties = 64
	maxString     = 1024
	maxID         = 80
)

// Names of attributes.
const (
	attrDetected = "DetectedGPUs"
	attrCommon   = "Common"
	attrID       = "id"
	// AttrEach is how many devices each container with devices has; it is not there if
	// they have different numbers.
	AttrEach = "PodStarterGPUsEach"
	// AttrProblem says why devices are missing.
	AttrProblem = "PodStarterGPUsProblem"
)

// Device is one device as the startd gives it to slots.
type Device struct {
	// ID is its name in AssignedGPUs: GPU-<beginning of its UUID>, or a number behind
	// letters, as in CUDA0.
	ID string `json:"id"`
	// Properties are what jobs may require of it; never nil.
	Properties *classads.Ad `json:"properties"`
}

// Parse reads the output of condor_gpu_discovery -properties, of 23.9 or later. The text
// comes out of a container: only names of devices and properties that are plain values are
// taken, and any other line is passed over, as what a dynamic loader says. No expression is
// evaluated, which could take long. It is an error if there is no list of devices. An empty
// list is none.
func Parse(output string) ([]Device, error) {
	ad := classads.NewAd()
	for line := range strings.Lines(output) {
		if name, e, err := classads.ParseOldLine(strings.TrimSpace(line)); err == nil && ad.Len() < MaxDevices+maxProperties {
			ad.Insert(name, e)
		}
	}
	if !ad.Has(attrDetected) {
		return nil, fmt.Errorf("it printed no %s, but: %.200q", attrDetected, output)
	}
	var common *classads.Ad
	nested := make(map[string]*classads.Ad)
	for name, e := range ad.All() {
		props, ok := e.Ad()
		switch {
		case !ok:
		case strings.EqualFold(name, attrCommon):
			common = props
		case text(props, attrID) != "":
			nested[text(props, attrID)] = props
		default:
			nested[name] = props
		}
	}
	var found []Device
	for _, id := range config.Split(text(ad, attrDetected)) {
		if !isID(id) {
			return nil, fmt.Errorf("it named a device %.80q", id)
		}
		if len(found) == MaxDevices {
			return nil, fmt.Errorf("it named more than %d devices", MaxDevices)
		}
		d := Device{ID: id, Properties: classads.NewAd()}
		for _, from := range []*classads.Ad{common, nested[id]} {
			if from != nil {
				copyPlain(d.Properties, from)
			}
		}
		found = append(found, d)
	}
	return found, nil
}

// text is an attribute that is a string; empty if it is anything else.
func text(ad *classads.Ad, name string) string {
	e, _ := ad.Lookup(name)
	v, _ := e.Literal()
	s, _ := v.Str()
	return s
}

// copyPlain copies plain values, and neither expressions nor the device's name.
func copyPlain(to, from *classads.Ad) {
	for name, e := range from.All() {
		if to.Len() >= maxProperties || strings.EqualFold(name, attrID) || !isName(name) {
			continue
		}
		v, ok := e.Literal()
		if s, isString := v.Str(); !ok || isString && !isPlain(s) {
			continue
		}
		switch v.Kind() {
		case classads.String, classads.Int, classads.Real, classads.Bool:
			to.Insert(name, e)
		}
	}
}

// isPlain says whether a string has no control character, and nothing that the two syntaxes
// of ads write differently.
func isPlain(s string) bool {
	return len(s) <= maxString && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }) < 0
}

func isName(s string) bool {
	return s != "" && len(s) <= maxID && !(s[0] >= '0' && s[0] <= '9') && strings.IndexFunc(s, func(r rune) bool { return r != '_' && !isAlphanumeric(r) }) < 0
}

// isID says whether a name can stand in a list of them, and in a variable.
func isID(s string) bool {
	return s != "" && len(s) <= maxID && strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("-_/:.", r) && !isAlphanumeric(r) }) < 0
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// Inventory is what a startd is told about the devices of several containers, which have
// names. problem, if not empty, says why some are missing.
//
// A device that several containers share is listed once for each, as
// condor_gpu_discovery -repeat does; then it must have the same properties in all of them.
func Inventory(containers []Container, problem string) (string, error) {
	ad := classads.NewAd()
	var ids []string
	var problems *multierror.Error
	seen := make(map[string]*classads.Ad)
	for _, c := range containers {
		ids = append(ids, c.IDs()...)
		for _, d := range c.Devices {
			if known := seen[d.ID]; known != nil {
				if !known.Equal(d.Properties) {
					problems = multierror.Append(problems, fmt.Errorf("%s is the name of different devices, one of them in container %s: name them by their UUIDs (GPU_DISCOVERY_EXTRA = -uuid)", d.ID, c.Name))
				}
				continue
			}
			seen[d.ID] = d.Properties
		}
	}
	if err := problems.ErrorOrNil(); err != nil {
		return "", err
	}
	if len(ids) == 0 {
		ad.SetInt(attrDetected, 0)
	} else {
		ad.SetString(attrDetected, strings.Join(ids, ", "))
	}
	if n := Each(containers); n > 0 {
		ad.SetInt(AttrEach, int64(n))
	}
	if problem != "" {
		ad.SetString(AttrProblem, plainText(problem))
	}
	for i, id := range slices.Sorted(maps.Keys(seen)) {
		device := seen[id].Clone()
		device.SetString(attrID, id)
		ad.SetAd(fmt.Sprintf("GPU_%d", i), device)
	}
	return ad.FormatOld(), nil
}

// plainText is a message as a string of an ad may be.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < ' ' || r == 0x7f:
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), maxString)], "")
}

// Container is a container and its devices.
type Container struct {
	Name    string   `json:"name"`
	Devices []Device `json:"devices"`
}

// IDs are the names of its devices.
func (c Container) IDs() []string {
	ids := make([]string, len(c.Devices))
	for i, d := range c.Devices {
		ids[i] = d.ID
	}
	return ids
}

// Each is how many devices each of the containers that have any has; 0 if they have
// different numbers, or if there is none.
func Each(containers []Container) int {
	n := 0
	for _, c := range containers {
		switch {
		case len(c.Devices) == 0:
		case n == 0:
			n = len(c.Devices)
		case n != len(c.Devices):
			return 0
		}
	}
	return n
}

// Holders are the containers that have exactly the devices of AssignedGPUs, a list of names.
// With an empty list, they are those without devices.
func Holders(containers []Container, assigned string) ([]string, error) {
	want := config.Split(assigned)
	slices.Sort(want)
	var found, all []string
	for _, c := range containers {
		has := c.IDs()
		all = append(all, c.Name+" has "+orNone(strings.Join(has, ",")))
		slices.Sort(has)
		if slices.Equal(has, want) {
			found = append(found, c.Name)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the slot's GPUs are %s, but no payload container has exactly these: %s", orNone(assigned), strings.Join(all, "; "))
	}
	return found, nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// NewProperties is an empty ad for the properties of a device.
func NewProperties() *classads.Ad { return classads.NewAd() }
