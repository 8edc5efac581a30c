package activation

import (
	"context"

	"podstarter/classads"
	"podstarter/condor/image"
	"podstarter/payload"
	"podstarter/starter/imagefile"
	"podstarter/starter/payloadrun"
	"podstarter/starter/userimage"
)

// fillByCredentials has the binding fill the container with the layers of the job's image, if its user sends credentials
// (docker_send_credentials) and the kubelet cannot pull it without.
func (a *activation) fillByCredentials(ctx context.Context, req *payload.BindRequest, f *filling) error {
	a.job.ImageEnv = nil
	if !a.job.Ad.BoolOr("DockerSendCredentials", false) || a.image.Default() || !a.job.FromImage() {
		return nil
	}
	carrier, ok := a.opt.Settings.Images.Carrier()
	if !ok || a.opt.Registries == nil {
		a.log.Warn("The job's credentials for registries are of no use here: this site has no " + image.KnobCarrier)
		return nil
	}
	found, err := userimage.Finder{
		Registries: a.opt.Registries, Ask: a.opt.Settings.AskRegistries, MaxBytes: a.opt.Settings.MaxImageFile, Log: a.log,
		Fetch: func(ctx context.Context) (*classads.Ad, error) {
			return a.peers.shadow.GetDockerCreds(ctx, a.opt.Settings.Condor.Credentials.PlainTokens)
		},
	}.Find(ctx, a.image.Image.String())
	if err != nil || found == nil {
		return err
	}
	filler, err := a.filler()
	if err != nil {
		return err
	}
	layered := imagefile.Layered{Written: a.image.Image.String(), Layers: found.Layers(), Copy: found.Copy}
	a.job.ImageEnv = found.Env
	a.job.Own = &payloadrun.OwnCommand{ImageCommand: payload.ImageCommand(found.Command)}
	req.Image, req.Written, req.ChosenBy, req.Pin, req.Latest = carrier.String(), "", image.KnobCarrier, false, false
	req.Files = "layers of " + found.Digest.String()
	req.Fill = func(ctx context.Context, w payload.Wrapper) (err error) {
		f.copied, err = filler.Fill(ctx, layered, w)
		return err
	}
	return nil
}
