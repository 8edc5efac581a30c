// Package devices says which graphics processors a payload container has. It asks no
// library, which an image need not have: it goes by what the kubelet and the container
// runtime put there, the device nodes in /dev and the variables of the container, and by
// what the kernel's drivers say in /proc and /sys. Those directories are mounts of the
// runtime; no image can change them.
//
// The wrapper's program does this inside the container, under the name [Program], and
// prints a [Report].
package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Program is the name (argv[0]) under which the wrapper's program prints what devices it
// sees, and ends.
const Program = "condor_pod_devices"

// Makers of devices.
const (
	NVIDIA = "nvidia"
	AMD    = "amd"
	Intel  = "intel"
)

// MaxDevices is how many devices a container may have; no machine has as many.
const MaxDevices = 64

// maxText bounds each string of a report in bytes.
const maxText = 256

// maxReport bounds a report in bytes: what a program's captured output may have.
const maxReport = 32 << 10

// Report is what a container has, in the order of the device nodes.
type Report struct {
	Devices []Device `json:"devices"`
}

// Device is one graphics processor, or a slice of one. Empty fields are not known.
type Device struct {
	Maker string `json:"maker"`
	// UUID as NVIDIA's and AMD's own tools write it: GPU-..., or MIG-... for a slice.
	UUID string `json:"uuid,omitempty"`
	// Name of the model.
	Name string `json:"name,omitempty"`
	// Bus is the address on the PCI bus, 0000:3b:00.0.
	Bus string `json:"bus,omitempty"`
	// Driver is the driver's version.
	Driver string `json:"driver,omitempty"`
	// MemoryBytes is the memory of the device; 0 if it is not known.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Denied is why the payload's user cannot use the device's nodes.
	Denied string `json:"denied,omitempty"`
}

// Decode reads a report. Its bytes come out of a container, so it accepts no more than a
// container can have, and only printable text.
func Decode(data []byte) (Report, error) {
	var r Report
	if len(data) > maxReport {
		return r, fmt.Errorf("a report about devices has %d bytes, and may have %d", len(data), maxReport)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Report{}, fmt.Errorf("decode a report about devices: %w", err)
	}
	if len(r.Devices) > MaxDevices {
		return Report{}, fmt.Errorf("a report names %d devices, and may name %d", len(r.Devices), MaxDevices)
	}
	for _, d := range r.Devices {
		switch d.Maker {
		case NVIDIA, AMD, Intel:
		default:
			return Report{}, fmt.Errorf("a report names a device of %.40q", d.Maker)
		}
		if d.UUID != "" && !isUUID(d.UUID) {
			return Report{}, fmt.Errorf("a report names a device %.80q", d.UUID)
		}
		if d.MemoryBytes < 0 {
			return Report{}, errors.New("a report names a device with less than no memory")
		}
		for _, text := range []string{d.Name, d.Bus, d.Driver, d.Denied} {
			if !isText(text) {
				return Report{}, fmt.Errorf("a report has the text %.80q", text)
			}
		}
	}
	return r, nil
}

func (r Report) write(out io.Writer) error {
	r.Devices = r.Devices[:min(len(r.Devices), MaxDevices)]
	return json.NewEncoder(out).Encode(r)
}

func isText(s string) bool {
	return len(s) <= maxText && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// text is s as a report may have it.
func text(s string) string {
	s = strings.TrimSpace(s)
	if s = s[:min(len(s), maxText)]; !isText(s) {
		return ""
	}
	return s
}

// isUUID recognises GPU-<hexadecimal digits and dashes>, and MIG- in the same way, or as
// drivers before 470 write it, MIG-GPU-<...>/<number>/<number>.
func isUUID(s string) bool {
	kind, rest, _ := strings.Cut(s, "-")
	if kind != "GPU" && kind != "MIG" || rest == "" || len(s) > 80 {
		return false
	}
	if kind == "MIG" {
		rest = strings.TrimPrefix(rest, "GPU-")
	}
	return strings.IndexFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f') && (r < 'A' || r > 'F') && r != '-' && (kind != "MIG" || r != '/')
	}) < 0
}
