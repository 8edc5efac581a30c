package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"podstarter/k8sexec/options"
)

// readPod reads a manifest of testdata.
func readPod(t *testing.T, path ...string) *corev1.Pod {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(text, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// TestSpares: with spares, any slot takes any payload container.
func TestSpares(t *testing.T) {
	type result struct{ Bad, Warn []string } // text, and what to change
	const gone = ": (remove it)"
	in := func(container string) string { return "spec.containers[name=" + container + "]." }
	const device = ", but with spares a slot takes any payload container that is free, and the device stays with its own; take it away, or set POD_STARTER_SPARES = 0"
	const equal = "; with spares a job runs in either: make them equal, or set POD_STARTER_SPARES = 0"
	tests := map[string]result{
		"equal.yaml": {},
		"graphics.yaml": {Bad: []string{
			"container payload has nvidia.com/gpu" + device + " | " + in("payload") + "resources.limits[nvidia.com/gpu]" + gone,
			"container payload-2 has nvidia.com/gpu" + device + " | " + in("payload-2") + "resources.limits[nvidia.com/gpu]" + gone,
		}},
		"devices.yaml": {Bad: []string{
			"container payload-2 has the block device of volume disk" + device + " | " + in("payload-2") + "volumeDevices[name=disk]" + gone,
			"container payload-3 has the device of claim fpga, which payload lacks" + equal + " | " + in("payload-3") + "resources.claims[name=fpga]" + gone,
		}},
		"resources.yaml": {
			Bad: []string{
				"the cpu limit of container payload-2 is 2, and that of payload is none" + equal + " | " + in("payload-2") + "resources.limits.cpu" + gone,
				"the hugepages-2Mi limit of container payload-2 is none, and that of payload is 128Mi" + equal + " | " + in("payload-2") + "resources.limits.hugepages-2Mi: 128Mi",
				"the memory limit of container payload-2 is 4Gi, and that of payload is 2Gi" + equal + " | " + in("payload-2") + "resources.limits.memory: 2Gi",
			},
			Warn: []string{"the cpu request of container payload-2 is 2, and that of payload is 500m" + equal + " | " + in("payload-2") + "resources.requests.cpu: 500m"},
		},
		"mounts.yaml": {Bad: []string{
			"container payload-2 mounts volume cvmfs at /cvmfs otherwise than payload" + equal + " | " + in("payload-2") + "volumeMounts[mountPath=/cvmfs]: (as in payload)",
			"container payload-2 mounts volume data at /data otherwise than payload" + equal + " | " + in("payload-2") + "volumeMounts[mountPath=/data]: (as in payload)",
			"container payload-3 mounts nothing at /data, where payload has volume data" + equal + " | " + in("payload-3") + "volumeMounts[mountPath=/data]: (as in payload)",
			"container payload-3 mounts volume scratch at /scratch, where payload has nothing" + equal + " | " + in("payload-3") + "volumeMounts[mountPath=/scratch]" + gone,
		}},
		"own.yaml": {Bad: []string{
			"container payload-3 mounts volume own-c at /dev/shm otherwise than payload" + equal + " | " + in("payload-3") + "volumeMounts[mountPath=/dev/shm]: (as in payload)",
		}},
		"environment.yaml": {Warn: []string{
			"container payload-2 has the variable LOCAL, which payload lacks" + equal + " | " + in("payload-2") + "env[name=LOCAL]" + gone,
			"container payload-2 has the variables of config map site, which payload lacks" + equal + " | " + in("payload-2") + "envFrom" + gone,
			"container payload-2 lacks the variable HTTP_PROXY of payload" + equal + " | " + in("payload-2") + "env[name=HTTP_PROXY]: (as in payload)",
		}},
		"security.yaml": {Warn: []string{
			"the securityContext of container payload-2 is not that of payload" + equal + " | " + in("payload-2") + "securityContext: (as in payload)",
			"the securityContext of container payload-3 is not that of payload" + equal + " | " + in("payload-3") + "securityContext: (as in payload)",
		}},
		"images.yaml": {Warn: []string{
			"the pod was made with image docker.io/library/busybox:1 in container payload-2 and docker.io/library/debian:stable-slim in payload; " +
				"a job that names no image gets either, unless POD_STARTER_DEFAULT_IMAGE names one | " + in("payload-2") + "image: docker.io/library/debian:stable-slim",
		}},
	}
	files, err := filepath.Glob("testdata/spares/*.yaml")
	if err != nil || len(files) != len(tests) {
		t.Fatalf("%d manifests and %d tests (%v)", len(files), len(tests), err)
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			pod := readPod(t, "spares", name)
			var names []string
			for _, c := range pod.Spec.Containers[1:] {
				names = append(names, c.Name)
			}
			for _, spares := range []int{1, 0} {
				b := &Inspector{Options: options.Options{Containers: names, Spares: spares}}
				var f findings
				b.checkSpares(pod, &f)
				var got result
				for _, m := range f.warnings {
					got.Warn = append(got.Warn, m.Text+" | "+m.Fix())
				}
				if f.mistakes != nil {
					for _, err := range f.mistakes.Errors {
						m, ok := err.(*options.Mistake) //nolint:errorlint // findings.bad puts nothing else in
						if !ok {
							t.Fatal(err)
						}
						got.Bad = append(got.Bad, m.Text+" | "+m.Fix())
					}
				}
				if spares == 0 {
					want = result{}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%d spares (-want +got):\n%s", spares, diff)
				}
			}
		})
	}
}
