package localjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/jobpolicy"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/condor/userlog"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/hooks"
	"podstarter/starter/hostprog"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// live is the whole life of a job that goes well. An error ends it where it happened; conclude says what that means to the
// job.
func (l *life) live(ctx context.Context) error {
	before, release := l.orders.UntilAny(ctx)
	defer release()
	if err := l.prepare(before); err != nil {
		return err
	}
	if err := l.refuse(); err != nil {
		return err
	}
	if err := l.deferStart(before); err != nil {
		return err
	}
	if err := l.bind(before); err != nil {
		return err
	}
	if err := l.preScript(before); err != nil {
		return err
	}
	if err := l.start(before); err != nil {
		return err
	}
	if err := l.follow(ctx); err != nil {
		return err
	}
	swept, done := context.WithTimeout(ctx, sweepTime)
	defer done()
	if err := l.container.Sweep(swept); err != nil {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("something of the job is left: %w", err))
	}
	if err := l.wrapper.Failure(); err != nil {
		return err
	}
	return l.postScript(ctx)
}

// sweepTime is how long it may take to end what the main process has left.
const sweepTime = time.Minute

// prepare makes the sandbox and opens the event log.
func (l *life) prepare(ctx context.Context) error {
	set := l.opt.Settings
	set.MaxTasks = 0 // of execution points; here the owner's own limit holds
	condor, err := settings.CondorOwner(set.Config)
	if err != nil {
		return err
	}
	visa := l.ad.Clone()
	if err := localize(l.ad); err != nil {
		return err
	}
	info, err := infoOf(l.ad)
	if err != nil {
		return err
	}
	files := l.owner.files()
	l.job = payloadrun.Job{
		Name: payloadrun.NewName("local"), Settings: set, Environ: startd.ScrubEnv(l.opt.Env), Log: l.log,
		Ad: l.ad, Machine: classads.NewAd(), Info: info, UID: os.Getuid(), GID: os.Getgid(), Given: l.given,
	}
	if a := l.owner.account; a != nil {
		l.job.UID, l.job.GID = a.UID, a.GID
	}
	logs := userlog.Options{Job: l.ad.Clone(), Knobs: set.Config, User: files.Become, Site: condor.Do}
	opened := make(chan *userlog.Log, 1)
	problems := l.patiently(func() error {
		log, err := userlog.Open(logs)
		opened <- log
		return err
	})
	select {
	case l.events = <-opened:
	default:
		return problems
	}
	if problems != nil {
		// As with stock, the job runs all the same.
		l.log.Error("The job's events are not all logged", "error", problems)
	}
	name := ""
	if name, l.job.Home = home(ctx, l.job.UID); name == "" {
		name = fmt.Sprintf("uid %d", l.job.UID)
	}
	l.log.Info("Running job as user " + name)
	l.job.Sandbox, err = sandbox.Create(ctx, sandbox.Options{
		Execute: set.Condor.Execute, PID: os.Getpid(), Nested: set.Condor.NestedScratch, Mode: sandbox.Permissions(set.Condor.ExecDirPermissions),
		Condor: condor, Payload: files, Log: l.log,
	})
	if err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	if l.ad.BoolOr("WantExecutionVisaFromStarter", false) {
		if err := l.patiently(func() error { return l.writeVisa(visa, info.Iwd) }); err != nil {
			l.log.Error("Failed to leave the job's ad in its directory", "error", err)
		}
	}
	if err := l.job.WriteAds(); err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	if err := l.job.Sandbox.WriteFile(job.MachineAdFile, nil, 0o644); err != nil { // stock's is empty as well
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	// Files are opened where they are: nothing is streamed.
	for _, stream := range []string{"StreamIn", "StreamOut", "StreamErr"} {
		l.ad.SetBool(stream, false)
	}
	if err := l.wrapper.Bring(hooks.Options{
		Settings: set, Programs: hostprog.Job{Sandbox: l.job.Sandbox, Name: l.job.Name, Environ: l.job.Environ, Log: l.log}, Job: &l.job, Log: l.log,
	}); err != nil {
		return err
	}
	l.scripts = payloadrun.Scripts{Job: &l.job, WrapperFailure: l.wrapper.Failure}
	return nil
}

// given is what the job is given besides its ad and its place.
func (l *life) given() payloadrun.Given {
	g := payloadrun.Given{WrapperWorks: l.wrapper.Works(), Run: l.run}
	if proxy := l.ad.StringOr("x509userproxy", ""); proxy != "" {
		if !filepath.IsAbs(proxy) {
			proxy = filepath.Join(l.job.Info.Iwd, proxy)
		}
		g.Proxy = proxy
	}
	return g
}

// maxVisas bounds the search for a free name.
const maxVisas = 10_000

// writeVisa leaves the ad as it came in the job's directory (condor_utils/classad_visa.cpp:classad_visa_write).
func (l *life) writeVisa(ad *classads.Ad, dir string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	ad = ad.Public()
	ad.SetInt("VisaTimestamp", time.Now().Unix())
	ad.SetString("VisaDaemonType", "STARTER")
	ad.SetInt("VisaDaemonPID", int64(os.Getpid()))
	ad.SetString("VisaHostname", host)
	ad.SetString("VisaIpAddr", l.address.String())
	name := fmt.Sprintf("jobad.%d.%d", l.job.Info.Cluster, l.job.Info.Proc)
	return l.owner.files().Become(func() error {
		path := filepath.Join(dir, name)
		for i := range maxVisas {
			//nolint:forbidigo // as the job's owner
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, os.ErrExist) {
				path = filepath.Join(dir, fmt.Sprintf("%s.%d", name, i))
				continue
			}
			if err != nil {
				return err
			}
			_, err = f.WriteString(ad.FormatOld())
			return errors.Join(err, f.Close())
		}
		return fmt.Errorf("%s and %d names like it are taken", name, maxVisas)
	})
}

// deferStart waits for the time that the job asks for.
func (l *life) deferStart(ctx context.Context) error {
	wait, err := job.Deferral(l.ad, time.Now())
	if err != nil {
		return err
	}
	l.log.Info(job.LineDeferral(l.job.Info, wait))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	check := l.ticker()
	defer check.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-check.C:
			l.evaluate()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const defaultCheck = 60 // seconds, of PERIODIC_EXPR_INTERVAL

// ticker says when policies are evaluated; never, if the knob is 0 (condor_user_policy.cpp:startTimer).
func (l *life) ticker() *time.Ticker {
	seconds, err := l.opt.Settings.Config.Int("PERIODIC_EXPR_INTERVAL", defaultCheck)
	if err != nil {
		l.log.Warn("A knob is not understood, its default holds", "error", err)
		seconds = defaultCheck
	}
	const never = 100 * 365 * 24 * time.Hour
	if seconds <= 0 || seconds > int64(never/time.Second) {
		return time.NewTicker(never)
	}
	return time.NewTicker(time.Duration(seconds) * time.Second)
}

// evaluate looks at the policies of a job that runs or waits, and makes it end if they want that
// (starter_user_policy.cpp:doAction).
func (l *life) evaluate() {
	if l.decided != nil {
		return
	}
	d := l.policy.WhileRunning(l.ad, time.Now())
	if d.Action == jobpolicy.Stay {
		return
	}
	l.log.Info("A policy ends the job", "reason", d.Reason)
	l.decided = &d
	l.orders.End(orders.Demand{Reason: d.Reason, Code: d.Code, Subcode: d.Subcode, Hold: d.Action == jobpolicy.Hold, Remove: d.Action != jobpolicy.Hold, Urgency: orders.Soft})
}

// bind starts the wrapper, which is to start the job.
func (l *life) bind(ctx context.Context) error {
	// Not in the sandbox, which may be the owner's: there a link could take its place.
	l.control = filepath.Join(l.opt.Settings.Condor.Execute, fmt.Sprintf("wrapper_%d", os.Getpid()))
	backend, err := l.opt.NewBackend(l.control, l.owner.account)
	if err != nil {
		return failure.New(shadow.VacateStarterError, 0, err)
	}
	if l.lease, err = backend.Lease(ctx, payload.Wish{Owner: l.job.Info.User}); err != nil {
		return failure.OfBinding(err)
	}
	c, err := l.lease.Bind(ctx, payload.BindRequest{Activation: l.job.Name, Owner: l.job.Info.User})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return failure.OfBinding(err)
	}
	// Not by NewContainer: a table of the owner's processes, for a starter that is root, has all of them, and most are
	// not the job's.
	l.container = &payloadrun.Container{Container: c, Options: payloadrun.Options{
		UID: l.job.UID, GID: l.job.GID, Orders: l.orders, Started: func() {}, Log: l.log,
		OutOfMemory: func(int64, error) error { return nil }, KernelKilled: func() bool { return false },
	}}
	return nil
}

// preScript runs PreCmd, if the job has one.
func (l *life) preScript(ctx context.Context) error {
	ran, good, err := l.scripts.Run(ctx, l.container, job.PreScript)
	if !ran || good || err != nil {
		return err
	}
	l.scripts.Publish(l.ad)
	return failure.New(shadow.HoldPreScriptFailed, 0, errors.New("Pre script failed.")) //nolint:staticcheck // stock's words
}

// postScript runs PostCmd, if the job has one, unless a demand allows no delay.
func (l *life) postScript(ctx context.Context) error {
	if !l.orders.Allows(orders.Hard) {
		return nil
	}
	ctx, release := l.orders.UntilHard(ctx)
	defer release()
	ran, good, err := l.scripts.Run(ctx, l.container, job.PostScript)
	if ran {
		l.scripts.Publish(l.ad)
	}
	switch {
	case err != nil && !l.orders.Allows(orders.Hard):
		l.log.Warn("The job's PostCmd is cut short", "error", err)
		return nil
	case !ran || good || err != nil:
		return err
	}
	return failure.New(shadow.HoldPostScriptFailed, 0, errors.New("Post script failed.")) //nolint:staticcheck // stock's words
}
