package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation with the name of an image in an OCI archive, for tools.
const refName = "org.opencontainers.image.ref.name"

// writeImages writes the image with only what deploy/image/Dockerfile adds to
// HTCondor: podstarter.oci.tar, to be copied from or mounted as a volume. With a
// base, podstarter-pilot.oci.tar is that image with the same files on top.
func (r Release) writeImages(ctx context.Context, dir string) error {
	addOn, err := r.index(dir, func(string) (v1.Image, error) { return empty.Image, nil })
	if err != nil {
		return err
	}
	if err := r.archive(addOn, filepath.Join(dir, "podstarter.oci.tar")); err != nil {
		return err
	}
	if r.Base == "" {
		return nil
	}
	pilot, err := r.index(dir, func(arch string) (v1.Image, error) { return pull(ctx, r.Base, arch) })
	if err != nil {
		return err
	}
	return r.archive(pilot, filepath.Join(dir, "podstarter-pilot.oci.tar"))
}

// pull gets the image of one architecture.
func pull(ctx context.Context, image, arch string) (v1.Image, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("the base image: %w", err)
	}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
	if err != nil {
		return nil, fmt.Errorf("the base image %s for %s: %w", image, arch, err)
	}
	return img, nil
}

// index is an image for all architectures, each made on a base.
func (r Release) index(dir string, on func(arch string) (v1.Image, error)) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		below, err := on(arch)
		if err != nil {
			return nil, err
		}
		img, err := r.image(dir, arch, below)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, nil
}

// image is a base with our layer.
func (r Release) image(dir, arch string, below v1.Image) (v1.Image, error) {
	files, err := r.files(dir, arch)
	if err != nil {
		return nil, err
	}
	text, err := r.pack(files)
	if err != nil {
		return nil, err
	}
	alone := below == empty.Image
	if alone {
		below = mutate.ConfigMediaType(mutate.MediaType(below, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	format, err := below.MediaType()
	if err != nil {
		return nil, err
	}
	layerFormat := types.OCILayer
	if format == types.DockerManifestSchema2 {
		layerFormat = types.DockerLayer
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		tarball.WithMediaType(layerFormat))
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(below, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.Time}, CreatedBy: "podstarter " + r.Version},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.Time}
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	for label, value := range map[string]string{"title": "podstarter", "version": r.Version, "revision": r.Commit, "licenses": license} {
		config.Config.Labels["org.opencontainers.image."+label] = value
	}
	if alone {
		config.Config.Entrypoint, config.Config.Cmd = []string{"/" + binDirectory + "/condor_pod_starter"}, []string{"-help"}
	}
	return mutate.ConfigFile(img, config)
}

// binDirectory is where STARTER of condor_config.d/50-podstarter.conf and the
// manifests of deploy/ look for the programs.
const binDirectory = "opt/podstarter/bin"

// A file of the layer.
type file struct {
	path   string // without the leading slash
	source string
	mode   fs.FileMode
}

// files are those that deploy/image/Dockerfile copies.
func (r Release) files(dir, arch string) ([]file, error) {
	files := []file{{"opt/podstarter/entrypoint", filepath.Join(r.Source, "deploy", "image", "entrypoint"), 0o755}}
	for _, p := range programs {
		files = append(files, file{binDirectory + "/" + p.Name, r.program(dir, p.Name, arch), 0o755})
	}
	configs, err := filepath.Glob(filepath.Join(r.Source, "condor_config.d", "*.conf"))
	if err != nil || len(configs) == 0 {
		return nil, fmt.Errorf("no files of configuration in %s/condor_config.d: %v", r.Source, err)
	}
	for _, c := range configs {
		files = append(files, file{"etc/condor/config.d/" + filepath.Base(c), c, 0o644})
	}
	return files, nil
}

// pack writes files as a layer, sorted, with the directories above them. All belong
// to root and have the release's time.
func (r Release) pack(files []file) ([]byte, error) {
	directories := map[string]bool{}
	for _, f := range files {
		for d := path.Dir(f.path); d != "."; d = path.Dir(d) {
			if !directories[d] {
				directories[d] = true
				files = append(files, file{path: d + "/", mode: 0o755})
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, f := range files {
		if err := r.entry(w, f); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// entry writes a file, or a directory if its path ends with a slash.
func (r Release) entry(w *tar.Writer, f file) error {
	header := &tar.Header{Name: f.path, Mode: int64(f.mode.Perm()), ModTime: r.Time, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if strings.HasSuffix(f.path, "/") {
		header.Typeflag = tar.TypeDir
		return w.WriteHeader(header)
	}
	info, err := os.Stat(f.source)
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	return copyFile(w, f.source)
}

// archive writes an image as an OCI layout in a tar file, which skopeo, podman,
// crane, buildah and containerd read.
func (r Release) archive(index v1.ImageIndex, target string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(target), ".oci-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	at, err := layout.Write(tmp, empty.Index)
	if err != nil {
		return fmt.Errorf("writing %s: %w", target, err)
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: r.Version})); err != nil {
		return fmt.Errorf("writing %s: %w", target, err)
	}
	var files []file
	err = filepath.WalkDir(tmp, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(tmp, p)
		files = append(files, file{filepath.ToSlash(inside), p, 0o644})
		return err
	})
	if err != nil {
		return err
	}
	text, err := r.pack(files)
	if err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o644)
}
