package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// imageFiles is the directory of images that are files, in the home of who submits jobs.
const imageFiles = "images"

// ImageFile is an image that Apptainer builds.
type ImageFile struct {
	Name string // of the file
	// Definition is a file as "apptainer build" takes it, in which IMAGE_busybox stands for the reference
	// of that test image; empty for an image of the pool with the file's name.
	Definition string
	Options    []string // of "apptainer build"
}

// ImageDirectories is where execution points have the images that are directories.
const ImageDirectories = "/opt/images"

// BuildImageFiles has the execution point with Apptainer build images, and puts them where $(IMAGE_FILES) is. Those that are
// directories, whose links a transfer would not keep, come to the execution points instead.
func (p *Pool) BuildImageFiles(ctx context.Context, files []ImageFile) error {
	const dir = "/var/tmp/image-files"
	if _, err := p.EPInput(ctx, StockApptainer, strings.NewReader(""), "mkdir", "-p", dir); err != nil {
		return err
	}
	for _, f := range files {
		from, definition := "image.def", f.Definition
		if definition == "" {
			from = "docker://" + p.Images[strings.TrimSuffix(f.Name, ".sif")]
		}
		for name, reference := range p.Images {
			definition = strings.ReplaceAll(definition, "IMAGE_"+name, reference)
		}
		script := `cd "$1" && cat >image.def && to=$2 from=$3 && shift 3 && 
			if apptainer -q build -F --no-https "$@" "$to" "$from" >log 2>&1; then tar -c "$to" | base64; else cat log; exit 1; fi`
		out, err := p.EPInput(ctx, StockApptainer, strings.NewReader(definition), append([]string{"sh", "-c", script, "build", dir, f.Name, from}, f.Options...)...)
		if err != nil {
			return fmt.Errorf("build the image %s: %w\n%s", f.Name, err, out)
		}
		if slices.Contains(f.Options, "--sandbox") {
			for _, side := range []Side{StockApptainer, Ours} {
				to := `mkdir -p "$1" && cd "$1" && base64 -d | tar -x`
				if said, err := p.EPInput(ctx, side, strings.NewReader(out), "sh", "-c", to, "bring", ImageDirectories); err != nil {
					return fmt.Errorf("bring the image %s to the %s side: %w\n%s", f.Name, side, err, said)
				}
			}
			continue
		}
		bring := `mkdir -p "$1" && cd "$1" && base64 -d | tar -x --no-same-owner && chown -R "$2:$3" .`
		at := filepath.Join(p.User.Home, imageFiles)
		out, err = p.APRoot(ctx, strings.NewReader(out), "sh", "-c", bring, "bring", at, strconv.Itoa(p.User.UID), strconv.Itoa(p.User.GID))
		if err != nil {
			return fmt.Errorf("bring the image %s to where jobs are submitted: %w\n%s", f.Name, err, out)
		}
	}
	return nil
}

// ImageFile is the content of an image that was built.
func (p *Pool) ImageFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(p.User.Visible, imageFiles, name))
}

// OSDFPlugin is a program that stands in for the federation's plugin: it fetches from the web server what that would fetch from
// a cache.
const OSDFPlugin = `#!/bin/sh
if [ "$1" = -classad ]; then
echo 'MultipleFileSupport = true'; echo 'PluginVersion = "1.0"'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "osdf"'
exit; fi
sed 's,osdf:///,http://,' "$2" >.osdf.in
"$(condor_config_val LIBEXEC)/curl_plugin" -infile .osdf.in -outfile .osdf.out
code=$?
sed 's,http://,osdf:///,' .osdf.out >"$4"
rm .osdf.in .osdf.out
exit $code
`
