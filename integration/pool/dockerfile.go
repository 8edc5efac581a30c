package main

import (
	"context"
	"errors"
	"path/filepath"

	"podstarter/integration/pool/internal/buildah"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/image"
)

// baseName is the image that deploy/image/Dockerfile begins with: that of the registry is Debian as the mirror has it.
const baseName = "base"

// baseRoot is its root file system.
var baseRoot = debian.RootFS{Suite: condorRoots[referenceCondor].Suite, Variant: "minbase", Customize: []string{`rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*`}}

// checkDockerfile says whether the pilot image can be that of deploy/image/Dockerfile.
func (p *pool) checkDockerfile() error {
	switch {
	case !p.settings.Dockerfile:
		return nil
	case p.settings.Guests > 0 || p.settings.Address != "":
		return errors.New("an image from the Dockerfile: it is built in layers of OverlayFS, which the disk of a guest is made of already; leave --guest or --dockerfile out")
	case p.settings.Condor != referenceCondor:
		return errors.New("an image from the Dockerfile: that has HTCondor " + referenceCondor + ", and this pool " + p.settings.Condor + "; leave one out")
	}
	return nil
}

// baseImage is what the Dockerfile begins with.
func (p *pool) baseImage(ctx context.Context) (image.Image, error) {
	layer, err := p.rootLayer(ctx, debianFamily, baseRoot)
	return image.Image{Name: baseName, Layers: []image.Layer{layer}}, err
}

// buildPilot builds the pilot image by deploy/image/Dockerfile, with the base of the registry and the packages of the mirror, and
// returns its reference.
func (p *pool) buildPilot(ctx context.Context) (string, error) {
	if _, err := debian.InstallProgram(ctx, p.log, "buildah"); err != nil {
		return "", err
	}
	mirror, err := debian.Mirror(ctx)
	if err != nil {
		return "", err
	}
	return buildah.Store{Dir: filepath.Join(p.store.Root, "buildah"), Log: p.log}.Push(ctx, buildah.Build{
		Dockerfile: p.dir.Source("deploy", "image", "Dockerfile"), Context: p.dir.Source(),
		Args:   map[string]string{"BASE": p.images[baseName], "ARCHIVE": mirror},
		Stages: []string{"trimmed", "htcondor"},
	}, p.repo("pilot"))
}
