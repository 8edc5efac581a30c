package payloadrun

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/condor/image"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
)

// attrScratch is mount_under_scratch of the submit description: directories of the image in whose place a job
// wants empty ones of its own, which it may write to. The stock starter binds directories of the sandbox there
// (docker_proc.cpp:buildExtraVolumes, singularity.cpp:setup), for jobs with an image only.
const attrScratch = "MountUnderScratch"

// scratchMode is the mode of such a directory. The sandbox above it keeps everybody else out.
const scratchMode = 0o777

// underScratch gives the directories of the sandbox that the job has in place of the image's, and the links
// that lead to them: nothing can be mounted in a container that runs. A directory below another one that is
// asked for is in that one.
func (j *Job) underScratch() (dirs []string, links []payload.Link, err error) {
	text := j.Ad.StringOr(attrScratch, "")
	if text == "" || !j.Settings.InPod() || !image.AsksForContainer(j.Ad) && !j.Ad.Has("SingularityImage") && j.Unpacked == nil {
		return nil, nil, nil
	}
	wanted := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for i, dir := range wanted {
		if !path.IsAbs(dir) || strings.Contains(dir+"/", "/../") || path.Clean(dir) == "/" {
			return nil, nil, fmt.Errorf("mount_under_scratch names %.200q, which is not an absolute path to a directory", dir)
		}
		wanted[i] = path.Clean(dir)
	}
	slices.Sort(wanted) // a directory comes before those in it
	for _, dir := range slices.Compact(wanted) {
		dirs = append(dirs, strings.TrimPrefix(dir, "/"))
		if slices.ContainsFunc(links, func(l payload.Link) bool { return strings.HasPrefix(dir, l.At+"/") }) {
			continue
		}
		scratch := j.Sandbox.Scratch()
		if strings.HasPrefix(scratch+"/", dir+"/") || strings.HasPrefix(dir+"/", scratch+"/") {
			return nil, nil, fmt.Errorf("mount_under_scratch names %.200q, where the sandbox is", dir)
		}
		links = append(links, payload.Link{At: dir, To: scratch + dir})
	}
	return dirs, links, nil
}

// MakeUnderScratch makes the directories of mount_under_scratch in the sandbox, once the input is there, and those that the
// site mounts for each job without an image. A directory that came with the input stays.
func (j *Job) MakeUnderScratch(c *Container) error {
	dirs, _, err := j.underScratch()
	if err != nil {
		return failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	for _, dir := range dirs {
		if err := j.makeInSandbox(dir, scratchMode, "mount_under_scratch"); err != nil {
			return err
		}
	}
	return j.mountOwn(c)
}

// makeInSandbox makes a directory, and those above it, for whoever wants it mounted.
func (j *Job) makeInSandbox(dir string, mode fs.FileMode, wanted string) error {
	made := ""
	for part := range strings.SplitSeq(dir, "/") {
		made = path.Join(made, part)
		if err := j.Sandbox.Mkdir(made, mode); errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENAMETOOLONG) {
			return failure.New(shadow.HoldFailedToCreateProcess, int(unix.ENOTDIR), fmt.Errorf(
				"%s names /%.200s, and a directory %.200s in the sandbox would take its place, but there is something else by that name, or it is too long", wanted, dir, made))
		} else if err != nil {
			return failure.New(shadow.VacateScratchDirError, 0, fmt.Errorf("make the directory of %s = /%.200s: %w", wanted, dir, err))
		}
	}
	return nil
}
