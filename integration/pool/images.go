package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/image"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/tool"
)

// imageNames are all images, in the order in which they are listed.
var imageNames = []string{"condor", "submit", "pilot", "pause", "debian", "busybox", "probe", "hostile", "foreign", "entry", "entryline", "layered", "empty"}

const (
	// maxSlots bounds the slots, and maxSpares the payload containers that are more than these need.
	maxSlots  = 32
	maxSpares = 16
	// payloadUID is the user of the first payload container's jobs (POD_STARTER_PAYLOAD_UID), and slot1 of the pilot image. The
	// image has a user for each container, slot1, slot2 and so on: those of the first are also the stock starter's, so that jobs
	// of the same slot have the same user here and there if containers are taken in order.
	payloadUID = 10001
	maxUsers   = maxSlots + maxSpares
)

// condorRoots are the root file systems of the pilot image by HTCondor's version: the Debian release that has it.
var condorRoots = map[string]debian.RootFS{
	"25.14": condorRoot("forky"),
	"23.9":  condorRoot("trixie"),
}

func condorRoot(suite string) debian.RootFS {
	return debian.RootFS{
		Suite: suite, Variant: "minbase", Packages: []string{"condor", "procps", "openssh-client", "openssh-server", "python3", "strace", "btrfs-progs"}, // strace for what gets to the disk, btrfs for disks with quotas
		Customize: []string{
			// The user who submits, and those that the stock starter runs jobs as: the ids are the payload's.
			fmt.Sprintf(`chroot "$1" useradd --uid %d --create-home --shell /bin/bash %s`, submitUID, submitUser),
			fmt.Sprintf(`for i in $(seq %d); do chroot "$1" useradd --uid $((%d+i)) --no-create-home --shell /bin/sh slot$i; done`, maxUsers, payloadUID-1),
			`rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*`,
		},
	}
}

// debianRoot is the root file system of an ordinary payload image.
var debianRoot = debian.RootFS{Suite: "bookworm", Variant: "minbase", Customize: []string{`rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*`}}

// repo is the reference of an image, without its tag.
func (p *pool) repo(name string) string {
	return registryAddress(p.settings) + "/" + image.Repo + name
}

// makeImages packs every image and puts it into the registry.
func (p *pool) makeImages(ctx context.Context) error {
	var condor, submit, system image.Layer
	var busybox string
	refs := p.chosenReferences()
	roots := make([]image.Layer, len(refs))
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return p.progress.step(gctx, "our programs", func(ctx context.Context) error { return p.buildPrograms(ctx) })
	})
	g.Go(func() error {
		return p.progress.step(gctx, "HTCondor "+p.settings.Condor, func(ctx context.Context) (err error) {
			condor, err = p.rootLayer(ctx, condorFamily, condorRoots[p.settings.Condor])
			return err
		})
	})
	if p.settings.APCondor != "" {
		g.Go(func() error {
			return p.progress.step(gctx, "HTCondor "+p.settings.APCondor, func(ctx context.Context) (err error) {
				submit, err = p.rootLayer(ctx, condorFamily, condorRoots[p.settings.APCondor])
				return err
			})
		})
	}
	g.Go(func() error {
		return p.progress.step(gctx, "Debian", func(ctx context.Context) (err error) {
			system, err = p.rootLayer(ctx, debianFamily, debianRoot)
			return err
		})
	})
	g.Go(func() error {
		return p.progress.step(gctx, "busybox", func(ctx context.Context) (err error) {
			busybox, err = p.busybox(ctx)
			return err
		})
	})
	for i, r := range refs {
		g.Go(func() error {
			return p.progress.step(gctx, "HTCondor with "+r.runtime, func(ctx context.Context) (err error) {
				roots[i], err = p.rootLayer(ctx, condorFamily, r.root)
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	err := p.progress.step(ctx, "images", func(ctx context.Context) error {
		images, err := p.compose(ctx, condor, submit, system, busybox)
		if err != nil {
			return err
		}
		for i, r := range refs {
			made, err := p.referenceImage(r, roots[i])
			if err != nil {
				return err
			}
			images = append(images, made)
		}
		if p.settings.Dockerfile {
			base, err := p.baseImage(ctx)
			if err != nil {
				return err
			}
			images = append(images, base)
		}
		return p.publish(ctx, images)
	})
	if err != nil || !p.settings.Dockerfile {
		return err
	}
	return p.progress.step(ctx, "the Dockerfile's image", func(ctx context.Context) error {
		ref, err := p.buildPilot(ctx)
		if err != nil {
			return err
		}
		p.images["pilot"] = ref
		return statedir.WriteJSON(imagesFile(p.dir), p.images)
	})
}

// Families of the cache.
const (
	condorFamily = "rootfs-condor"
	debianFamily = "rootfs-debian"
)

// rootDir returns the cache's directory of a root file system, which is freshly made if needed.
func (p *pool) rootDir(ctx context.Context, family string, root debian.RootFS) (string, error) {
	return p.store.Dir(ctx, family, root.Suite+"-"+cache.Key(root.Key()), func(ctx context.Context, dir string) error {
		return root.Make(ctx, p.log, filepath.Join(dir, "root.tar"), filepath.Join(dir, "tmp"))
	})
}

// busybox returns the path of a static busybox.
func (p *pool) busybox(ctx context.Context) (string, error) {
	dir, err := p.store.Dir(ctx, "busybox", cache.Key("1"), func(ctx context.Context, dir string) error {
		return debian.Package(ctx, p.log, "busybox-static", dir)
	})
	return filepath.Join(dir, "bin", "busybox"), err
}

// rootLayer returns a root file system as a layer, from the cache or freshly made.
func (p *pool) rootLayer(ctx context.Context, family string, root debian.RootFS) (image.Layer, error) {
	dir, err := p.rootDir(ctx, family, root)
	if err != nil {
		return image.Layer{}, err
	}
	return image.OpenLayer(filepath.Join(dir, "root.tar"))
}

// buildPrograms builds the starter and the wrapper to where `make build` has them, and the programs of the images. Go's own
// cache makes this cheap when nothing changed.
func (p *pool) buildPrograms(ctx context.Context) error {
	if ready := os.Getenv(programsEnv); ready != "" {
		return p.takePrograms(ready)
	}
	product, tests := p.dir.Module, p.dir.Source("integration")
	for _, b := range []struct{ out, module, pkg string }{
		{p.dir.Source("bin", "condor_pod_starter"), product, "./starter"},
		{p.dir.Source("bin", "condor_pod_wrapper"), product, "./wrapper"},
		{p.dir.Source("bin", "condor_pod_metrics"), product, "./metrics"},
		{p.dir.Source("bin", "condor_pod_unpacker"), product, "./unpacker"},
		{p.dir.Source("bin", "condor_pod_provisioner"), product, "./provisioner"},
		{p.dir.Path("bin", "pause"), tests, "./pool/images/pause"},
		{p.dir.Path("bin", "probe"), tests, "./images/probe"},
		{p.dir.Path("bin", "rootsh"), tests, "./pool/images/rootsh"},
	} {
		err := tool.Run(ctx, tool.Command{
			Args: []string{"go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.out, b.pkg},
			Dir:  b.module, Env: []string{"CGO_ENABLED=0"}, Log: p.log,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takePrograms copies the programs of the images that another run of this program has built into a directory. The starter
// and the wrapper are in the checkout, which both runs see.
func (p *pool) takePrograms(ready string) error {
	for _, name := range []string{"pause", "probe", "rootsh"} {
		if err := copyFile(filepath.Join(ready, name), p.dir.Path("bin", name), 0o755); err != nil {
			return fmt.Errorf("taking the programs of %s: %w", ready, err)
		}
	}
	return nil
}

// support are the files of every image with HTCondor. The contents of the pool pod and the stock execution point do not
// depend on our programs, so these pods need no restart when those change.
func (p *pool) support() []image.File {
	return []image.File{
		{Path: "/opt/podstarter/entrypoint", Mode: 0o755, Source: p.dir.Source("deploy", "image", "entrypoint")},
		{Path: "/etc/condor/config.d/50-podstarter.conf", Mode: 0o644, Source: p.dir.Source("condor_config.d", "50-podstarter.conf")},
		{Path: "/etc/condor/config.d/99-podstarter-health.conf", Mode: 0o644, Source: p.dir.Source("condor_config.d", "99-podstarter-health.conf")},
		{Path: "/etc/condor/config.d/97-podstarter-lifetime.conf", Mode: 0o644, Source: p.dir.Source("condor_config.d", "97-podstarter-lifetime.conf")},
	}
}

// pilotFiles are those that the pilot image has besides.
func (p *pool) pilotFiles() []image.File {
	return []image.File{
		{Path: "/etc/condor/config.d/55-podstarter-gpus.conf", Mode: 0o644, Source: p.dir.Source("condor_config.d", "55-podstarter-gpus.conf")},
		{Path: "/etc/condor/config.d/55-podstarter-size.conf", Mode: 0o644, Source: p.dir.Source("condor_config.d", "55-podstarter-size.conf")},
		{Path: "/etc/condor/config.d/95-podstarter-slots.conf", Mode: 0o644, Source: p.dir.Source("condor_config.d", "95-podstarter-slots.conf")},
		program("/opt/podstarter/bin/condor_pod_starter", p.dir.Source("bin", "condor_pod_starter")),
		program("/opt/podstarter/bin/condor_pod_wrapper", p.dir.Source("bin", "condor_pod_wrapper")),
		program("/opt/podstarter/bin/condor_pod_metrics", p.dir.Source("bin", "condor_pod_metrics")),
		program("/opt/podstarter/bin/condor_pod_unpacker", p.dir.Source("bin", "condor_pod_unpacker")),
		program("/opt/podstarter/bin/condor_pod_provisioner", p.dir.Source("bin", "condor_pod_provisioner")),
	}
}

func program(path, source string) image.File {
	return image.File{Path: path, Mode: 0o755, Source: source}
}

func plain(path, content string) image.File {
	return image.File{Path: path, Mode: 0o644, Data: []byte(content)}
}

// compose puts the images together.
func (p *pool) compose(ctx context.Context, condor, submit, system image.Layer, busybox string) ([]image.Image, error) {
	supported, err := p.layer("support", p.support())
	if err != nil {
		return nil, err
	}
	box, err := busyboxFiles(ctx, busybox)
	if err != nil {
		return nil, err
	}
	hostile := append(slices.Clone(box),
		image.File{Path: "/bin/rootsh", Mode: fs.ModeSetuid | 0o755, Source: p.dir.Path("bin", "rootsh")},
		image.File{Path: "/etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\njob:x:10001:0:job:/:/bin/sh\n")},
		// What the pod mounts comes over these; a directory above is open to the job.
		image.File{Path: "/opt/podstarter/bin/condor_pod_wrapper", Mode: 0o755, Data: []byte("#!/bin/sh\nexit 66\n")},
		image.File{Path: "/run", Mode: fs.ModeDir | 0o777},
		image.File{Path: "/var/lib/condor", Mode: fs.ModeSymlink | 0o777, Data: []byte("/srv/elsewhere")},
		// Groups that the runtime gives to the container's user, and root's group for a user with the payload's id.
		image.File{Path: "/etc/group", Mode: 0o644, Data: []byte("root:x:0:job\nloot:x:4242:root,job\n")},
	)
	if p.settings.APCondor == "" {
		submit = condor
	}
	lowest, err := p.layer("lowest", append(slices.Clone(box), plain("/data/replaced", "old"), plain("/data/removed", "old"), plain("/data/kind/file", "old"), plain("/emptied/old", "old"),
		plain("/emptied/deep/old", "old"), plain("/removed/old", "old"), image.File{Path: "/data/link", Mode: fs.ModeSymlink | 0o777, Data: []byte("replaced")}))
	if err != nil {
		return nil, err
	}
	var images []image.Image
	for _, i := range []struct {
		name   string
		base   []image.Layer
		files  []image.File
		config v1.Config
		arch   string
	}{
		{name: "condor", base: []image.Layer{condor, supported}},
		{name: "submit", base: []image.Layer{submit, supported}},
		{name: "pilot", base: []image.Layer{condor, supported}, files: p.pilotFiles()},
		{name: "pause", files: []image.File{program("/pause", p.dir.Path("bin", "pause"))}, config: v1.Config{Entrypoint: []string{"/pause"}}},
		{name: "debian", base: []image.Layer{system}, config: v1.Config{Cmd: []string{"/bin/bash"}}},
		{name: "busybox", files: box, config: v1.Config{Cmd: []string{"/bin/sh"}}},
		{name: "probe", files: []image.File{program("/probe", p.dir.Path("bin", "probe"))}},
		{name: "entry", files: []image.File{program("/probe", p.dir.Path("bin", "probe"))}, config: v1.Config{Entrypoint: []string{"/probe"}}},
		// As a Dockerfile's ENTRYPOINT without brackets makes it.
		{name: "entryline", files: box, config: v1.Config{Entrypoint: []string{"/bin/sh", "-c", `echo "line: $0 $*"; exit 3`}, Cmd: []string{"of", "image"}}},
		// Whose second layer replaces and removes what the first one has.
		{name: "layered", base: []image.Layer{lowest}, files: []image.File{
			plain("/data/replaced", "new"), plain("/data/.wh.removed", ""), plain("/data/kind", "new"), plain("/data/link", "new"), plain("/emptied/.wh..wh..opq", ""), plain("/emptied/new", "new"),
			plain("/.wh.removed", ""), plain("/root/secret", "readable only by root"),
		}, config: v1.Config{Env: []string{"FROM_IMAGE=1"}}},
		{name: "foreign", files: box, config: v1.Config{Cmd: []string{"/bin/sh"}}, arch: foreignArchitecture()},
		{name: "hostile", files: hostile, config: v1.Config{
			User: "nobody", WorkingDir: "/does/not/exist", StopSignal: "SIGUSR2",
			Env: []string{"LD_PRELOAD=/evil.so", "PATH=/nowhere", "GODEBUG=madvdontneed=1,gctrace=1", "GOTRACEBACK=crash", "HOME=/nowhere"},
		}},
	} {
		name := image.File{Path: "/image-name", Mode: 0o644, Data: []byte(i.name + "\n")}
		layer, err := p.layer(i.name, append(slices.Clone(i.files), name))
		if err != nil {
			return nil, err
		}
		images = append(images, image.Image{Name: i.name, Layers: append(i.base, layer), Config: i.config, Architecture: i.arch})
	}
	return append(images, image.Image{Name: "empty"}), nil
}

// foreignArchitecture is one that this machine does not have.
func foreignArchitecture() string {
	if runtime.GOARCH == "s390x" {
		return "amd64"
	}
	return "s390x"
}

// layer packs files as the top layer of an image, in place of the one packed before.
func (p *pool) layer(name string, files []image.File) (image.Layer, error) {
	dir := p.dir.Path("layers", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return image.Layer{}, fmt.Errorf("packing the image %s: %w", name, err)
	}
	layer, err := image.MakeLayer(dir, func(w io.Writer) error { return image.WriteTar(w, files) })
	if err != nil {
		return image.Layer{}, err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return image.Layer{}, err
	}
	for _, path := range old {
		if path != layer.Path {
			_ = os.Remove(path)
		}
	}
	return layer, nil
}

// busyboxFiles are busybox and a link to it for each of its applets.
func busyboxFiles(ctx context.Context, busybox string) ([]image.File, error) {
	out, err := tool.Output(ctx, tool.Command{Args: []string{busybox, "--list-full"}})
	if err != nil {
		return nil, fmt.Errorf("asking busybox for its applets: %w", err)
	}
	files := []image.File{
		{Path: "/bin/busybox", Mode: 0o755, Source: busybox},
		{Path: "/tmp", Mode: fs.ModeDir | 0o777},
	}
	for line := range strings.Lines(out) {
		path := "/" + strings.TrimSpace(line)
		// The list names busybox itself: a link in its place would be a link to itself.
		if path != "/bin/busybox" && path != "/" {
			files = append(files, image.File{Path: path, Mode: fs.ModeSymlink | 0o777, Data: []byte("/bin/busybox")})
		}
	}
	return files, nil
}

// publish puts the images into the registry and notes their references. The tag is part of an image's digest, so that
// another image has another reference.
func (p *pool) publish(ctx context.Context, images []image.Image) error {
	refs := map[string]string{}
	var errs []error
	for _, i := range images {
		packed, err := i.Pack()
		if err != nil {
			return err
		}
		if err := p.registryStore().Add(packed); err != nil {
			return err
		}
		tag := packed.Digest.Hex[:12]
		if i.Name == "pause" {
			tag = "1"
		}
		for _, t := range []string{tag, "latest"} {
			errs = append(errs, image.Push(ctx, registryAddress(p.settings), packed, t))
		}
		refs[i.Name] = p.repo(i.Name) + ":" + tag
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.images = refs
	return statedir.WriteJSON(imagesFile(p.dir), refs)
}
