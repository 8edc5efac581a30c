package standin

import (
	"context"
	"path/filepath"
	"syscall"
	"time"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/condor/userlog"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// Backend is a backend that says which user the job has, to whom its event log belongs.
func (s *Shadow) Backend(b payload.Backend) payload.Backend { return backend{b, s} }

type backend struct {
	payload.Backend
	shadow *Shadow
}

// Lease implements [payload.Backend]. As with stock, a job whose log cannot be made does not run (jic_local.cpp:init).
func (b backend) Lease(ctx context.Context, wish payload.Wish) (payload.Lease, error) {
	lease, err := b.Backend.Lease(ctx, wish)
	if err != nil {
		return nil, err
	}
	if err := b.shadow.open(lease.Owner()); err != nil {
		if released := lease.Release(context.WithoutCancel(ctx)); released != nil {
			b.shadow.log.Error("Failed to release the payload slot", "error", released)
		}
		return nil, failure.New(shadow.VacateStarterError, 0, err)
	}
	return lease, nil
}

// open opens the event log that the job names, as its user (local_user_log.cpp:initFromJobAd).
func (s *Shadow) open(uid, gid int) error {
	path := s.ad.StringOr("StarterUserLog", "")
	if path == "" {
		return nil
	}
	condor, err := settings.CondorOwner(s.opt.Settings.Config)
	if err != nil {
		return err
	}
	about := classads.NewAd()
	about.SetString("UserLog", path)
	about.SetString("Iwd", s.ad.StringOr("Iwd", "/"))
	about.SetBool("UserLogUseXML", s.ad.BoolOr("StarterUserLogUseXML", false))
	about.SetInt("ClusterId", s.ad.IntOr("ClusterId", 0))
	about.SetInt("ProcId", s.ad.IntOr("ProcId", 0))
	o := userlog.Options{Job: about, Knobs: s.opt.Settings.Config, User: files(uid, gid).Become, Site: condor.Do}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.ad.StringOr("Iwd", "/"), path)
	}
	if in, err := filepath.Rel((&payloadrun.Job{Settings: s.opt.Settings}).ScratchPath(), path); err == nil && filepath.IsLocal(in) {
		o.NoDirs = true // the last event may come when the sandbox is gone
		s.mu.Lock()
		defer s.mu.Unlock()
		s.later = func() (*userlog.Log, error) { return userlog.Open(o) }
		return nil
	}
	events, err := userlog.Open(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = events
	return nil
}

// write writes an event, if the job has a log.
func (s *Shadow) write(e userlog.Event) {
	s.mu.Lock()
	events, later := s.events, s.later
	s.mu.Unlock()
	if events == nil && later != nil {
		var err error
		if events, err = later(); err != nil {
			s.log.Error("The event log in the job's sandbox cannot be written", "error", err)
			return
		}
	}
	if events == nil {
		return
	}
	if err := events.Write(e, nil); err != nil {
		s.log.Error("Failed to write to the job's event log", "error", err)
	}
}

// follow notes whether the job is suspended (jic_local.cpp:Suspend, Continue).
func (s *Shadow) follow(ad *classads.Ad) {
	state := ad.StringOr("JobState", "")
	if state == "" || s.suspended == (state == "Suspended") {
		return
	}
	s.suspended = !s.suspended
	switch {
	case s.suspended:
		s.write(userlog.Suspended{Processes: int(ad.IntOr("NumPids", 1))})
	case state == "Running":
		s.write(userlog.Unsuspended{})
	}
}

// report hears of an error. After a critical one no call follows.
func (s *Shadow) report(ad *classads.Ad) error {
	if ad.StringOr("MyType", "") != "RemoteErrorEvent" {
		return nil
	}
	s.write(userlog.RemoteError{Host: s.address, Message: ad.StringOr("ErrorMsg", "")})
	if ad.IntOr("CriticalError", 1) == 0 {
		return nil
	}
	return errLast
}

// exited tells how the job has ended (local_user_log.cpp:logJobExit).
func (s *Shadow) exited(status int, reason shadow.Reason, ad *classads.Ad) {
	seconds := func(name string) time.Duration { return time.Duration(ad.RealOr(name, 0)) * time.Second }
	cpu := userlog.CPU{User: seconds("RemoteUserCpu"), System: seconds("RemoteSysCpu")}
	if reason != shadow.JobExited && reason != shadow.JobCoreDumped {
		s.write(userlog.Evicted{Local: cpu})
		return
	}
	ending, wait := userlog.Ending{}, syscall.WaitStatus(status)
	if wait.Signaled() {
		ending.Signal = int(wait.Signal())
	} else {
		ending.ExitCode = wait.ExitStatus()
	}
	s.write(userlog.Terminated{Ending: ending, Local: cpu})
}
