package payloadrun

import (
	"fmt"
	"path"
	"strings"
)

// targetDir is the name under which the job wants to find its sandbox in the
// container. The zero value is none.
type targetDir struct{ at, to string }

// targetDir reads container_target_dir, which the site can set for all jobs
// (singularity.cpp:hasTargetDir). Apptainer mounts the sandbox there; nothing can
// be mounted in a container that runs, so the wrapper makes a link. A job beside
// the starter has no file system of its own for such a link.
func (j *Job) targetDir() (targetDir, error) {
	at := j.Ad.StringOr("ContainerTargetDir", "")
	if site := j.Settings.Condor.TargetDir; site.Set {
		at = site.Value
	}
	at, to := strings.TrimSpace(at), j.Sandbox.Scratch()
	if at == "" || !j.Settings.InPod() {
		return targetDir{}, nil
	}
	if !path.IsAbs(at) || path.Clean(at) == "/" || strings.Contains(at+"/", "/../") {
		return targetDir{}, fmt.Errorf("container_target_dir is %.200q, which is not an absolute path to a directory", at)
	}
	at = path.Clean(at)
	if strings.HasPrefix(to+"/", at+"/") || strings.HasPrefix(at+"/", to+"/") {
		return targetDir{}, fmt.Errorf("container_target_dir is %.200q, where the sandbox is already", at)
	}
	return targetDir{at, to}, nil
}

// retarget puts the sandbox's new name into the environment
// (singularity.cpp:retargetEnvs). PWD is for shells, which show it if it names
// the working directory.
func (d targetDir) retarget(env []string, workingDir string) []string {
	if d.at == "" {
		return env
	}
	var out []string
	if workingDir == d.to {
		out = append(out, "PWD="+d.at)
	}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		out = append(out, name+"="+strings.Replace(value, d.to, d.at, 1))
	}
	return append(out, "_CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER="+d.to)
}
