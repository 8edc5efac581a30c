package activation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"podstarter/condor/image"
	"podstarter/condor/shadow"
	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/registry"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/imagefile"
	"podstarter/starter/payloadrun"
)

// Registries asks registries.
type Registries interface {
	// Resolve is without an error if the kubelet can probably pull the image.
	Resolve(ctx context.Context, img imageref.Image) (digest.Digest, error)
	As(config []byte) (*registry.User, error)
}

// fillByCredentials has the binding fill the container with the layers of the job's image, if its user sends credentials for
// the registry (docker_send_credentials) and the image cannot be had without. They go to the registry and nowhere
// else: where the kubelet would find them, others would.
func (a *activation) fillByCredentials(ctx context.Context, req *payload.BindRequest) error {
	a.job.ImageEnv = nil
	if !a.job.Ad.BoolOr("DockerSendCredentials", false) || a.image.Default() || !a.job.FromImage() {
		return nil
	}
	carrier, ok := a.opt.Settings.Images.Carrier()
	if !ok || a.opt.Registries == nil {
		a.log.Warn("The job's credentials for registries are of no use here: this site has no " + image.KnobCarrier)
		return nil
	}
	user, err := a.registryUser(ctx)
	if err != nil || user == nil {
		return err
	}
	img, err := imageref.Parse(a.image.Image.String())
	if err != nil || !user.Has(img) {
		return nil // the binding says what is wrong with the name
	}
	if a.opt.Settings.AskRegistries {
		if _, err := a.opt.Registries.Resolve(ctx, img); err == nil {
			a.log.Info("The job's credentials for registries are not needed for image " + img.String())
			return nil
		}
	}
	found, err := user.Open(ctx, img)
	if err != nil {
		return err
	}
	if most := a.opt.Settings.MaxImageFile; found.Bytes > most {
		return failure.New(shadow.HoldInvalidDockerImage, image.SubcodeFileTooLarge, fmt.Errorf(
			"image %.300q is too large for a container here: the registry has %d bytes of it, and all that is in it may have %d", img, found.Bytes, most))
	}
	a.log.Info("Image "+img.String()+" is fetched with the job's credentials", "layers", found.Layers(), "bytes", found.Bytes)
	filler, err := a.filler()
	if err != nil {
		return err
	}
	layered := imagefile.Layered{Written: img.String(), Layers: found.Layers(), Copy: found.Copy}
	a.job.ImageEnv = found.Env
	a.job.Own = &payloadrun.OwnCommand{ImageCommand: payload.ImageCommand(found.Command)}
	req.Image, req.Written, req.ChosenBy, req.Pin, req.Latest = carrier.String(), "", image.KnobCarrier, false, false
	req.Files = "layers of " + found.Digest.String()
	req.Fill = func(ctx context.Context, w payload.Wrapper) error { return filler.Fill(ctx, layered, w) }
	return nil
}

// registryUser has the credentials that the submit side sends; nil if it cannot send any.
func (a *activation) registryUser(ctx context.Context) (*registry.User, error) {
	hold := func(err error) error { return failure.New(shadow.HoldInvalidDockerImage, 0, err) }
	config, err := a.peers.shadow.GetDockerCreds(ctx, a.opt.Settings.Condor.Credentials.PlainTokens)
	switch refusal := (*shadow.Refusal)(nil); {
	case errors.Is(err, shadow.ErrUnsupported):
		a.log.Warn("The job's credentials for registries are not used", "error", err)
		return nil, nil
	case errors.As(err, &refusal):
		return nil, hold(errors.New(refusal.Text)) // as stock (docker_proc.cpp:DockerProc::StartJob)
	case errors.Is(err, shadow.ErrNotEncrypted):
		return nil, hold(fmt.Errorf("the job's credentials for registries cannot be fetched: %w; SEC_DEFAULT_ENCRYPTION = REQUIRED at the access point helps", err))
	case err != nil:
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, hold(errors.New("the job's credentials for registries are not understood"))
	}
	user, err := a.opt.Registries.As(text)
	if err != nil {
		return nil, hold(err)
	}
	return user, nil
}
