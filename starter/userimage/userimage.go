// Package userimage finds out whether a job's image is one that only the job's user may pull, and opens it with the
// credentials that the submit side sends (docker_send_credentials).
//
// They go to the registry and nowhere else: where the kubelet would find them, others would. So such an image is not
// pulled by the kubelet, but copied into a container by the starter.
package userimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"podstarter/classads"
	"podstarter/condor/image"
	"podstarter/condor/shadow"
	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/registry"
	"podstarter/starter/failure"
)

// Registries asks registries.
type Registries interface {
	// Shows has no error if the registry shows the image without a user's credentials, so that the kubelet can
	// probably pull it.
	Shows(ctx context.Context, img imageref.Image) error
	// As asks with the credentials in docker's config.json.
	As(config []byte) (*registry.User, error)
}

// Finder finds images.
type Finder struct {
	Registries Registries
	// Ask says whether registries may be asked without a user's credentials (POD_STARTER_ASK_REGISTRIES).
	Ask bool
	// Fetch asks the shadow for the credentials; see [shadow.Client.GetDockerCreds].
	Fetch func(ctx context.Context) (*classads.Ad, error)
	// MaxBytes bounds the image as the registry has it (POD_STARTER_MAX_IMAGE_FILE).
	MaxBytes int64
	Log      *slog.Logger
}

// Find opens an image; nil without an error if the kubelet is to pull it. Errors say what becomes of the job.
func (f Finder) Find(ctx context.Context, name string) (*registry.Image, error) {
	user, err := f.user(ctx)
	if err != nil || user == nil {
		return nil, err
	}
	img, err := imageref.Parse(name)
	if err != nil {
		return nil, nil //nolint:nilerr // the binding says what is wrong with the name
	}
	if !user.Has(img) {
		f.Log.Info("The job sends no credentials for the registry of image " + img.String())
		return nil, nil
	}
	if f.Ask && f.Registries.Shows(ctx, img) == nil {
		f.Log.Info("The job's credentials for registries are not needed for image " + img.String())
		return nil, nil
	}
	found, err := user.Open(ctx, img)
	if err != nil {
		return nil, err
	}
	if found.Bytes > f.MaxBytes {
		return nil, hold(image.SubcodeFileTooLarge, fmt.Errorf("image %.300q is too large for a container here: the registry has %d bytes of it, and all that is in it may have %d", img, found.Bytes, f.MaxBytes))
	}
	f.Log.Info("Image "+img.String()+" is fetched with the job's credentials", "layers", found.Layers(), "bytes", found.Bytes)
	return found, nil
}

// user has the credentials that the submit side sends; nil if it is too old to send any, or everybody could read along.
func (f Finder) user(ctx context.Context) (*registry.User, error) {
	config, err := f.Fetch(ctx)
	switch refusal := (*shadow.Refusal)(nil); {
	case errors.Is(err, shadow.ErrUnsupported), errors.Is(err, shadow.ErrNotEncrypted): // stock goes on without them, too
		f.Log.Warn("The job's credentials for registries are not used", "error", err)
		return nil, nil
	case errors.As(err, &refusal):
		return nil, hold(0, errors.New(refusal.Text)) // as stock (docker_proc.cpp:DockerProc::StartJob)
	case err != nil:
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, hold(0, errors.New("the job's credentials for registries are not understood; ask the access point's admin what DOCKER_PAT_PRODUCER prints"))
	}
	user, err := f.Registries.As(text)
	if err != nil {
		return nil, hold(0, err)
	}
	return user, nil
}

func hold(subcode int, err error) error {
	return failure.New(shadow.HoldInvalidDockerImage, subcode, err)
}
