package gpus

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

// What condor_gpu_discovery of 25.14 prints with -properties -simulate:4,2.
const simulated = `DetectedGPUs="GPU-a0223334, GPU-b1223334"
Common=[ Capability=8.0; DeviceName="A100-SXM4-40GB"; ECCEnabled=true; GlobalMemoryMb=47661; ]
GPU_a0223334=[ id="GPU-a0223334"; DevicePciBusId="0000:40:00.0"; DeviceUuid="a0223334-4445-5667-899a-abbccddeeff0"; ]
GPU_b1223334=[ id="GPU-b1223334"; DevicePciBusId="0000:41:00.0"; DeviceUuid="b1223334-4445-5667-899a-abbccddeeff0"; ]
`

func device(id, properties string) Device {
	ad, err := classads.ParseNew("[" + properties + "]")
	if err != nil {
		panic(err)
	}
	return Device{ID: id, Properties: ad}
}

var sameAds = cmp.Comparer(func(a, b *classads.Ad) bool { return a.FormatSorted() == b.FormatSorted() })

func TestParse(t *testing.T) {
	const common = `Capability=8.0; DeviceName="A100-SXM4-40GB"; ECCEnabled=true; GlobalMemoryMb=47661; `
	for name, tt := range map[string]struct {
		output string
		want   []Device
		wrong  string
	}{
		"two": {output: simulated, want: []Device{
			device("GPU-a0223334", common+`DevicePciBusId="0000:40:00.0"; DeviceUuid="a0223334-4445-5667-899a-abbccddeeff0"`),
			device("GPU-b1223334", common+`DevicePciBusId="0000:41:00.0"; DeviceUuid="b1223334-4445-5667-899a-abbccddeeff0"`)}},
		"none":              {output: "DetectedGPUs=0\n"},
		"beside a loader":   {output: "ERROR: ld.so: object 'x' cannot be preloaded: ignored.\nDetectedGPUs=\"CUDA0\"\n", want: []Device{device("CUDA0", "")}},
		"no properties":     {output: "DetectedGPUs=\"CUDA0, CUDA1\"", want: []Device{device("CUDA0", ""), device("CUDA1", "")}},
		"loader's words":    {output: "condor_gpu_discovery: /lib/libc.so.6: version `GLIBC_2.38' not found\n", wrong: "GLIBC_2.38"},
		"nothing":           {output: "", wrong: "it printed no DetectedGPUs"},
		"hostile name":      {output: `DetectedGPUs="GPU-1;START=true"`, wrong: "named a device"},
		"too many":          {output: `DetectedGPUs="` + strings.Repeat("CUDA0,", MaxDevices+1) + `"`, wrong: "more than 64"},
		"hostile property":  {output: "DetectedGPUs=\"CUDA0\"\nCUDA0=[ id=\"CUDA0\"; A=MY.Requirements; B=[ c=1 ]; C={1}; D=undefined; E=\"a\\nb\"; F=2; G=1+1; H=strcat(\"a\",\"b\") ]", want: []Device{device("CUDA0", "F=2")}},
		"list is no string": {output: "DetectedGPUs=[ a=1 ]"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.output)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("the error is %v, want one with %q", err, tt.wrong)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, sameAds); diff != "" || err != nil {
				t.Errorf("error %v; devices (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestInventory(t *testing.T) {
	a, b := device("GPU-a", `DeviceUuid="a"; Capability=8.0`), device("GPU-b", `DeviceUuid="b"`)
	for name, tt := range map[string]struct {
		containers []Container
		problem    string
		want       string
		wrong      string
	}{
		"none":   {want: "DetectedGPUs = 0\n"},
		"absent": {containers: []Container{{Name: "payload"}}, problem: "no \"answer\"\n", want: "DetectedGPUs = 0\nPodStarterGPUsProblem = \"no 'answer' \"\n"},
		"much to say": {containers: []Container{{Name: "payload"}}, problem: "x" + strings.Repeat("é", 600),
			want: "DetectedGPUs = 0\nPodStarterGPUsProblem = \"x" + strings.Repeat("é", 511) + "\"\n"},
		"one and none": {containers: []Container{{Name: "x"}, {Name: "y", Devices: []Device{a}}},
			want: "DetectedGPUs = \"GPU-a\"\nPodStarterGPUsEach = 1\nGPU_0 = [ DeviceUuid = \"a\"; Capability = 8.0; id = \"GPU-a\" ]\n"},
		"in the containers' order": {containers: []Container{{Name: "x", Devices: []Device{b}}, {Name: "y", Devices: []Device{a}}},
			want: "DetectedGPUs = \"GPU-b, GPU-a\"\nPodStarterGPUsEach = 1\nGPU_0 = [ DeviceUuid = \"a\"; Capability = 8.0; id = \"GPU-a\" ]\nGPU_1 = [ DeviceUuid = \"b\"; id = \"GPU-b\" ]\n"},
		"shared": {containers: []Container{{Name: "x", Devices: []Device{b}}, {Name: "y", Devices: []Device{b}}},
			want: "DetectedGPUs = \"GPU-b, GPU-b\"\nPodStarterGPUsEach = 1\nGPU_0 = [ DeviceUuid = \"b\"; id = \"GPU-b\" ]\n"},
		"different numbers": {containers: []Container{{Name: "x", Devices: []Device{a, b}}, {Name: "y", Devices: []Device{b}}},
			want: "DetectedGPUs = \"GPU-a, GPU-b, GPU-b\"\nGPU_0 = [ DeviceUuid = \"a\"; Capability = 8.0; id = \"GPU-a\" ]\nGPU_1 = [ DeviceUuid = \"b\"; id = \"GPU-b\" ]\n"},
		"one name for two": {containers: []Container{{Name: "x", Devices: []Device{device("CUDA0", `DeviceUuid="a"`)}}, {Name: "y", Devices: []Device{device("CUDA0", `DeviceUuid="b"`)}}},
			wrong: "CUDA0 is the name of different devices, one of them in container y"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Inventory(tt.containers, tt.problem)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("the error is %v, want one with %q", err, tt.wrong)
				}
				return
			}
			if !utf8.ValidString(got) {
				t.Errorf("a character was cut in two: %q", got)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v; inventory (-want +got):\n%s", err, diff)
			}
			if _, err := Parse(got); err != nil {
				t.Errorf("what is printed cannot be read again: %v", err)
			}
		})
	}
}

func TestHolders(t *testing.T) {
	pod := []Container{
		{Name: "payload"}, {Name: "payload-2", Devices: []Device{device("GPU-a", "")}}, {Name: "payload-3", Devices: []Device{device("GPU-a", "")}},
		{Name: "payload-4", Devices: []Device{device("GPU-b", ""), device("GPU-c", "")}},
	}
	for assigned, want := range map[string][]string{
		"": {"payload"}, "GPU-a": {"payload-2", "payload-3"}, "GPU-c, GPU-b": {"payload-4"},
		"GPU-b": nil, "GPU-a,GPU-b": nil, "GPU-b,GPU-c,GPU-c": nil, "GPU-z": nil,
	} {
		got, err := Holders(pod, assigned)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("containers for %q, error %v (-want +got):\n%s", assigned, err, diff)
		}
		if err != nil && !strings.Contains(err.Error(), "payload-4 has GPU-b,GPU-c") {
			t.Errorf("for %q the error does not say what there is: %v", assigned, err)
		}
	}
}

// TestParseComputesNothing: what a container prints cannot make the startd, which waits for it, wait for long: strings that double
// with each property would take minutes for the devices of a container.
func TestParseComputesNothing(t *testing.T) {
	var output strings.Builder
	fmt.Fprintf(&output, "DetectedGPUs=\"%s\"\nCommon=[ a0=\"%s\"; ", strings.Repeat("CUDA0,", MaxDevices-1)+"CUDA0", strings.Repeat("x", 1000))
	for i := range maxProperties - 1 {
		fmt.Fprintf(&output, "a%d=strcat(a%d,a%[2]d); ", i+1, i)
	}
	output.WriteString("]\n")
	done := make(chan []Device)
	go func() {
		found, _ := Parse(output.String())
		done <- found
	}()
	select {
	case found := <-done:
		if len(found) != MaxDevices || found[0].Properties.Len() != 1 {
			t.Errorf("%d devices: %v", len(found), found)
		}
	case <-time.After(10 * time.Second):
		t.Error("it takes more than ten seconds")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(simulated)
	f.Add("DetectedGPUs=0")
	f.Fuzz(func(t *testing.T, output string) {
		devices, err := Parse(output)
		if err != nil {
			return
		}
		text, err := Inventory([]Container{{Name: "payload", Devices: devices}}, output)
		if err != nil {
			return // one name for two devices
		}
		again, err := Parse(text)
		if err != nil || len(again) != len(devices) {
			t.Fatalf("%d devices are read as %d: %v\n%s", len(devices), len(again), err, text)
		}
	})
}
