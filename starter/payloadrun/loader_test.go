package payloadrun

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoaderLater: the program that enters an image does not see the loader's variables, and the script in it does.
func TestLoaderLater(t *testing.T) {
	script, args, env := loaderLater(`echo "$LD_LIBRARY_PATH $1"`, []string{"first"}, []string{"A=1", "LD_LIBRARY_PATH=/mine; echo no", "LD_AUDIT="})
	if diff := cmp.Diff([]string{"A=1"}, env); diff != "" {
		t.Error(diff)
	}
	out, err := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "/mine; echo no first" {
		t.Errorf("%s, %v", out, err)
	}
	same, none, all := loaderLater("x", nil, []string{"A=1"})
	if same != "x" || none != nil || len(all) != 1 {
		t.Errorf("%q %q %q", same, none, all)
	}
}
