package image

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An Image is a name, layers from the bottom up, and what the image says about running it. StopSignal, User, Env and the
// like are in Config.
type Image struct {
	Name   string
	Layers []Layer
	Config v1.Config
	// Architecture is that of its programs, as Go names it; empty for this machine's.
	Architecture string
}

// A Packed image is ready for a registry.
type Packed struct {
	Name           string
	Digest         v1.Hash
	Manifest       []byte
	ConfigBlob     []byte
	ConfigDigest   v1.Hash
	Layers         []Layer
	ManifestFormat types.MediaType
}

// Pack computes the image's configuration and manifest.
func (i Image) Pack() (Packed, error) {
	config := v1.ConfigFile{Architecture: cmp.Or(i.Architecture, runtime.GOARCH), OS: "linux", Config: i.Config, RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}}}
	for _, l := range i.Layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, l.Digest)
		config.History = append(config.History, v1.History{CreatedBy: "podstarter"})
	}
	p := Packed{Name: i.Name, Layers: i.Layers, ManifestFormat: types.OCIManifestSchema1}
	var err error
	var size int64
	if p.ConfigBlob, p.ConfigDigest, size, err = encode(config); err != nil {
		return Packed{}, fmt.Errorf("packing the image %s: %w", i.Name, err)
	}
	manifest := v1.Manifest{
		SchemaVersion: 2, MediaType: p.ManifestFormat,
		Config: v1.Descriptor{MediaType: types.OCIConfigJSON, Size: size, Digest: p.ConfigDigest},
		Layers: []v1.Descriptor{},
	}
	for _, l := range i.Layers {
		manifest.Layers = append(manifest.Layers, v1.Descriptor{MediaType: types.OCIUncompressedLayer, Size: l.Size, Digest: l.Digest})
	}
	if p.Manifest, p.Digest, _, err = encode(manifest); err != nil {
		return Packed{}, fmt.Errorf("packing the image %s: %w", i.Name, err)
	}
	return p, nil
}

func encode(v any) ([]byte, v1.Hash, int64, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, v1.Hash{}, 0, err
	}
	digest, size, err := v1.SHA256(bytes.NewReader(text))
	return text, digest, size, err
}
