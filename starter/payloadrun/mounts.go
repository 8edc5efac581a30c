package payloadrun

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// knobSharedMemory gives each job an empty /dev/shm, if the site has directories mounted for it at all.
const knobSharedMemory = "MOUNT_PRIVATE_DEV_SHM"

// ownMode is the mode of a directory of the sandbox that is mounted for a job (vanilla_proc.cpp:StartJob).
const ownMode = 0o700

// MayMount tells whether the site wants jobs to have directories of their own in place of the machine's.
func MayMount(s settings.Settings) bool {
	return !s.InPod() && s.Condor.Namespaces.Mounts && strings.TrimSpace(s.Config.String(knobMounts, "")) != ""
}

// mountOwn gives a job without an image directories of the sandbox in place of the machine's, as the site says, and shared memory of its own
// (vanilla_proc.cpp:StartJob, filesystem_remap.cpp). From then on, all that is started in the container has them. Where the starter has not the
// rights for it, nothing is mounted, as with stock.
func (j *Job) mountOwn(c *Container) error {
	if j.Settings.InPod() || j.Contained != nil || !MayMount(j.Settings) {
		return nil
	}
	if !c.Client().Hello().OwnMounts {
		j.Log.Info("Nothing is mounted for the job: that takes root with the capability SYS_ADMIN", "knob", knobMounts)
		return nil
	}
	text, err := j.ownMounts()
	if err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	if text == "" {
		return nil
	}
	wanted := words(text)
	if len(wanted) > payload.MaxMounts {
		return failure.New(shadow.VacateScratchDirError, 0, fmt.Errorf("%s names %d directories for this job, and at most %d can be mounted", knobMounts, len(wanted), payload.MaxMounts))
	}
	dirs, mounted := j.mountable(wanted)
	m := &payload.Mounts{Sandbox: j.Sandbox.Scratch(), Dirs: mounted}
	if m.SharedMemory, err = j.Settings.Config.Bool(knobSharedMemory, true); err != nil {
		j.Log.Warn("A knob is not understood, its default holds", "error", err)
	}
	if len(m.Dirs) == 0 && !m.SharedMemory {
		return nil
	}
	if err := m.Validate(); err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, fmt.Errorf("%s: %w", knobMounts, err))
	}
	for _, dir := range dirs {
		if err := j.makeInSandbox(strings.TrimPrefix(dir, "/"), ownMode, knobMounts+" of this execution point"); err != nil {
			return err
		}
	}
	if slices.Contains(m.Dirs, "/tmp") {
		j.temporary = "/tmp"
	}
	j.mounts, c.mounts = m, m
	j.Log.Info("The job has directories of its own in place of the machine's", "directories", m.Dirs, "shared memory", m.SharedMemory)
	return nil
}

// ownMounts is the value of the knob: an expression over the job's ad for a string, or plain text.
func (j *Job) ownMounts() (string, error) {
	text := strings.TrimSpace(j.Settings.Config.String(knobMounts, ""))
	e, err := j.Settings.Config.Expr(knobMounts)
	if err != nil || e == nil {
		return text, nil //nolint:nilerr // plain text is no expression
	}
	value := e.Eval(classads.Env{My: j.Ad})
	list, ok := value.Str()
	if !ok {
		return "", fmt.Errorf("%s is no list of directories for this job: %s gives %s", knobMounts, text, value)
	}
	return list, nil
}

// mountable are the directories in whose place the job can have others, sorted; like the stock starter, it leaves out those that are not there, and
// those that the sandbox is in. A directory below another one is in that one, so that it is not mounted itself.
func (j *Job) mountable(wanted []string) (dirs, mounted []string) {
	scratch := []string{j.Sandbox.Scratch()}
	if real, err := filepath.EvalSymlinks(scratch[0]); err == nil { // EXECUTE may be reached through a link
		scratch = append(scratch, real)
	}
	holds := func(dir string) bool {
		return slices.ContainsFunc(scratch, func(s string) bool { return payload.Below(s, dir) || payload.Below(dir, s) })
	}
	for _, dir := range wanted {
		is := path.Clean(dir)
		info, err := os.Stat(is)
		real, rerr := filepath.EvalSymlinks(is)
		switch {
		case !path.IsAbs(dir) || err != nil || rerr != nil || !info.IsDir():
			j.Log.Warn("A directory is not mounted for the job: it is not there, or is none", "directory", dir, "knob", knobMounts)
			continue
		case holds(real):
			j.Log.Warn("A directory is not mounted for the job: the sandbox is in it, or it in the sandbox", "directory", dir, "knob", knobMounts)
			continue
		}
		dirs = append(dirs, is)
	}
	slices.Sort(dirs) // a directory comes before those in it
	dirs = slices.Compact(dirs)
	for _, dir := range dirs {
		if !slices.ContainsFunc(mounted, func(above string) bool { return payload.Below(dir, above) }) {
			mounted = append(mounted, dir)
		}
	}
	return dirs, mounted
}

// hidden tells whether a standard file is to be opened on the machine, where the stock starter opens all of them (os_proc.cpp:StartJob): in the job's
// mounts, its path may lead to another place.
func (j *Job) hidden(file string) bool {
	return j.mounts != nil && path.IsAbs(file) && !payload.Below(path.Clean(file), j.Sandbox.Scratch())
}

// passHidden opens such a file as the job's user, for the payload to have it open.
func (j *Job) passHidden(s *Streams, spec *payload.Spec, name string, file *string) error {
	if !j.hidden(*file) {
		return nil
	}
	code, as, flags := shadow.HoldUnableToOpenInput, "standard input", unix.O_RDONLY
	if name != payload.Stdin {
		code, as, flags = shadow.HoldUnableToOpenOutput, "standard output", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC
		if name == payload.Stderr {
			as = "standard error"
		}
		if spec.Append {
			flags = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND
		}
	}
	var fd int
	err := j.Sandbox.Payload().Become(func() (err error) { // the job chose the path
		fd, err = openOnMachine(*file, flags)
		if err != nil && flags&unix.O_TRUNC != 0 && !errors.Is(err, unix.ENOENT) { // what cannot be truncated may still be writable
			fd, err = openOnMachine(*file, flags&^unix.O_TRUNC)
		}
		return err
	})
	if err != nil {
		var errno unix.Errno
		if !errors.As(err, &errno) {
			return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("open %s as %s: %w", *file, as, err))
		}
		return failure.New(code, int(errno), errors.New(job.OpenFailure(*file, as, errno)))
	}
	s.pass(spec, name, os.NewFile(uintptr(fd), *file))
	*file = ""
	return nil
}

// openOnMachine opens a file as the wrapper's launcher does. A FIFO without a peer must not delay the start.
func openOnMachine(file string, flags int) (int, error) {
	fd, err := unix.Open(file, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = unix.EISDIR
	}
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
