package imagefile_test

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/image"
	"podstarter/condor/job"
	"podstarter/payload"
	"podstarter/payload/imagetree"
	"podstarter/sandbox"
	"podstarter/sandbox/beneath"
	"podstarter/starter/hostprog"
	"podstarter/starter/imagefile"
)

// box is a sandbox.
type box struct{ root *beneath.Root }

func (box) Payload() sandbox.Owner { return sandbox.Self() }
func (b box) Root() *beneath.Root  { return b.root }

func newBox(t *testing.T) (box, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := beneath.OpenRoot(dir)
	must(t, err)
	t.Cleanup(root.Close)
	return box{root}, dir
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// end is what becomes of the job: "35/23", or "1021/0"; "fine" without an error.
func end(err error) string {
	f := (*job.Failure)(nil)
	switch {
	case err == nil:
		return "fine"
	case errors.As(err, &f):
		return fmt.Sprintf("%d/%d", f.Code, f.Subcode)
	}
	return err.Error()
}

func TestOpen(t *testing.T) {
	b, dir := newBox(t)
	site := t.TempDir()
	must(t,
		os.WriteFile(filepath.Join(dir, "x.sif"), []byte("image"), 0o644),
		os.Mkdir(filepath.Join(dir, "tree"), 0o755),
		os.Symlink("x.sif", filepath.Join(dir, "link")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "out")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644),
		os.Mkdir(filepath.Join(site, "flat"), 0o755),
		os.Symlink(filepath.Join(site, "flat"), filepath.Join(site, "latest")),
		os.Symlink("../../etc", filepath.Join(site, "out")),
	)
	for name, tt := range map[string]struct {
		file image.File
		want string
		same string // the identity's beginning
	}{
		"transferred":              {image.File{Path: "x.sif"}, "fine", "sha256:6105d6cc"},
		"a directory":              {image.File{Path: "tree"}, "fine", ""},
		"a link":                   {image.File{Path: "link"}, "fine", "sha256:6105d6cc"},
		"not there":                {image.File{Path: "y.sif"}, "35/23", ""},
		"below a file":             {image.File{Path: "x.sif/y"}, "35/23", ""},
		"leads out":                {image.File{Path: "out"}, "35/23", ""},
		"a FIFO":                   {image.File{Path: "fifo"}, "35/23", ""},
		"in the site's place":      {image.File{Root: site, Path: "flat"}, "fine", ""},
		"by an absolute link":      {image.File{Root: site, Path: "latest"}, "fine", ""},
		"the place itself":         {image.File{Root: site, Path: "."}, "fine", ""},
		"leads out of the place":   {image.File{Root: site, Path: "out/passwd"}, "35/23", ""},
		"not in the site's place":  {image.File{Root: site, Path: "flat/none"}, "35/23", ""},
		"a part is not mounted":    {image.File{Root: site, Path: "other.example.org/none"}, "1021/0", ""},
		"the place is not mounted": {image.File{Root: "/no/such/place", Path: "x"}, "1021/0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.file.Written = "as written"
			i, err := imagefile.Open(tt.file, b)
			if got := end(err); got != tt.want {
				t.Fatalf("%s, want %s: %v", got, tt.want, err)
			}
			if err != nil {
				return
			}
			defer i.Close()
			id, err := i.Identity(t.Context(), 1<<20)
			must(t, err)
			if !strings.HasPrefix(id, tt.same) || (id == "") != (tt.same == "") {
				t.Errorf("identity %q, want %q", id, tt.same)
			}
		})
	}
}

// pod writes what it is given into a directory, as a payload container does into its root.
type pod struct {
	t      *testing.T
	dir    string
	spec   payload.Spec
	report chan payload.Exit
	wait   error // instead of a report
	start  error
	broken imagetree.Report // instead of writing
	swept  int
	ended  chan struct{}
}

func (p *pod) Start(_ context.Context, s payload.Spec, files ...*os.File) (payload.Started, error) {
	p.spec = s
	if err := s.Validate(); err != nil {
		p.t.Errorf("%+v: %v", s, err)
	}
	if p.start != nil {
		return payload.Started{}, p.start
	}
	fd, err := unix.Dup(int(files[0].Fd()))
	must(p.t, err)
	stream := os.NewFile(uintptr(fd), "pipe")
	p.report, p.ended = make(chan payload.Exit, 1), make(chan struct{})
	go func() {
		defer close(p.ended)
		defer stream.Close()
		r := p.broken
		if r.Reason == "" {
			root, err := unix.Open(p.dir, unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				p.t.Error(err)
			}
			r = imagetree.Write(root, stream, imagetree.Order{Limits: imagetree.Limits{Bytes: 1 << 20, Entries: 100}})
			_ = unix.Close(root)
		}
		data, err := json.Marshal(r)
		if err != nil {
			p.t.Error(err)
		}
		p.report <- payload.Exit{Output: data}
	}()
	return payload.Started{}, nil
}

func (p *pod) Wait(ctx context.Context) (payload.Exit, error) {
	if p.wait != nil {
		return payload.Exit{}, p.wait
	}
	select {
	case e := <-p.report:
		return e, nil
	case <-ctx.Done():
		return payload.Exit{}, ctx.Err()
	}
}

func (p *pod) Sweep(context.Context) error {
	p.swept++
	if p.ended != nil {
		<-p.ended
	}
	return nil
}

// unpacker plays condor_pod_unpacker: it writes a stream, and then says this and exits so.
type unpacker struct {
	entries int
	cut     bool // the stream breaks off
	says    string
	status  syscall.WaitStatus
	err     error
	hangs   bool
}

func (u unpacker) convert(ctx context.Context, p hostprog.Program) (hostprog.Outcome, error) {
	if u.err != nil {
		return hostprog.Outcome{}, u.err
	}
	if u.hangs {
		<-ctx.Done()
		return hostprog.Outcome{}, context.Cause(ctx)
	}
	w := tar.NewWriter(p.To)
	for i := range u.entries {
		if w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("file%d", i), Mode: 0o644, Size: 1}) == nil {
			_, _ = io.WriteString(w, "x")
		}
	}
	if !u.cut {
		_ = w.Close()
	}
	return hostprog.Outcome{Stderr: []byte(u.says), Status: u.status}, nil
}

const failedStatus = 1 << 8

// TestFill: either end may fail, and whoever reads the reason learns of the first cause.
func TestFill(t *testing.T) {
	complaint := func(reason string) unpacker {
		return unpacker{entries: 1, cut: true, says: `{"reason":"` + reason + `","message":"why it is"}` + "\n", status: failedStatus}
	}
	gone := errors.New("the job is gone")
	for name, tt := range map[string]struct {
		u     unpacker
		p     pod
		want  string
		words string
		gone  bool
		site  bool // has to correct it
	}{
		"whole":                       {u: unpacker{entries: 3}, want: "fine"},
		"less confined":               {u: unpacker{entries: 3, says: `{"unconfined":["landlock: no"]}` + "\n"}, want: "fine"},
		"truncated":                   {u: complaint("truncated"), want: "35/24", words: "why it is"},
		"encrypted":                   {u: complaint("encrypted"), want: "35/24"},
		"ext3":                        {u: complaint("ext3"), want: "35/24"},
		"no image":                    {u: complaint("no-image"), want: "35/24"},
		"malformed":                   {u: complaint("malformed"), want: "35/24"},
		"a word of no meaning":        {u: complaint("something"), want: "35/24"},
		"compression":                 {u: complaint("unsupported-compression"), want: "35/24"},
		"another processor":           {u: complaint("architecture"), want: "35/4"},
		"too large":                   {u: complaint("too-large"), want: "35/25"},
		"cannot be read":              {u: complaint("read"), want: "1021/0", words: "why it is"},
		"cannot be confined":          {u: complaint("confinement"), want: "1021/0", site: true},
		"a warning before":            {u: unpacker{cut: true, says: `{"unconfined":["x"]}` + "\n" + `{"reason":"ext3","message":"m"}`, status: failedStatus}, want: "35/24"},
		"the other end's fault":       {u: complaint("write"), p: pod{broken: imagetree.Report{Reason: imagetree.DiskFull, Path: "usr/lib", Message: "no space left on device"}}, want: "1021/0", words: "no space left on device", site: true},
		"nobody's fault":              {u: complaint("write"), p: pod{broken: imagetree.Report{Reason: imagetree.ReadOnly, Path: "usr", Message: "read-only"}}, want: "1021/0", words: "readOnlyRootFilesystem", site: true},
		"an old kernel":               {u: complaint("write"), p: pod{broken: imagetree.Report{Reason: imagetree.Failed, Errno: syscall.ENOSYS, Message: "x"}}, want: "1021/0", words: "Linux 5.6", site: true},
		"in the way":                  {u: complaint("write"), p: pod{broken: imagetree.Report{Reason: imagetree.InTheWay, Message: "x"}}, want: "1021/0", words: image.KnobCarrier, site: true},
		"larger in the container":     {u: complaint("write"), p: pod{broken: imagetree.Report{Reason: imagetree.TooLarge, Message: "x"}}, want: "35/25"},
		"not the unpacker's":          {u: unpacker{entries: 1, cut: true}, want: "35/24", words: "build the image again"},
		"killed":                      {u: unpacker{entries: 1, cut: true, status: 9}, want: "1021/0", words: "died of signal 9"},
		"dies of the pipe":            {u: unpacker{cut: true, status: 13}, p: pod{broken: imagetree.Report{Reason: imagetree.DiskFull, Message: "no space left on device"}}, want: "1021/0", words: "no space left", site: true},
		"killed after the last":       {u: unpacker{entries: 1, status: 9}, want: "1021/0", words: "died of signal 9"},
		"out of memory":               {u: unpacker{entries: 1, cut: true, says: "fatal error: runtime: out of memory\n", status: 2 << 8}, want: "35/25", words: "memory"},
		"exits so for another reason": {u: unpacker{entries: 1, cut: true, says: "runtime: failed to create new OS thread\n", status: 2 << 8}, want: "1021/0", words: "exited with status 2"},
		"cannot be run":               {u: unpacker{err: fmt.Errorf("unpacker %w: no such file", hostprog.ErrNotRun)}, want: "1021/0", words: "no such file", site: true},
		"container is lost":           {u: unpacker{entries: 1}, p: pod{wait: payload.ErrLost}, want: "1021/0"},
		"cannot be started":           {p: pod{start: errors.New("no process")}, want: "1021/0", words: "no process"},
		"takes too long":              {u: unpacker{hangs: true}, want: "1021/0", words: "POD_STARTER_BIND_TIMEOUT"},
		"is not wanted any more":      {u: unpacker{hangs: true}, want: gone.Error(), gone: true},
		"hostile words":               {u: unpacker{cut: true, says: `{"reason":"malformed","message":"a\u001b[31m\n` + strings.Repeat("x", 5000) + `"}`, status: failedStatus}, want: "35/24", words: "a [31m xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			b, dir := newBox(t)
			must(t, os.WriteFile(filepath.Join(dir, "x.sif"), []byte("image"), 0o644))
			i, err := imagefile.Open(image.File{Path: "x.sif", Written: "x.sif"}, b)
			must(t, err)
			defer i.Close()
			tt.p.t, tt.p.dir = t, t.TempDir()
			f := imagefile.Filler{
				Limits: imagetree.Limits{Bytes: 1 << 20, Entries: 100}, Time: time.Minute, Convert: tt.u.convert,
				Activation: "a", Account: imagetree.Account{Name: "u", UID: 1, GID: 1}, Log: slog.New(slog.DiscardHandler),
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			switch {
			case tt.gone:
				cancel(gone)
			case tt.u.hangs:
				f.Time = time.Millisecond
			}
			copied, err := f.Fill(ctx, i, &tt.p)
			if got := end(err); got != tt.want || err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%s, want %s with %q: %v", got, tt.want, tt.words, err)
			}
			if err != nil && tt.words != "" && strings.Count(err.Error(), tt.words) > 1 {
				t.Errorf("it is said twice: %v", err)
			}
			v := (*payload.Verdict)(nil)
			if site := errors.As(err, &v) && v.Blame == payload.Site; site != tt.site {
				t.Errorf("it is the site's to correct: %v, want %v", site, tt.site)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("a reason of %d bytes", len(err.Error()))
			}
			if tt.p.swept == 0 && tt.p.start == nil {
				t.Error("what wrote the files was not ended")
			}
			if want := (imagefile.Copied{Bytes: int64(tt.u.entries), Entries: int64(tt.u.entries), Took: copied.Took}); err == nil && copied != want {
				t.Errorf("it says it copied %+v, want %+v", copied, want)
			}
			entries, err := os.ReadDir(tt.p.dir)
			must(t, err)
			if tt.want == "fine" && (len(entries) != tt.u.entries || !tt.p.spec.AsRoot) {
				t.Errorf("%d files, by %+v", len(entries), tt.p.spec)
			}
		})
	}
}

// TestRefit: a container with an earlier job's files learns of the next job's user, and gets no files.
func TestRefit(t *testing.T) {
	for name, tt := range map[string]struct {
		p     pod
		want  string
		words string
	}{
		"fine":              {want: "fine"},
		"disk is full":      {p: pod{broken: imagetree.Report{Reason: imagetree.DiskFull, Message: "no space left on device"}}, want: "1021/0", words: "no space left"},
		"container is lost": {p: pod{wait: payload.ErrLost}, want: "1021/0"},
		"cannot be started": {p: pod{start: errors.New("no process")}, want: "1021/0", words: "no process"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.p.t, tt.p.dir = t, t.TempDir()
			f := imagefile.Filler{Time: time.Minute, Activation: "a", Account: imagetree.Account{Name: "u", UID: 1, GID: 1}, Log: slog.New(slog.DiscardHandler)}
			err := f.Refit(t.Context(), "x.sif", &tt.p)
			if got := end(err); got != tt.want || err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%s, want %s with %q: %v", got, tt.want, tt.words, err)
			}
			if args := tt.p.spec.Args; tt.p.start == nil && (len(args) == 0 || args[len(args)-1] != "again" || !tt.p.spec.AsRoot) {
				t.Errorf("started as %+v", tt.p.spec)
			}
			if entries, err := os.ReadDir(tt.p.dir); err != nil || len(entries) > 0 {
				t.Errorf("%d files, %v", len(entries), err)
			}
		})
	}
}
