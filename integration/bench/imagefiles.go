package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podstarter/condor/image"
	"podstarter/integration/harness"
	"podstarter/integration/measured"
)

// imagesPart is the name of the part.
const imagesPart = "images"

var imageRuns = flag.Int("image-runs", 7, "images: jobs of each kind; first pulls of the image from the registry are half as many")

// The image of these jobs, in both pilots, and a directory with its files beside it in that with Apptainer.
const (
	largeDir   = harness.ImageDirectories
	largeFile  = largeDir + "/large.sif"
	largeFiles = largeDir + "/large"
)

// imageBench measures how long jobs wait for an image that is a file, under both starters, and for the same image from a
// registry.
type imageBench struct {
	pool *harness.Pool
	imageResults
}

// imageResults are those times.
type imageResults struct {
	when           time.Time
	machine        string
	size, unpacked int64 // bytes of the file, and of the files in it
	entries        int
	// From the start of the starter to that of the process: with Apptainer; here, in a fresh container and in one that is kept; and with the
	// image in a registry, pulled, and on the node.
	apptainer, fresh, kept, pulled, there []time.Duration
	// Reading the image and writing its files: by unsquashfs, and here.
	unsquashfs, copied []time.Duration
	// reader and writer are the most memory that these had, in KiB.
	reader, writer int
}

func imageFiles(ctx context.Context) error {
	b := &imageBench{imageResults: imageResults{when: time.Now(), machine: measured.Machine()}}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"pool with Apptainer", b.open},
		{"image", b.build},
		{"unsquashfs", b.unsquash},
		{"Apptainer", func(ctx context.Context) (err error) {
			b.apptainer, err = b.starts(ctx, harness.StockApptainer, "")
			return err
		}},
		{"fresh containers", b.copies},
		{"a container that is kept", b.keeps},
		{"the registry", b.registry},
	} {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(began).Seconds(), step.name)
	}
	if err := b.configure(ctx); err != nil {
		return err
	}
	text := b.tables()
	if _, err := os.Stdout.WriteString(text); err != nil || *docs == "" {
		return err
	}
	return measured.Write(filepath.Join(*docs, "images.md"), "make bench-images", text)
}

func (b *imageBench) open(ctx context.Context) (err error) {
	if b.pool, err = harness.Open(ctx); err != nil {
		return err
	}
	if err := b.pool.Up(ctx, "--stock=false", "--stock-docker=false", "--stock-apptainer", "--slots", "1", "--spares", "0", "--pullers", "0",
		"--partitionable=false", "--mode", "shared", "--network", "host"); err != nil {
		return err
	}
	b.pool, err = harness.Open(ctx)
	return err
}

// build has Apptainer build a large image of programs and libraries, and brings it to the other pilot.
func (b *imageBench) build(ctx context.Context) error {
	definition := "Bootstrap: docker\nFrom: " + b.pool.Image("debian") + "\n%setup\n    mkdir -p \"$APPTAINER_ROOTFS/opt\"\n    cp -a /usr/lib /usr/share /usr/bin \"$APPTAINER_ROOTFS/opt/\"\n"
	script := `mkdir -p "$1" && cd "$1" && cat >large.def && apptainer -q build -F --no-https large.sif large.def >log 2>&1 || { cat log >&2; exit 1; }
apptainer sif list large.sif | awk -F '|' '/Squashfs/ {split($4, at, "-"); gsub(/[^0-9]/, "", at[1]); print at[1]}' >at
rm -rf large && unsquashfs -no-progress -quiet -no-xattrs -offset "$(cat at)" -dest large large.sif >log 2>&1 || { cat log >&2; exit 1; }
stat -c %s large.sif; du -s -B1 --apparent-size large | cut -f 1; find large | wc -l`
	out, err := b.pool.EPInput(ctx, harness.StockApptainer, strings.NewReader(definition), "sh", "-c", script, "build", largeDir)
	if err != nil {
		return fmt.Errorf("building the image: %w\n%s", err, out)
	}
	if _, err := fmt.Sscan(out, &b.size, &b.unpacked, &b.entries); err != nil {
		return fmt.Errorf("reading the image's sizes from %q: %w", out, err)
	}
	text, err := b.pool.EP(ctx, harness.StockApptainer, "base64", largeFile)
	if err != nil {
		return err
	}
	_, err = b.pool.EPInput(ctx, harness.Ours, strings.NewReader(text), "sh", "-c", `mkdir -p "$1" && base64 -d >"$2"`, "bring", largeDir, largeFile)
	return err
}

// unsquash unpacks the image's squashfs, of which build has noted where in the file it is.
func (b *imageBench) unsquash(ctx context.Context) error {
	const script = `cd "$1" || exit 1
for run in $(seq "$2"); do rm -rf out; began=$(date +%s%N); unsquashfs -no-progress -quiet -no-xattrs -offset "$(cat at)" -dest out large.sif >log 2>&1 || { cat log >&2; exit 1; }; echo $(($(date +%s%N) - began)); done; rm -rf out`
	out, err := b.pool.EP(ctx, harness.StockApptainer, "sh", "-c", script, "unsquash", largeDir, strconv.Itoa(*imageRuns))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	for _, field := range strings.Fields(out) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return fmt.Errorf("reading the times of unsquashfs from %q: %w", out, err)
		}
		b.unsquashfs = append(b.unsquashfs, time.Duration(n))
	}
	return nil
}

// configure gives the starter knobs; none take them back.
func (b *imageBench) configure(ctx context.Context, knobs ...string) error {
	text := strings.NewReader(strings.Join(append(knobs, ""), "\n"))
	_, err := b.pool.EPInput(ctx, harness.Ours, text, "sh", "-c", `cat >"$1" && condor_reconfig -startd`, "configure", configFile)
	return err
}

// withFiles are the knobs for images that are files.
func (b *imageBench) withFiles(more ...string) []string {
	return append([]string{image.KnobCarrier + " = " + b.pool.Image("empty"), image.KnobPaths + " = " + largeDir}, more...)
}

// submit runs jobs one after another, in the image that is a file, or in one of a registry.
func (b *imageBench) submit(ctx context.Context, side harness.Side, reference string, n int) ([]harness.Run, error) {
	commands := "universe = container\ncontainer_image = " + largeFile + "\ntransfer_container = False\n"
	if reference != "" {
		commands = "universe = docker\ndocker_image = " + reference + "\n"
	}
	jobs, err := b.pool.Submit(ctx, harness.Submission{
		Name: "bench-image", Side: side, Count: n,
		Commands: commands + "executable = /bin/true\ntransfer_executable = False\nshould_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n",
	})
	if err != nil {
		return nil, err
	}
	var runs []harness.Run
	for _, job := range jobs {
		run, err := finish(ctx, job)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, job.Describe())
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// starts are the times that these jobs wait.
func (b *imageBench) starts(ctx context.Context, side harness.Side, reference string) ([]time.Duration, error) {
	runs, err := b.submit(ctx, side, reference, *imageRuns)
	return startTimes(runs), err
}

func startTimes(runs []harness.Run) []time.Duration {
	var all []time.Duration
	for _, run := range runs {
		if took, ok := startTime(run); ok {
			all = append(all, took)
		}
	}
	return all
}

// copies runs jobs in fresh containers, and looks at what the copying takes.
func (b *imageBench) copies(ctx context.Context) error {
	if err := b.configure(ctx, b.withFiles()...); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		b.watchMemory(watching)
	}()
	runs, err := b.submit(ctx, harness.Ours, "", *imageRuns)
	stop()
	<-watched
	b.fresh = startTimes(runs)
	for _, run := range runs {
		for _, l := range run.Lines {
			if _, rest, ok := strings.Cut(l.Text, "The container has the files of image"); ok {
				if _, seconds, ok := strings.Cut(rest, "seconds="); ok {
					if s, err := strconv.ParseFloat(strings.Fields(strings.Trim(seconds, `"`))[0], 64); err == nil {
						b.copied = append(b.copied, time.Duration(s*float64(time.Second)))
					}
				}
			}
		}
	}
	if err == nil && (len(b.copied) != len(runs) || b.reader == 0 || b.writer == 0) {
		err = fmt.Errorf("%d jobs, but the log has %d copies, and the programs of these had %d and %d KiB", len(runs), len(b.copied), b.reader, b.writer)
	}
	return err
}

// watchMemory notes the most memory of the two programs that copy.
func (b *imageBench) watchMemory(ctx context.Context) {
	for ctx.Err() == nil {
		paths, _ := filepath.Glob("/proc/[0-9]*/status")
		for _, path := range paths {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			of := (*int)(nil)
			switch {
			case bytes.HasPrefix(command, []byte("condor_pod_imagetree\x00")):
				of = &b.writer
			case bytes.Contains(command, []byte("condor_pod_unpacker\x00")):
				of = &b.reader
			default:
				continue
			}
			status, _ := os.ReadFile(path)
			for l := range strings.Lines(string(status)) {
				if value, ok := strings.CutPrefix(l, "VmHWM:"); ok {
					n, _ := strconv.Atoi(strings.Fields(value)[0])
					*of = max(*of, n)
				}
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// keeps runs jobs in a container that is kept. The first one fills it.
func (b *imageBench) keeps(ctx context.Context) error {
	if err := b.configure(ctx, b.withFiles("POD_STARTER_RESET = image")...); err != nil {
		return err
	}
	all, err := b.starts(ctx, harness.Ours, "")
	if len(all) > 1 {
		b.kept = all[1:]
	}
	return err
}

// registry runs jobs with the same files in an image of the pool's registry: pulled by the first job, and then on the node.
func (b *imageBench) registry(ctx context.Context) error {
	if err := b.configure(ctx); err != nil {
		return err
	}
	text, err := b.pool.EP(ctx, harness.StockApptainer, "sh", "-c", `tar -C "$1" -c . | base64`, "pack", largeFiles)
	if err != nil {
		return err
	}
	for i := range max(1, *imageRuns/2) {
		reference, err := b.push(ctx, text, strconv.Itoa(i))
		if err != nil {
			return err
		}
		runs, err := b.submit(ctx, harness.Ours, reference, 2)
		if err != nil {
			return err
		}
		took := startTimes(runs)
		if len(took) != 2 {
			return errors.New("not all jobs have a start by their log")
		}
		b.pulled, b.there = append(b.pulled, took[0]), append(b.there, took[1])
	}
	return nil
}

// push puts the files into the registry, in a layer that no node has.
func (b *imageBench) push(ctx context.Context, text, nonce string) (string, error) {
	registry, _, _ := strings.Cut(b.pool.Image("busybox"), "/")
	reference := registry + "/bench/large:" + nonce + "-" + strconv.FormatInt(time.Now().Unix(), 10)
	file, err := os.CreateTemp(b.pool.State, "layer")
	if err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	zip := gzip.NewWriter(file)
	// One file more than in any other layer: nodes know layers by what is in them.
	own := tar.NewWriter(zip)
	if err := errors.Join(own.WriteHeader(&tar.Header{Name: "./" + nonce + "-of-" + strconv.Itoa(os.Getpid()), Mode: 0o644}), own.Flush()); err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	if _, err := io.Copy(zip, base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))); err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	if err := zip.Close(); err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	layer, err := tarball.LayerFromFile(file.Name())
	if err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	config, err := img.ConfigFile()
	if err == nil {
		config.Architecture, config.OS = "amd64", "linux"
		config.Config = v1.Config{Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
		img, err = mutate.ConfigFile(img, config)
	}
	if err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	to, err := name.ParseReference(reference, name.Insecure)
	if err == nil {
		err = remote.Write(to, img, remote.WithContext(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("pushing the image %s: %w", reference, err)
	}
	return reference, nil
}

// tables is the whole result as text, in Markdown.
func (r *imageResults) tables() string {
	var b strings.Builder
	const mib = 1 << 20
	fmt.Fprintf(&b, "Measured on %s, %s: an image of %d MiB, with %d files and directories of %d MiB.\n", r.when.UTC().Format("2006-01-02"), r.machine, r.size/mib, r.entries, r.unpacked/mib)
	type row struct {
		name   string
		values []time.Duration
	}
	table := func(title string, rows ...row) {
		fmt.Fprintf(&b, "\n| %s, s | times | least | median | 9 of 10 | most | median / first row |\n|---|---|---|---|---|---|---|\n", title)
		for _, row := range rows {
			line(&b, row.name, row.values, spreadOf(rows[0].values))
		}
	}
	table("from the start of the starter to that of the process",
		row{"the stock starter, with Apptainer", r.apptainer}, row{"here, in a fresh container", r.fresh}, row{"here, in a container that is kept", r.kept},
		row{"here, the same image from a registry, pulled", r.pulled}, row{"here, the same image from a registry, on the node", r.there})
	table("all files of the image", row{"`unsquashfs`, on all processors", r.unsquashfs}, row{"here, read, passed on and written", r.copied})
	fmt.Fprintf(&b, "\nThe program that reads the image took %.1f MiB of memory in the pilot container, and the one that writes its files %.1f MiB in the payload container.\n", float64(r.reader)/1024, float64(r.writer)/1024)
	return b.String()
}
