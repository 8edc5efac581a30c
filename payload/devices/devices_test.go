package devices

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is a container's files; device nodes are files without contents.
type machine map[string]string

func (m machine) system(t *testing.T, vars map[string]string) system {
	t.Helper()
	root := t.TempDir()
	for name, contents := range m {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return system{root: root, vars: vars,
		node: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.Mode().IsRegular() && info.Size() == 0
		},
		use: func(path string) error {
			if strings.HasSuffix(path, "D129") {
				return fs.ErrPermission
			}
			return nil
		}}
}

func information(uuid, minor string) string {
	return "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 32\nGPU UUID: \t " + uuid + "\nBus Location: \t 0000:3b:00.0\nDevice Minor: \t " + minor + "\n"
}

const (
	uuid0 = "GPU-01234567-0123-0123-0123-0123456789ab"
	uuid1 = "GPU-89abcdef-0123-0123-0123-0123456789ab"
	slice = "MIG-11111111-2222-3333-4444-555555555555"
)

func TestLook(t *testing.T) {
	const driver = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build\nGCC version:\n"
	nvidia := machine{
		"/dev/nvidia1": "", "/dev/nvidiactl": "", "/dev/nvidia-uvm": "", "/dev/nvidia10": "no device", "/dev/nvidia01": "",
		"/proc/driver/nvidia/version":                       driver,
		"/proc/driver/nvidia/gpus/0000:3a:00.0/information": information(uuid0, "0"),
		"/proc/driver/nvidia/gpus/0000:3b:00.0/information": information(uuid1, "1"),
	}
	card := Device{Maker: NVIDIA, UUID: uuid1, Name: "NVIDIA A100-SXM4-40GB", Bus: "0000:3b:00.0", Driver: "570.133.20"}
	hidden := machine{"/dev/nvidia0": "", "/proc/driver/nvidia/gpus/0000:3a:00.0/information": information("GPU-????????-????-????-????-????????????", "0")}
	for name, tt := range map[string]struct {
		machine machine
		visible string
		want    []Device
	}{
		"none":                       {machine{"/dev/null": ""}, "", nil},
		"variable without a device":  {machine{"/dev/null": ""}, uuid0, nil},
		"by the node":                {nvidia, "void", []Device{card}},
		"by the variable":            {nvidia, uuid1, []Device{card}},
		"an image's variable":        {nvidia, "all", []Device{card}},
		"numbers":                    {nvidia, "0,1", []Device{card}},
		"a directory":                {nvidia, "/var/run/nvidia-container-devices", []Device{card}},
		"slice":                      {nvidia, slice, []Device{{Maker: NVIDIA, UUID: slice, Driver: "570.133.20"}}},
		"unknown to the driver":      {machine{"/dev/nvidia0": ""}, uuid0 + ", " + uuid1, []Device{{Maker: NVIDIA, UUID: uuid0}, {Maker: NVIDIA, UUID: uuid1}}},
		"hidden":                     {hidden, "", []Device{{Maker: NVIDIA, Name: "NVIDIA A100-SXM4-40GB", Bus: "0000:3b:00.0"}}},
		"no identity":                {machine{"/dev/nvidia0": "", "/dev/nvidia3": ""}, "", []Device{{Maker: NVIDIA}, {Maker: NVIDIA}}},
		"hostile variable":           {machine{"/dev/nvidia0": ""}, "GPU-$(reboot),GPU-\n,MIG-", []Device{{Maker: NVIDIA}}},
		"hostile files of the image": {machine{"/dev/nvidia0": "", "/proc/driver/nvidia/gpus/x/information": "Device Minor: -1\nGPU UUID: " + strings.Repeat("x", 1<<20)}, "", []Device{{Maker: NVIDIA}}},
		"amd": {machine{
			"/dev/kfd": "", "/dev/dri/renderD129": "",
			"/sys/class/kfd/kfd/topology/nodes/0/properties":             "cpu_cores_count 64\ndrm_render_minor 0\n",
			"/sys/class/kfd/kfd/topology/nodes/1/properties":             "drm_render_minor 128\nunique_id 1\n",
			"/sys/class/kfd/kfd/topology/nodes/2/properties":             "drm_render_minor 129\nunique_id 255\n",
			"/sys/class/kfd/kfd/topology/nodes/2/name":                   "gfx90a\n",
			"/sys/class/kfd/kfd/topology/nodes/2/mem_banks/0/properties": "heap_type 1\nsize_in_bytes 68702699520\n",
			"/sys/class/kfd/kfd/topology/nodes/2/mem_banks/1/properties": "heap_type 0\nsize_in_bytes 1024\n",
			"/sys/class/drm/renderD129/device/uevent":                    "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c1:00.0\n",
		}, "", []Device{{Maker: AMD, UUID: "GPU-00000000000000ff", Name: "gfx90a", Bus: "0000:c1:00.0", MemoryBytes: 68702699520, Denied: "/dev/dri/renderD129: permission denied"}}},
		"intel": {machine{
			"/dev/dri/renderD128": "", "/sys/class/drm/renderD128/device/vendor": "0x8086\n", "/sys/class/drm/renderD129/device/vendor": "0x8086\n",
			"/sys/class/drm/renderD128/device/uevent": "DRIVER=xe\nPCI_ID=8086:0BDA\nPCI_SLOT_NAME=0000:29:00.0\n",
		}, "", []Device{{Maker: Intel, Name: "Intel 8086:0BDA", Bus: "0000:29:00.0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.machine.system(t, map[string]string{visible: tt.visible}).look()
			if diff := cmp.Diff(tt.want, got.Devices); diff != "" {
				t.Error("what the container has (-want +got):\n" + diff)
			}
			var out bytes.Buffer
			if err := got.write(&out); err != nil {
				t.Fatal(err)
			}
			read, err := Decode(out.Bytes())
			if diff := cmp.Diff(got, read); diff != "" || err != nil {
				t.Errorf("the report is read otherwise than it was written: %v\n%s", err, diff)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestMainSaysWhatFails(t *testing.T) {
	var out, problems bytes.Buffer
	if code := Main(&out, &problems, os.Environ()); code != 0 || problems.Len() > 0 {
		t.Errorf("on this machine the code is %d, and it says %q", code, &problems)
	}
	if _, err := Decode(out.Bytes()); err != nil {
		t.Error(err)
	}
	if code := Main(full{}, &problems, nil); code == 0 || !strings.Contains(problems.String(), "no room") {
		t.Errorf("with nowhere to write the code is %d, and it says %q", code, &problems)
	}
}

func TestDecodeRefuses(t *testing.T) {
	one := func(fields string) string { return `{"devices":[{"maker":"nvidia"` + fields + `}]}` }
	for name, report := range map[string]string{
		"nothing":      "",
		"too long":     one(`,"name":"` + strings.Repeat("x", maxReport) + `"`),
		"too many":     `{"devices":[` + strings.Repeat(`{"maker":"amd"},`, MaxDevices) + `{"maker":"amd"}]}`,
		"maker":        `{"devices":[{"maker":"acme"}]}`,
		"identity":     one(`,"uuid":"GPU-1\"; Requirements = true"`),
		"long text":    one(`,"name":"` + strings.Repeat("x", maxText+1) + `"`),
		"control text": one(`,"bus":"\u0000"`),
		"memory":       one(`,"memory_bytes":-1`),
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := Decode([]byte(report)); err == nil {
				t.Errorf("accepted: %+v", r)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"devices":[{"maker":"nvidia","uuid":"` + uuid0 + `","name":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := r.write(&out); err != nil {
			t.Fatal(err)
		}
	})
}
