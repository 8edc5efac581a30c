package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/sandbox/confine"
	"podstarter/unpacker/fault"
	"podstarter/unpacker/tarstream"
)

// childKey is the environment variable that makes the test binary the program.
const childKey = "UNPACKER_TEST_CHILD"

func TestMain(m *testing.M) {
	child := os.Getenv(childKey)
	if child != "" {
		// The test binary is not static, and the race detector reserves memory without end.
		libraries = []string{"/lib", "/lib64", "/usr/lib", "/proc", "/etc/ld.so.cache"}
		maxMemory = unix.RLIM_INFINITY
	}
	switch child {
	case "program":
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	case "probe":
		os.Exit(probe())
	case "panic":
		report(os.Stderr, attempt(options{fd: 3, confined: true, bounds: tarstream.Bounds{Bytes: 1 << 20, Entries: 1000, Depth: 9, Target: 99}}, nil, panicking{}, os.Stderr))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("not expected") }

// probe tries, in the confined program, what it must not be able to do.
func probe() int {
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		return 2
	}
	var st unix.Stat_t
	_ = unix.Fstat(o.fd, &st)
	o.tree = st.Mode&unix.S_IFMT == unix.S_IFDIR
	if err := restrict(o, os.Args[1:], os.Stderr); err != nil {
		report(os.Stderr, err)
		return 1
	}
	_, open := os.ReadFile("/etc/hostname")
	_, list := os.ReadDir("/")
	_, socket := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	_, local := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	_, _, fork := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if fork == 0 {
		// In the child, which must not be, or in this process, which then has no more to say.
		return 3
	}
	var files, core unix.Rlimit
	_ = unix.Prctl(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	result := map[string]string{
		"read a file":        word(open),
		"list the root":      word(list),
		"write a file":       word(os.WriteFile("/tmp/unpacker-was-here", nil, 0o600)),
		"make a socket":      word(socket),
		"make a Unix socket": word(local),
		"fork":               word(fork),
		"execute":            word(unix.Exec("/bin/true", []string{"true"}, nil)),
		"trace":              word(unix.PtraceAttach(os.Getppid())),
		"signal":             word(unix.Kill(os.Getppid(), 0)),
		"signal a thread":    word(unix.Tgkill(os.Getppid(), os.Getppid(), 0)),
		"ask for limits":     word(unix.Getrlimit(unix.RLIMIT_NOFILE, &files)),
		"remove limits":      word(unix.Setrlimit(unix.RLIMIT_CORE, &core)),
		"inherited":          word(func() error { _, err := unix.FcntlInt(7, unix.F_GETFD, 0); return err }()),
	}
	if o.tree {
		_, err := unix.Openat(o.fd, "file", unix.O_RDONLY, 0)
		_, up := unix.Openat(o.fd, "../secret", unix.O_RDONLY, 0)
		_, write := unix.Openat(o.fd, "new", unix.O_WRONLY|unix.O_CREAT, 0o600)
		result["read the image"], result["read beside the image"], result["write into the image"] = word(err), word(up), word(write)
	}
	line(os.Stdout, result)
	return 0
}

func word(err error) string {
	switch e := errno(err); {
	case err == nil || e == 0 && err == error(syscall.Errno(0)):
		return "possible"
	default:
		return unix.ErrnoName(e)
	}
}

func errno(err error) syscall.Errno {
	for err != nil {
		if e, ok := err.(syscall.Errno); ok {
			return e
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return 0
		}
		err = u.Unwrap()
	}
	return 0
}

// child runs the test binary as the program, with an image as descriptor 3, and 7 open.
func child(t *testing.T, what, image string, args ...string) (stdout, stderr []byte, code int) {
	t.Helper()
	f, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	cmd := exec.Command("/proc/self/exe", append([]string{"-fd=3"}, args...)...)
	cmd.Env = append(os.Environ(), childKey+"="+what)
	cmd.ExtraFiles = []*os.File{f, nil, nil, nil, other}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.Bytes(), errs.Bytes(), cmd.ProcessState.ExitCode()
}

// TestConfined: what the program cannot do any more when it reads the first byte. A file system
// call ends in EPERM by seccomp, in EACCES by Landlock.
func TestConfined(t *testing.T) {
	if err := confine.Supported(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret", "tree/file"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := func(file string) map[string]string {
		return map[string]string{
			"read a file": file, "list the root": file, "write a file": file, "make a socket": "EPERM", "make a Unix socket": "EPERM", "fork": "EPERM", "execute": "EPERM",
			"trace": "EPERM", "signal": "EPERM", "signal a thread": "EPERM", "ask for limits": "EPERM", "remove limits": "EPERM", "inherited": "EBADF",
		}
	}
	ofTree := want("EACCES")
	ofTree["read the image"], ofTree["read beside the image"], ofTree["write into the image"] = "possible", "EACCES", "EACCES"
	for name, tt := range map[string]struct {
		image string
		want  map[string]string
	}{
		"file":      {"testdata/gzip.squashfs", want("EPERM")},
		"directory": {tree, ofTree},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := child(t, "probe", tt.image, "-require-landlock")
			var got map[string]string
			if err := json.Unmarshal(out, &got); err != nil || code != 0 {
				t.Fatalf("exit code %d, %v: %s", code, err, errs)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestProgram: exit code, standard output and standard error.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	image := fixture(t, "zstd")
	whole := write("whole.sif", newSIF(image).bytes())
	for name, tt := range map[string]struct {
		image string
		args  []string
		want  fault.Reason
	}{
		"SIF":       {whole, nil, ""},
		"squashfs":  {"testdata/zstd.squashfs", nil, ""},
		"cut off":   {write("cut.squashfs", image[:len(image)/2]), nil, fault.Truncated},
		"empty":     {write("empty", nil), nil, fault.NoImage},
		"bound":     {whole, []string{"-max-bytes=100"}, fault.TooLarge},
		"other":     {whole, []string{"-arch=riscv64"}, fault.Architecture},
		"device":    {"/dev/null", nil, fault.NoImage},
		"described": {whole, []string{"-describe"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := child(t, "program", tt.image, append([]string{"-arch=amd64"}, tt.args...)...)
			var last struct {
				Reason  fault.Reason
				Message string
			}
			lines := strings.Split(strings.TrimSpace(string(errs)), "\n")
			if tt.want != "" {
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Message == "" || code != 1 {
					t.Fatalf("exit code %d, %v: %s", code, err, errs)
				}
			} else if code != 0 {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			if last.Reason != tt.want {
				t.Errorf("%s, want %s", last.Reason, tt.want)
			}
			switch {
			case name == "described":
				want := `{"format":"sif","architecture":"amd64","compression":"zstd","partition_bytes":` // and more
				if !strings.HasPrefix(string(out), want) || !strings.HasSuffix(string(out), `"inodes":319}`+"\n") {
					t.Errorf("%s", out)
				}
			case tt.want == "":
				if diff := cmp.Diff(content(), list(t, bytes.NewReader(out))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestPanic: a panic ends in a reason.
func TestPanic(t *testing.T) {
	_, errs, code := child(t, "panic", "testdata/gzip.squashfs")
	if code != 1 || !strings.Contains(string(errs), `"reason":"malformed"`) || strings.Contains(string(errs), "goroutine ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
