package buildah

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArguments: a stage is named after itself, and the image is built last, from all of the Dockerfile.
func TestArguments(t *testing.T) {
	s := Store{Dir: "/s"}
	b := Build{Dockerfile: "/c/Dockerfile", Context: "/c", Args: map[string]string{"Z": "1", "A": "b c"}}
	common := []string{
		"buildah", "--root", "/s/layers", "--runroot", "/s/run", "--storage-driver", "overlay", "build", "--isolation", "chroot", "--layers",
		"--tls-verify=false", "--iidfile", "/id", "--file", "/c/Dockerfile", "--build-arg", "A=b c", "--build-arg", "Z=1",
	}
	for stage, want := range map[string][]string{
		"":        {"--tag", "localhost/image", "/c"},
		"trimmed": {"--target", "trimmed", "--tag", "localhost/trimmed", "/c"},
	} {
		if diff := cmp.Diff(append(common[:len(common):len(common)], want...), s.build(b, stage, "/id")); diff != "" {
			t.Errorf("stage %q (-want +got):\n%s", stage, diff)
		}
	}
}
