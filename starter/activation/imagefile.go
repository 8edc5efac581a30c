package activation

import (
	"context"
	"path"
	"path/filepath"

	"podstarter/condor/image"
	"podstarter/payload"
	"podstarter/payload/imagetree"
	"podstarter/starter/hostprog"
	"podstarter/starter/imagefile"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// maxImageEntries is how many files and directories an image that is a file may have. The
// largest images in use have some 500,000.
const maxImageEntries = 2_000_000

// unpacked says how the job starts in an image that is a file; nil for any other.
func (a *activation) unpacked() *payloadrun.Unpacked {
	file := a.image.File
	if !a.image.IsFile() {
		return nil
	}
	in := file.Root
	if in == "" {
		in = a.job.Sandbox.Scratch()
	}
	whole := filepath.Join(in, file.Path)
	return &payloadrun.Unpacked{Name: path.Base(whole), Path: whole}
}

// filling is how a binding gives the container the files of the job's image.
type filling struct {
	file  image.File
	image *imagefile.Image // nil until it was opened
	// copied is what the container was given; zero if it had it.
	copied imagefile.Copied
}

func (f *filling) close() { f.image.Close() }

// fillBy has the binding fill the container if the job's image is a file, or one that the kubelet may not pull. The caller
// closes the filling when the binding is over.
func (a *activation) fillBy(ctx context.Context, req *payload.BindRequest) (*filling, error) {
	f := &filling{file: a.image.File}
	if !a.image.IsFile() {
		return f, a.fillByCredentials(ctx, req, f)
	}
	req.ChosenBy = image.KnobCarrier
	if f.file.Root != "" || a.isStagedIn() {
		// A name that leads nowhere costs no container.
		var err error
		if f.image, err = imagefile.Open(f.file, a.job.Sandbox); err != nil {
			return f, err
		}
		if a.keepsContainers() {
			if req.Files, err = f.image.Identity(ctx, a.opt.Settings.MaxImageFile); err != nil {
				return f, err
			}
		}
	}
	filler, err := a.filler()
	if err != nil {
		return f, err
	}
	req.Refit = func(ctx context.Context, w payload.Wrapper) error { return filler.Refit(ctx, f.file.Written, w) }
	req.Fill = func(ctx context.Context, w payload.Wrapper) (err error) {
		if f.image == nil {
			select {
			case <-a.stagedIn:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if f.image, err = imagefile.Open(f.file, a.job.Sandbox); err != nil {
				return err
			}
		}
		f.copied, err = filler.Fill(ctx, f.image, w)
		return err
	}
	return f, nil
}

func (a *activation) filler() (imagefile.Filler, error) {
	f := imagefile.Filler{
		Limits: imagetree.Limits{Bytes: a.opt.Settings.MaxImageFile, Entries: maxImageEntries}, Time: a.opt.Settings.BindTimeout,
		Convert: a.programs().Convert, Activation: a.job.Name + ".image", Account: a.job.Account(), Log: a.log,
	}
	var err error
	f.Unpacker, err = hostprog.Beside(hostprog.Unpacker)
	return f, err
}

// keepsContainers says whether a container may serve the next job, so that it is of use to know
// whose files it has.
func (a *activation) keepsContainers() bool { return a.opt.Settings.Reset == settings.ResetImage }

// isStagedIn says whether the job's files are here.
func (a *activation) isStagedIn() bool {
	select {
	case <-a.stagedIn:
		return true
	default:
		return false
	}
}
