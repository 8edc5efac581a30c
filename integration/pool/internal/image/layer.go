package image

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podstarter/integration/pool/internal/statedir"
)

// A Layer is an uncompressed tar file: on one machine, compressing costs more time than it saves. Its digest is therefore
// its diff id as well.
type Layer struct {
	Path   string
	Digest v1.Hash
	Size   int64
}

// MakeLayer lets write fill a new file in dir, which becomes the layer.
func MakeLayer(dir string, write func(io.Writer) error) (Layer, error) {
	f, err := os.CreateTemp(dir, ".layer-*")
	if err != nil {
		return Layer{}, fmt.Errorf("packing a layer: %w", err)
	}
	defer os.Remove(f.Name())
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Layer{}, fmt.Errorf("packing a layer: %w", err)
	}
	layer, err := hashLayer(f.Name())
	if err != nil {
		return Layer{}, err
	}
	layer.Path = filepath.Join(dir, "layer-"+layer.Digest.Hex+".tar")
	if err := os.Rename(f.Name(), layer.Path); err != nil {
		return Layer{}, fmt.Errorf("packing a layer: %w", err)
	}
	return layer, nil
}

func hashLayer(path string) (Layer, error) {
	f, err := os.Open(path)
	if err != nil {
		return Layer{}, fmt.Errorf("reading a layer: %w", err)
	}
	defer f.Close()
	digest, size, err := v1.SHA256(f)
	if err != nil {
		return Layer{}, fmt.Errorf("reading the layer %s: %w", path, err)
	}
	return Layer{Path: path, Digest: digest, Size: size}, nil
}

// OpenLayer returns the tar file at path as a layer. Its digest is written beside it, so that the next time costs nothing.
func OpenLayer(path string) (Layer, error) {
	note := path + ".json"
	var l Layer
	if text, err := os.ReadFile(note); err == nil && json.Unmarshal(text, &l) == nil {
		if info, err := os.Stat(path); err == nil && info.Size() == l.Size {
			l.Path = path
			return l, nil
		}
	}
	l, err := hashLayer(path)
	if err != nil {
		return Layer{}, err
	}
	return l, statedir.WriteJSON(note, l)
}
