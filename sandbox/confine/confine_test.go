package confine

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// confined calls do on a thread to which apply gives rules; the thread ends with it.
func confined(t *testing.T, apply func() error, do func()) {
	t.Helper()
	if err := Supported(); err != nil {
		t.Skip(err)
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if unix.Gettid() == unix.Getpid() {
			// The runtime does not end the main thread: let another one do the work.
			other := make(chan struct{})
			go func() {
				defer close(other)
				runtime.LockOSThread()
				result <- onThread(apply, do)
			}()
			<-other
			runtime.UnlockOSThread()
			return
		}
		result <- onThread(apply, do)
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func onThread(apply func() error, do func()) error {
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = apply()
	}
	if err == nil {
		do()
	}
	return err
}

// place is a directory that holds a secret, a file of the image's and a sandbox.
type place struct{ secret, image, sandbox string }

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	p := place{filepath.Join(dir, "secret"), filepath.Join(dir, "image"), filepath.Join(dir, "sandbox")}
	for _, d := range []string{p.secret, p.image, p.sandbox} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "file"), []byte(filepath.Base(d)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// open a directory by which a rule can name it.
func (p place) rules(t *testing.T) Rules {
	t.Helper()
	fd, err := unix.Open(p.sandbox, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return Rules{Trees: []string{p.image, "/no/such/directory"}, Read: []string{"/no/such/file"}, Write: []string{"/dev/null"}, Change: []int{fd}}
}

// TestWhatIsLeft: each way to a file, and whether it is still open.
func TestWhatIsLeft(t *testing.T) {
	p := newPlace(t)
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	for link, to := range map[string]string{
		"link": in(p.secret, "file"), "relative": "../secret/file", "twice": "link", "directory": p.secret, "self": "/proc/self/root" + in(p.secret, "file"),
		"image": in(p.image, "file"),
	} {
		if err := os.Symlink(to, in(p.sandbox, link)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) error { _, err := os.ReadFile(path); return err }
	write := func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }
	got := map[string]bool{}
	var executed error
	confined(t, p.rules(t).Apply, func() {
		executed = exec.Command(in(p.sandbox, "file")).Run()
		for what, err := range map[string]error{
			"read the secret":                    read(in(p.secret, "file")),
			"read it by a link":                  read(in(p.sandbox, "link")),
			"read it by a relative link":         read(in(p.sandbox, "relative")),
			"read it by a link to a link":        read(in(p.sandbox, "twice")),
			"read it by a linked directory":      read(in(p.sandbox, "directory/file")),
			"read it by /proc":                   read(in(p.sandbox, "self")),
			"read it by a way back":              read(p.sandbox + "/../secret/file"),
			"list its directory":                 func() error { _, err := os.ReadDir(p.secret); return err }(),
			"link it into the sandbox":           os.Link(in(p.secret, "file"), in(p.sandbox, "hard")),
			"write over it":                      write(in(p.secret, "file")),
			"write over it by a link":            write(in(p.sandbox, "link")),
			"cut it off by a link":               os.Truncate(in(p.sandbox, "link"), 0),
			"make a file beside it":              write(in(p.sandbox, "directory/new")),
			"remove it":                          os.Remove(in(p.secret, "file")),
			"write into the image":               write(in(p.image, "new")),
			"leave a file for others":            write(in(filepath.Dir(p.secret), "left")),
			"read the image":                     read(in(p.image, "file")),
			"read the image by a link":           read(in(p.sandbox, "image")),
			"read the sandbox":                   read(in(p.sandbox, "file")),
			"write in the sandbox":               write(in(p.sandbox, "new")),
			"make a directory and a file in it":  errors.Join(os.Mkdir(in(p.sandbox, "sub"), 0o700), write(in(p.sandbox, "sub/x"))),
			"drop something into a device":       write("/dev/null"),
			"look at a file that cannot be read": func() error { _, err := os.Stat(in(p.secret, "file")); return err }(),
			"remove something in the sandbox":    os.Remove(in(p.sandbox, "twice")),
		} {
			got[what] = err == nil
		}
	})
	want := map[string]bool{}
	for what := range got {
		want[what] = false
	}
	for _, what := range []string{
		"read the image", "read the image by a link", "read the sandbox", "write in the sandbox", "make a directory and a file in it",
		"drop something into a device", "look at a file that cannot be read", "remove something in the sandbox",
	} {
		want[what] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// It is no program, either (ENOEXEC): what counts is why it was not executed.
	if !errors.Is(executed, os.ErrPermission) {
		t.Errorf("what is in the sandbox may be executed: %v", executed)
	}
	if text, err := os.ReadFile(in(p.secret, "file")); err != nil || string(text) != "secret" {
		t.Errorf("the secret is now %q, %v", text, err)
	}
}

// TestListed: names in a listed directory may be read, and nothing else of it.
func TestListed(t *testing.T) {
	p := newPlace(t)
	rules := p.rules(t)
	rules.List = []string{p.secret, "/no/such/directory"}
	var list, read, write error
	confined(t, rules.Apply, func() {
		_, list = os.ReadDir(p.secret)
		_, read = os.ReadFile(filepath.Join(p.secret, "file"))
		write = os.WriteFile(filepath.Join(p.secret, "new"), nil, 0o600)
	})
	if list != nil || !errors.Is(read, os.ErrPermission) || !errors.Is(write, os.ErrPermission) {
		t.Errorf("list: %v, read: %v, write: %v", list, read, write)
	}
}

// TestSwappedDirectory: a rule is about a directory, not about whatever has its name
// later.
func TestSwappedDirectory(t *testing.T) {
	p := newPlace(t)
	rules := p.rules(t)
	if err := errors.Join(os.Rename(p.sandbox, p.sandbox+".aside"), os.Symlink(p.secret, p.sandbox)); err != nil {
		t.Fatal(err)
	}
	var secret, aside error
	confined(t, rules.Apply, func() {
		_, secret = os.ReadFile(filepath.Join(p.sandbox, "file"))
		_, aside = os.ReadFile(filepath.Join(p.sandbox+".aside", "file"))
	})
	if !errors.Is(secret, os.ErrPermission) || aside != nil {
		t.Errorf("the secret: %v; the sandbox: %v", secret, aside)
	}
}

// TestProgramsAreConfined: programs that the thread starts are confined like it, also
// from other processes of their user; this process is not.
func TestProgramsAreConfined(t *testing.T) {
	p := newPlace(t)
	for _, dir := range []string{filepath.Dir(filepath.Dir(p.secret)), filepath.Dir(p.secret)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rules := p.rules(t)
	rules.Trees = append(rules.Trees, "/usr", "/bin", "/lib", "/lib64", "/etc")
	rules.Read = append(rules.Read, "/proc")
	// A process with CAP_PERFMON, such as one of root's, may inspect any other.
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: 4714, Gid: 4714}
	}
	other := exec.Command("/bin/cat")
	other.Env, other.SysProcAttr = []string{"HELD=by another"}, attr
	hold, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the child dies with this thread (Pdeathsig)
	defer runtime.UnlockOSThread()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = hold.Close(), other.Wait() }()
	const script = `cat file "$0"; cat "$1"; (cat "$1"); cat "/proc/$2/environ"; kill -CONT "$2" && echo signalled; :`
	run := func() (string, error) {
		cmd := exec.Command("/bin/sh", "-c", script, filepath.Join(p.image, "file"), filepath.Join(p.secret, "file"), strconv.Itoa(other.Process.Pid))
		cmd.Dir, cmd.Env, cmd.SysProcAttr = p.sandbox, []string{"PATH=/usr/bin:/bin"}, attr
		out, err := cmd.Output()
		return string(out), err
	}
	if out, err := run(); err != nil || out != "sandboximagesecretsecretHELD=by another\x00signalled\n" {
		t.Fatalf("without rules it wrote %q, %v: the test shows nothing", out, err)
	}
	var out string
	confined(t, rules.Apply, func() { out, err = run() })
	want := "sandboximage"
	if v, _ := version(); v < 6 {
		want += "signalled\n"
	}
	if err != nil || out != want {
		t.Errorf("the program wrote %q, want %q; %v", out, want, err)
	}
	if _, err := os.ReadFile(filepath.Join(p.secret, "file")); err != nil {
		t.Errorf("this process is confined, too: %v", err)
	}
}

// TestAbstractSockets: a confined program cannot connect to anybody there.
func TestAbstractSockets(t *testing.T) {
	if v, err := version(); err != nil || v < 6 {
		t.Skipf("Landlock is of version %d: %v", v, err)
	}
	address := "@confine-" + filepath.Base(t.TempDir()) + strings.ReplaceAll(t.Name(), "/", "-")
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	confined(t, Rules{}.Apply, func() {
		fd, e := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if e != nil {
			err = e
			return
		}
		defer unix.Close(fd)
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: address})
	})
	if !errors.Is(err, unix.EPERM) {
		t.Errorf("connect: %v, want %v", err, unix.EPERM)
	}
}

// TestMountsAreLeftOut: in a tree with a mount, everything except the mount can be
// read.
func TestMountsAreLeftOut(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Dir(p.secret)
	if err := os.Mkdir(filepath.Join(dir, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.secret, filepath.Join(dir, "deep", "secret")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "deep", "beside"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Supported(); err != nil {
		t.Skip(err)
	}
	mounts := map[string]bool{filepath.Join(dir, "deep", "secret"): true, filepath.Join(dir, "sandbox", "file"): true, "/elsewhere": true}
	got := map[string]bool{}
	confined(t, func() error { return Rules{Trees: []string{dir}}.apply(mounts) }, func() {
		for _, name := range []string{"image/file", "deep/beside", "deep/secret/file", "sandbox/file"} {
			_, err := os.ReadFile(filepath.Join(dir, name))
			got[name] = err == nil
		}
	})
	if diff := cmp.Diff(map[string]bool{"image/file": true, "deep/beside": true, "deep/secret/file": false, "sandbox/file": false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadMounts(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want map[string]bool
		bad  bool
	}{
		"usual": {"22 27 0:21 / /proc rw,relatime - proc proc rw\n27 1 0:5 / / rw - overlay overlay rw\n",
			map[string]bool{"/proc": true}, false},
		"escaped": {`1 2 0:1 / /a\040b\134c\1 rw - tmpfs t rw`, map[string]bool{`/a b\c\1`: true}, false},
		"nothing": {"", map[string]bool{}, false},
		"cut off": {"22 27 0:21 / /proc", nil, true},
		"endless": {strings.Repeat("x", maxMountLine+1), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readMounts(strings.NewReader(tt.text))
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.bad {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
