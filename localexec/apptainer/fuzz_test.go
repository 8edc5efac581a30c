package apptainer_test

import (
	"slices"
	"strings"
	"testing"

	"podstarter/localexec/apptainer"
)

// FuzzBuild: whatever a job writes, the runtime reads the same options, binds and image as for any other job.
func FuzzBuild(f *testing.F) {
	f.Add("image.sif", "/srv", "/opt", "/bin/x", "/home/alice", "A=b")
	f.Add("-B/:/host", "/a,/b", "/a:/b", "--writable", "/x:/etc", "APPTAINER_BIND=/")
	f.Add("docker://x", "", "-B", "", slot, "=")
	f.Add("./-x", "/a\\", "/\n", "-", "", "APPTAINERENV_APPTAINER_BIND=/")
	f.Fuzz(func(t *testing.T, image, target, scratch, program, start, env string) {
		w := wish()
		w.Image, w.TargetDir, w.Scratch, w.Path, w.Iwd, w.Env = image, target, []string{scratch}, program, start, []string{env}
		c, err := apptainer.Build(site(), apptainer.Runtime{Version: "apptainer version 1"}, w, disk(nil))
		if err != nil {
			return
		}
		args := c.Args[2:] // after "-s exec"
		var values []string
		for len(args) > 0 && strings.HasPrefix(args[0], "-") {
			switch option := args[0]; option {
			case "-C":
				args = args[1:]
			case "-S", "-B", "-W", "--pwd", "--home":
				if option == "-S" || option == "-B" {
					values = append(values, args[1])
				}
				args = args[2:]
			default:
				t.Fatalf("option %q in %q", option, c.Args)
			}
		}
		if len(args) == 0 || args[0] != image && args[0] != start+"/"+image {
			t.Fatalf("the image is %q of %q", args, c.Args)
		}
		for _, value := range values {
			if strings.ContainsAny(value, ",\\") || strings.Count(value, ":") > 1 || !strings.HasPrefix(value, "/") {
				t.Errorf("%q is more than one place", value)
			}
		}
		for _, entry := range c.Env {
			name, _, _ := strings.Cut(entry, "=")
			if strings.HasPrefix(name, "APPTAINER_") && !slices.Contains([]string{"APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "APPTAINER_DOCKER_USERNAME", "APPTAINER_DOCKER_PASSWORD"}, name) {
				t.Errorf("the job gives the runtime %q", entry)
			}
		}
	})
}

// FuzzWords: whatever a runtime says, what is quoted of it is one short line.
func FuzzWords(f *testing.F) {
	f.Add([]byte("\x1b[31mFATAL: x\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		for _, text := range []string{apptainer.LastWords(output), apptainer.RuntimeOf(output).Version} {
			if strings.ContainsAny(text, "\n\x00") || len(text) > 700 {
				t.Errorf("%q", text)
			}
		}
	})
}
