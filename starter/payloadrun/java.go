package payloadrun

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"podstarter/condor/java"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
)

// command is what runs: the job's own program, or the JVM that runs its class.
func (j *Job) command(place job.Place) (job.Command, error) {
	if j.Info.Universe == job.Java {
		return java.CommandOf(j.Ad, place, j.Settings.Config, j.Given().Chirp)
	}
	return job.CommandOf(j.Ad, place, j.rules())
}

// ReadJava finds out how a job of the java universe has ended, which its JVM's exit status does not say, and corrects the
// run's. Other jobs are left alone.
func (j *Job) ReadJava(r *Run) {
	if j.Info.Universe != job.Java {
		return
	}
	var record java.Record
	_, err := j.Sandbox.ReadFile(java.StartFile, 1)
	record.Started = err == nil
	if record.End, err = j.Sandbox.ReadFile(java.EndFile, java.MaxRecord); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.Log.Warn("Failed to read how the Java program has ended", "error", err)
	}
	for _, name := range []string{java.StartFile, java.EndFile} {
		if err := j.Sandbox.RemoveFile(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.Log.Warn("Failed to remove what the Java wrapper wrote", "error", err)
		}
	}
	r.Java = java.EndingOf(r.Status(), record)
	j.Log.Info("JavaProc: "+r.Java.Said, "status", int(r.Status()))
	r.Exit.WaitStatus = int(r.Java.Status)
}

// NoJava is what it means to a job that the machine's JVM cannot be executed: the site is to blame. nil for another failure.
func (j *Job) NoJava(err error, cmd job.Command) error {
	s := (*payload.StartError)(nil)
	if j.Info.Universe != job.Java || !errors.As(err, &s) || s.Stage != payload.StageExec || s.Errno == syscall.E2BIG || s.Errno == syscall.EAGAIN {
		return nil
	}
	return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("JAVA is %s, which cannot be executed: %w", cmd.Path, err))
}
