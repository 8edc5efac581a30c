package devices

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// visible is the variable by which NVIDIA's device plugin tells NVIDIA's container runtime
// which devices the container gets.
const visible = "NVIDIA_VISIBLE_DEVICES"

// maxFile bounds what is read of a file of /proc or /sys.
const maxFile = 64 << 10

// system is where to look.
type system struct {
	root string                  // "/", except in tests
	vars map[string]string       // of the container
	node func(path string) bool  // whether it is a character device
	use  func(path string) error // whether this user can read and write it
}

// Main prints the report of this container, and gives the exit code.
func Main(out, problems io.Writer, environment []string) int {
	s := system{root: "/", vars: make(map[string]string), node: isCharacterDevice, use: canUse}
	for _, v := range environment {
		if name, value, ok := strings.Cut(v, "="); ok {
			s.vars[name] = value
		}
	}
	if err := s.look().write(out); err != nil {
		fmt.Fprintf(problems, "%s: print the report: %v\n", Program, err)
		return 1
	}
	return 0
}

func isCharacterDevice(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR
}

func canUse(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS)
}

func (s system) look() Report {
	return Report{Devices: slices.Concat(s.nvidia(), s.amd(), s.intel())}
}

// nodes are the numbers at the end of the device nodes whose names begin so, in order.
func (s system) nodes(prefix string) []int {
	dir, base := filepath.Split(prefix)
	entries, _ := os.ReadDir(filepath.Join(s.root, dir))
	var found []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), base)
		n, err := strconv.Atoi(digits)
		if ok && err == nil && n >= 0 && strconv.Itoa(n) == digits && s.node(filepath.Join(s.root, dir, e.Name())) {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found[:min(len(found), MaxDevices)]
}

// read gives the text of a file; empty if it cannot be read.
func (s system) read(path string) string {
	f, err := os.Open(filepath.Join(s.root, path))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// list gives the paths of a directory's entries.
func (s system) list(dir string) []string {
	entries, _ := os.ReadDir(filepath.Join(s.root, dir))
	var paths []string
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

// denied says why this user cannot use a node; empty if it can.
func (s system) denied(path string) string {
	err := s.use(filepath.Join(s.root, path))
	if err == nil {
		return ""
	}
	return text(fmt.Sprintf("%s: %v", path, err))
}

// fields are the lines "name<separator>value" of a text.
func fields(lines, separator string) map[string]string {
	found := make(map[string]string)
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), separator); ok {
			found[strings.TrimSpace(name)] = text(value)
		}
	}
	return found
}

// nvidia goes by the device nodes, /dev/nvidia<minor>. The driver's files in /proc say which
// is which; with NVIDIA's older runtime they name only the container's devices, otherwise all
// of the node. Slices (MIG), and devices of a driver that hides its identities, are known
// only by the variable.
func (s system) nvidia() []Device {
	minors := s.nodes("/dev/nvidia")
	if len(minors) == 0 {
		return nil
	}
	driver := s.nvidiaDriver()
	byMinor, byUUID := make(map[int]Device), make(map[string]Device)
	for _, dir := range s.list("/proc/driver/nvidia/gpus") {
		f := fields(s.read(filepath.Join(dir, "information")), ":")
		minor, err := strconv.Atoi(f["Device Minor"])
		if err != nil {
			continue
		}
		d := Device{Maker: NVIDIA, Name: f["Model"], Bus: f["Bus Location"], Driver: driver, Denied: s.denied(fmt.Sprintf("/dev/nvidia%d", minor))}
		if isUUID(f["GPU UUID"]) { // a driver that has not looked yet writes question marks
			d.UUID = f["GPU UUID"]
			byUUID[d.UUID] = d
		}
		byMinor[minor] = d
	}
	if named := s.named(); len(named) > 0 {
		var found []Device
		for _, uuid := range named {
			d, known := byUUID[uuid]
			if !known {
				d = Device{Maker: NVIDIA, UUID: uuid, Driver: driver}
			}
			found = append(found, d)
		}
		return found
	}
	var found []Device
	for _, minor := range minors {
		d, known := byMinor[minor]
		if !known {
			d = Device{Maker: NVIDIA, Driver: driver, Denied: s.denied(fmt.Sprintf("/dev/nvidia%d", minor))}
		}
		found = append(found, d)
	}
	return found
}

// named are the devices that the variable names by their identities. It may also say all, a
// number, void, or a directory.
func (s system) named() []string {
	var found []string
	for _, word := range strings.Split(s.vars[visible], ",") {
		if word = strings.TrimSpace(word); isUUID(word) && len(found) < MaxDevices {
			found = append(found, word)
		}
	}
	return found
}

// nvidiaDriver is the word behind "Kernel Module" in /proc/driver/nvidia/version.
func (s system) nvidiaDriver() string {
	_, rest, _ := strings.Cut(s.read("/proc/driver/nvidia/version"), "Kernel Module")
	for _, word := range strings.Fields(rest) {
		if word[0] >= '0' && word[0] <= '9' {
			return text(word)
		}
	}
	return ""
}

// pciIntel is Intel's number as a maker of PCI devices.
const pciIntel = "0x8086"

// amd goes by the nodes of the kernel's direct rendering manager, of which the container has
// only its own, and takes from the compute driver's topology, which names all devices of the
// machine, what belongs to them.
func (s system) amd() []Device {
	if !s.node(filepath.Join(s.root, "/dev/kfd")) {
		return nil
	}
	topology := make(map[int]Device)
	for _, dir := range s.list("/sys/class/kfd/kfd/topology/nodes") {
		f := fields(s.read(filepath.Join(dir, "properties")), " ")
		minor, err := strconv.Atoi(f["drm_render_minor"])
		if err != nil || minor <= 0 {
			continue // a processor of the machine
		}
		d := Device{Maker: AMD, Name: text(s.read(filepath.Join(dir, "name"))), MemoryBytes: s.memoryOf(dir)}
		if id, err := strconv.ParseUint(f["unique_id"], 10, 64); err == nil && id != 0 {
			d.UUID = fmt.Sprintf("GPU-%016x", id)
		}
		topology[minor] = d
	}
	var found []Device
	for _, minor := range s.nodes("/dev/dri/renderD") {
		d, known := topology[minor]
		if !known {
			continue
		}
		d.Bus = s.pci(minor)["PCI_SLOT_NAME"]
		if d.Denied = s.denied("/dev/kfd"); d.Denied == "" {
			d.Denied = s.denied(fmt.Sprintf("/dev/dri/renderD%d", minor))
		}
		found = append(found, d)
	}
	return found
}

// memoryOf adds up the frame buffer's parts, whose heap_type is 1 or 2
// (linux/drivers/gpu/drm/amd/amdkfd/kfd_crat.h).
func (s system) memoryOf(dir string) (total int64) {
	for _, bank := range s.list(filepath.Join(dir, "mem_banks")) {
		f := fields(s.read(filepath.Join(bank, "properties")), " ")
		size, err := strconv.ParseInt(f["size_in_bytes"], 10, 64)
		if kind := f["heap_type"]; err == nil && size > 0 && (kind == "1" || kind == "2") {
			total += size
		}
	}
	return max(total, 0)
}

// intel goes by the same nodes; the driver gives devices no identity.
func (s system) intel() []Device {
	var found []Device
	for _, minor := range s.nodes("/dev/dri/renderD") {
		if strings.TrimSpace(s.read(fmt.Sprintf("/sys/class/drm/renderD%d/device/vendor", minor))) != pciIntel {
			continue
		}
		found = append(found, Device{Maker: Intel, Bus: s.pci(minor)["PCI_SLOT_NAME"], Name: "Intel " + s.pci(minor)["PCI_ID"],
			Denied: s.denied(fmt.Sprintf("/dev/dri/renderD%d", minor))})
	}
	return found
}

// pci is what the kernel says of the device behind a node.
func (s system) pci(minor int) map[string]string {
	return fields(s.read(fmt.Sprintf("/sys/class/drm/renderD%d/device/uevent", minor)), "=")
}
