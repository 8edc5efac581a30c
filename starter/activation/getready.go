package activation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/image"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/sandbox/filetransfer"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
	"podstarter/starter/steps"
	"podstarter/starter/submitside"
	"podstarter/starter/transfer"
)

// getReady brings the job's files in and makes the payload slot run the job's
// image, both at once: either may take minutes, and neither needs the other.
// The first failure cancels the other half and is the one that counts.
//
// Hooks may change the job and its image. So the image is chosen after the hook
// before the transfer; if there is a hook after the transfer, the binding waits
// for that one.
func (a *activation) getReady(ctx context.Context) error {
	if err := a.guideSetup(ctx); err != nil {
		return err
	}
	if err := a.site.hooks.Prepare(ctx, job.HookBeforeTransfer); err != nil {
		return err
	}
	if err := a.openFiles(); err != nil {
		return err
	}
	if a.site.hooks.Has(job.HookPrepareJob) {
		return a.bindAfterStageIn(ctx, func() error {
			if err := a.site.hooks.Prepare(ctx, job.HookPrepareJob); err != nil {
				return err
			}
			return a.choose()
		})
	}
	if err := a.choose(); err != nil {
		return err
	}
	if a.image.IsFile() && a.image.File.Root == "" && a.keepsContainers() {
		// A container may have these files already, which they themselves show.
		return a.bindAfterStageIn(ctx, func() error { return nil })
	}
	return a.bindBesideStageIn(ctx)
}

func (a *activation) bindAfterStageIn(ctx context.Context, between func() error) error {
	if err := steps.Run(ctx, a.log, "stage-in", a.stageIn); err != nil {
		return err
	}
	if err := between(); err != nil {
		return err
	}
	return steps.Run(ctx, a.log, "bind", a.bind)
}

func (a *activation) bindBesideStageIn(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	halves := []struct {
		name string
		run  func(context.Context) error
	}{{"bind", a.bind}, {"stage-in", a.stageIn}}
	var both rescue.Group
	for _, half := range halves {
		both.Go(func() {
			if err := rescue.Do(func() error { return steps.Run(ctx, a.log, half.name, half.run) }); err != nil {
				cancel(err) // the first cause stays
			}
		})
	}
	both.Wait()
	return context.Cause(ctx)
}

// bind asks the backend for a container with the job's image.
func (a *activation) bind(ctx context.Context) error {
	if err := a.health.Rest(ctx); err != nil {
		return err
	}
	wanted := ""
	if !a.image.Default() {
		wanted = a.image.Image.String()
	}
	a.notes.binds = time.Now()
	req := payload.BindRequest{
		Activation:   a.job.Name,
		Image:        wanted,
		Written:      writtenImage(a.image, a.job.Ad),
		ChosenBy:     a.image.Knob,
		Owner:        a.job.Info.User,
		Bound:        func(b payload.Binding) { a.notes.bound = b },
		Size:         a.job.SlotSize(),
		Group:        a.job.Group(),
		Pin:          a.asksForCommand(),
		Latest:       a.job.FromImage() && strings.EqualFold(a.job.Ad.StringOr("DockerPullPolicy", ""), "always"),
		OwnProcesses: a.job.OwnProcesses(),
		Report:       func(progress string) { a.log.Info("Binding: " + progress) },
	}
	a.job.Own = nil
	files, err := a.fillBy(ctx, &req)
	defer files.close()
	var container payload.Container
	if err == nil {
		container, err = a.lease.Bind(ctx, req)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if a.image.Says != "" {
			err = fmt.Errorf("%w (%s)", err, a.image.Says)
		}
		return a.notOfSitesChoice(failure.OfBinding(err))
	}
	a.health.Bound()
	a.work.container = payloadrun.NewContainer(container, payloadrun.Options{
		UID: a.job.UID, GID: a.job.GID, MaxTasks: a.opt.Settings.MaxTasks, NoNetwork: a.noNetwork, Orders: a.orders, Started: a.health.Started,
		OutOfMemory: a.heldForMemory, KernelKilled: a.gauges.meter.KernelKilled, Log: a.log,
	})
	runs := container.Image()
	switch {
	case a.job.Contained != nil: // the runtime brings it later
		runs = a.job.Contained.Image
	case req.Fill != nil:
		runs = a.image.Name()
	}
	a.log.Info("Payload container runs image " + runs)
	if a.noNetwork {
		a.log.Info("What runs in the payload container for this job has no network (docker_network_type = none, or NO_JOB_NETWORKING)")
	}
	a.noteBound(runs, files.copied)
	return a.learnCommand(ctx, container)
}

// notOfSitesChoice keeps a job from being held for an image file that the site chose for it.
func (a *activation) notOfSitesChoice(err error) error {
	f := failure.Of(err)
	if !a.image.IsFile() || a.image.Knob == "" || shadow.ShouldVacate(f.Code, f.Subcode) {
		return err
	}
	return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("%w; it is the site's choice and not the job's, correct %s", err, a.image.Knob))
}

// writtenImage is the job's own name for its image, empty if it has none.
func writtenImage(d image.Decision, ad *classads.Ad) string {
	if d.Default() || d.Knob != "" || d.IsFile() {
		return ""
	}
	for _, name := range []string{"DockerImage", "ContainerImage"} {
		if text, err := ad.GetString(name); err == nil && strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// choose decides which image the job runs in, and whether with a network.
func (a *activation) choose() error {
	err := a.chooseImage()
	if err == nil {
		a.noNetwork, err = a.job.NoNetwork()
	}
	return err
}

// chooseImage decides which image the job runs in.
func (a *activation) chooseImage() error {
	if !a.opt.Settings.InPod() {
		return a.contain()
	}
	var err error
	if a.image, err = a.opt.Settings.Images.Choose(a.job.Ad, a.job.Machine); err != nil {
		if m := (*image.Mistake)(nil); errors.As(err, &m) {
			// This mistake shows only with this job; others may run here.
			err = failure.New(shadow.VacateContainerError, 0, fmt.Errorf("this execution point cannot choose the job's image: %w", m))
		}
		return err
	}
	if a.image.Says != "" {
		a.log.Info("Image: " + a.image.Says)
	}
	a.job.Unpacked = a.unpacked()
	return nil
}

// contain decides whether the machine's own Apptainer runs the job. Docker's jobs do not run on a machine without Docker.
func (a *activation) contain() error {
	if a.job.Ad.BoolOr("WantDocker", false) {
		return failure.New(shadow.VacateContainerError, 0, errors.New("the job is one of the docker universe, but this execution point has no Docker; with universe = container it could run by Apptainer"))
	}
	if err := a.job.Contain(); err != nil || a.job.Contained != nil {
		return err
	}
	if image.AsksForContainer(a.job.Ad) {
		return failure.New(shadow.VacateContainerError, 0, errors.New("the job wants a container image and does not say of which kind (WantSIF, WantSandboxImage or WantDockerImage); this execution point has no containers for it"))
	}
	return nil
}

// maxInputTries bounds how often the input files are fetched: a shadow that
// always answers RetryTransfer would otherwise keep starter and shadow busy for
// ever.
const maxInputTries = 3

// stageIn fetches the job's input files and asks the shadow what to do with the
// result: start the job, even without its files, try again, or give up
// (starter_guidance.cpp).
func (a *activation) stageIn(ctx context.Context) error {
	err := a.fetchInput(ctx)
	if err == nil {
		a.work.inventory.Before(ctx)
		close(a.stagedIn)
	}
	return err
}

func (a *activation) fetchInput(ctx context.Context) error {
	for try := 1; ; try++ {
		var failed error
		if a.files != nil {
			failed = a.files.Fetch(ctx)
			if failed != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if failed == nil {
				if err := a.verifyCheckpoint(ctx); err != nil {
					return err
				}
			}
		} else if err := a.creds.DelegateProxy(ctx); err != nil {
			return err
		}
		if filetransfer.Stalled(failed) { // the shadow answers when its half has ended (jic_shadow.cpp:verifyXferProgressing)
			return failure.OfTransfer(failed, "Failed to transfer files: ")
		}
		verdict := a.guide().Converse(ctx, submitside.AboutEnvironment)
		switch {
		case errors.Is(verdict, submitside.ErrStartJob):
			if failed != nil {
				a.log.Warn("The shadow wants the job started although its input failed", "error", failed)
			}
			return nil
		case errors.Is(verdict, submitside.ErrRetryTransfer) && a.files != nil && try < maxInputTries:
			a.log.Warn("The shadow wants the input files sent again", "error", failed, "try", try)
			if err := submitside.Pause(ctx, transfer.ReapTime); err != nil {
				return err
			}
		case failed != nil && (verdict == nil || !errors.Is(verdict, shadow.ErrLost)):
			a.log.Info(job.LineSkipped(a.job.Info))
			return failure.OfTransfer(failed, "Failed to transfer files: ")
		case errors.Is(verdict, submitside.ErrAbort):
			return failure.New(shadow.VacateStarterError, 0, errors.New("the shadow ordered the job to be given up"))
		case errors.Is(verdict, submitside.ErrRetryTransfer):
			return nil // the files are here, whatever the shadow's half reports
		default:
			return verdict
		}
	}
}
