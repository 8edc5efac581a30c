package image

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// File is an image in no registry: a SIF, a squashfs, or a directory with an image's files.
// The zero value is none.
type File struct {
	// Path is clean. It is relative to the job's sandbox, or to Root if there is one.
	Path string
	// Root is the directory of the pilot container that the site takes images from, and that
	// no link may lead out of. Empty for the job's sandbox.
	Root string
	// Written is the image as the job or the site wrote it.
	Written string
}

// IsFile reports whether the job's image is a file.
func (d Decision) IsFile() bool { return d.File != File{} }

// Name is the image in words.
func (d Decision) Name() string {
	if d.IsFile() {
		return d.File.Written
	}
	return d.Image.String()
}

// HasCarrier reports whether an image can be a file.
func (s *Site) HasCarrier() bool { return s.carrier != Reference{} }

// Carrier is the image of containers that get their files otherwise.
func (s *Site) Carrier() (Reference, bool) { return s.carrier, s.HasCarrier() }

func parseCarrier(text string) (Reference, error) {
	if text == "" {
		return Reference{}, nil
	}
	return Parse(text)
}

func parsePaths(list string) ([]string, error) {
	var paths []string
	var problems *multierror.Error
	for _, p := range splitList(list) {
		switch clean := path.Clean(p); {
		case !path.IsAbs(p):
			problems = multierror.Append(problems, fmt.Errorf("%s is not an absolute path", excerpt(p)))
		case clean == "/":
			problems = multierror.Append(problems, errors.New("/ is not a place for images: jobs would see all of the pilot's files that everybody may read; name the directories that have images"))
		default:
			paths = append(paths, clean)
		}
	}
	return paths, problems.ErrorOrNil()
}

// mayBeFile reports whether the name can be that of a file in the pilot container. Docker's
// rules know no such image, and what has a scheme would have to be fetched first.
func (w *wish) mayBeFile() bool {
	return !w.docker && !strings.Contains(w.text, "://") && !strings.HasPrefix(w.text, "~")
}

// fromFile is the decision for an image that is a file. Only the container's image is known
// here; whether the file exists and what it is shows when the job's files are there.
func (s *Site) fromFile(w *wish) (Decision, error) {
	d := Decision{Image: s.carrier, File: File{Written: w.text}}
	name := w.text
	if w.iwd != "" && !path.IsAbs(name) {
		name = path.Join(w.iwd, name)
	}
	clean := path.Clean(name)
	if path.IsAbs(name) {
		i := slices.IndexFunc(s.paths, func(root string) bool { return clean == root || strings.HasPrefix(clean, root+"/") })
		if i < 0 {
			return d, s.unknown(w, SubcodeNotAllowed, "image %s (%s): this site takes no images from there%s; transfer the image with the job, or ask %s",
				excerpt(w.text), w.source, s.pathsHint(), s.contact)
		}
		d.File.Root = s.paths[i]
		d.File.Path = strings.TrimPrefix(strings.TrimPrefix(clean, d.File.Root), "/")
		if d.File.Path == "" {
			d.File.Path = "."
		}
		return d, nil
	}
	switch {
	case !filepath.IsLocal(clean) || clean == ".":
		return d, hold(SubcodeInvalidReference, "the image name %s (%s) is not valid: it does not lead to a file in the job's directory", excerpt(w.text), w.source)
	case len(s.allowed) > 0:
		// Nobody can say which image it is.
		return d, hold(SubcodeNotAllowed, "image %s (%s) is not allowed here: it is a file, and this site allows only the images of %s; use one of these, or ask %s", excerpt(w.text), w.source, KnobAllowed, s.contact)
	}
	d.File.Path = clean
	return d, nil
}

func (s *Site) pathsHint() string {
	if len(s.paths) == 0 {
		return ""
	}
	return fmt.Sprintf(", only from %s (%s)", strings.Join(s.paths[:min(len(s.paths), maxShown)], ", "), KnobPaths)
}
