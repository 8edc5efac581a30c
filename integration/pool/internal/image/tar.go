// Package image packs container images out of files and serves them: layers, configurations and manifests as the OCI
// image specification has them, with the types and the registry of go-containerregistry.
package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// A File is one entry of a layer.
type File struct {
	// Path is absolute in the image. The directories above it are made.
	Path string
	// Mode holds permission bits and fs.ModeDir, fs.ModeSymlink, fs.ModeSetuid.
	Mode fs.FileMode
	// Data is the content of a file or the target of a symbolic link. Source, if not empty, names a file to copy instead.
	Data   []byte
	Source string
	UID    int
	GID    int
}

// WriteTar writes the files as a layer. The same files give the same bytes: entries are sorted and carry no time.
func WriteTar(w io.Writer, files []File) error {
	files, err := withParents(files)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	for _, f := range files {
		if err := writeEntry(tw, f); err != nil {
			return fmt.Errorf("packing %s: %w", f.Path, err)
		}
	}
	return tw.Close()
}

// withParents sorts the files by path and adds the directories that nobody listed.
func withParents(files []File) ([]File, error) {
	have := map[string]bool{"/": true}
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path {
			return nil, fmt.Errorf("packing %q: not a clean absolute path", f.Path)
		}
		if have[f.Path] {
			return nil, fmt.Errorf("packing %s: listed twice", f.Path)
		}
		have[f.Path] = true
	}
	all := slices.Clone(files)
	for _, f := range files {
		for dir := path.Dir(f.Path); !have[dir]; dir = path.Dir(dir) {
			have[dir] = true
			all = append(all, File{Path: dir, Mode: fs.ModeDir | 0o755})
		}
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func writeEntry(tw *tar.Writer, f File) error {
	h := &tar.Header{
		Name: strings.TrimPrefix(f.Path, "/"), Mode: int64(f.Mode.Perm()), Uid: f.UID, Gid: f.GID,
		ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
	if f.Mode&fs.ModeSetuid != 0 {
		h.Mode |= 0o4000
	}
	switch {
	case f.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return tw.WriteHeader(h)
	case f.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(f.Data)
		return tw.WriteHeader(h)
	}
	data := f.Data
	if f.Source != "" {
		var err error
		if data, err = os.ReadFile(f.Source); err != nil {
			return err
		}
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(data))
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := tw.Write(data)
	return err
}
