package visitors_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/payload"
)

// beside is a wrapper that runs sessions as processes of the test.
type beside struct {
	payload.Wrapper // nothing else is asked of it
	fail            error
	noDir           string // a directory that is not there

	mu      sync.Mutex
	asked   []payload.Exec
	signals []syscall.Signal
}

func (w *beside) Signal(_ context.Context, sig syscall.Signal, whole bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if whole {
		return errors.New("not in this test")
	}
	w.signals = append(w.signals, sig)
	return w.fail
}

func (w *beside) Exec(_ context.Context, e payload.Exec, files payload.ExecFiles) (payload.Execution, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, e)
	if files.Program == nil {
		return nil, errors.New("no program was passed along for images without a shell")
	}
	if w.fail != nil {
		return nil, w.fail
	}
	if e.Spec.Dir == w.noDir {
		return nil, &payload.StartError{Stage: payload.StageChdir, Path: e.Spec.Dir, Errno: syscall.ENOENT}
	}
	c := &exec.Cmd{Path: "/bin/sh", Args: append([]string{"sh"}, e.Spec.Args[1:]...), Dir: e.Spec.Dir, Env: e.Spec.Env,
		Stdin: files.Stdio[0], Stdout: files.Stdio[1], Stderr: files.Stdio[2]}
	if e.Spec.Path == "" { // what was passed along, which is this test
		c.Path, c.Args = "/proc/self/exe", e.Spec.Args
	}
	return child{c}, c.Start()
}

func (w *beside) last(t *testing.T) payload.Exec {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asked) == 0 {
		t.Fatal("no session was begun")
	}
	return w.asked[len(w.asked)-1]
}

type child struct{ *exec.Cmd }

func (c child) PID() int { return c.Process.Pid }
func (c child) Wait(context.Context) (syscall.WaitStatus, error) {
	_ = c.Cmd.Wait()
	return c.ProcessState.Sys().(syscall.WaitStatus), nil
}
func (c child) Signal(_ context.Context, sig syscall.Signal) error { return c.Process.Signal(sig) }

// start makes the desk one of a job that runs.
func (d *served) start(t *testing.T, job string, w payload.Wrapper) payload.Spec {
	t.Helper()
	ad := jobOf(alice, secret)
	ad.Update(parsed(t, job))
	d.Know(ad, version)
	box := newSandbox(t)
	spec := payload.Spec{Activation: "a", UID: 10001, GID: 10001, Path: "/bin/job", Args: []string{"job"}, Dir: box.Scratch(),
		Env: []string{"A=b", "DISPLAY=:0", "LD_PRELOAD=x"}, Stdin: "in", Stdout: "out", Stderr: "err", Append: true, SearchPath: true}
	d.Ready(ad, classads.NewAd(), box)
	d.Started(w, spec, 0, 4711)
	return spec
}

// rest is a connection of which the beginning was read already.
type rest struct {
	net.Conn
	begun []byte
}

func (r *rest) Read(b []byte) (int, error) {
	if len(r.begun) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.begun)
	r.begun = r.begun[n:]
	return n, nil
}

// login is what condor_ssh_to_job does.
func (d *served) login(t *testing.T, request string) *ssh.Client {
	t.Helper()
	s, answer, err := d.begin(t, d.tool(t), cedar.StartSSHD, parsed(t, request))
	must(t, err)
	if !answer.BoolOr("Result", false) || answer.StringOr("RemoteUser", "") != "alice" {
		t.Fatalf("the answer is %s", answer.FormatOld())
	}
	decode := func(name string) []byte {
		data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(answer.StringOr(name, ""), "\n", ""))
		must(t, err)
		return data
	}
	signer, err := ssh.ParsePrivateKey(decode("SSHPrivateClientKey"))
	must(t, err)
	host, _, _, _, err := ssh.ParseAuthorizedKey(decode("SSHPublicServerKey"))
	must(t, err)
	raw, begun := s.Detach() // the server may have begun already
	must(t, raw.SetDeadline(time.Time{}))
	conn, channels, requests, err := ssh.NewClientConn(&rest{raw, begun}, "job", &ssh.ClientConfig{
		User: "alice", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(host),
	})
	must(t, err)
	client := ssh.NewClient(conn, channels, requests)
	t.Cleanup(func() { client.Close() })
	return client
}

// output runs a command in a session, or a shell with this input if there is no command.
func output(t *testing.T, c *ssh.Client, command, input string) string {
	t.Helper()
	s, err := c.NewSession()
	must(t, err)
	defer s.Close()
	var out, problems bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(input), &out, &problems
	if command == "" {
		err = s.Shell()
	} else {
		err = s.Start(command)
	}
	must(t, err)
	if err := s.Wait(); err != nil {
		problems.WriteString(err.Error())
	}
	return out.String() + problems.String()
}

// TestLogin: the owner has a shell and commands beside the job, with the job's
// environment.
func TestLogin(t *testing.T) {
	d, w := serve(t, nil), &beside{}
	spec := d.start(t, "", w)
	c := d.login(t, `Name = "slot1"`+"\n"+`Shell = "/bin/zsh,csh"`)
	if got, want := output(t, c, "pwd; echo $A-$USER-$_CONDOR_JOB_PIDS-$_CONDOR_SLOT_NAME-$PATH-$DISPLAY", ""), spec.Dir+"\nb-alice-4711-slot1-/usr/local/bin:/usr/bin:/bin-\n"; got != want {
		t.Errorf("a command says %q, want %q", got, want)
	}
	if !d.Visited() {
		t.Error("nobody is logged in")
	}
	e := w.last(t)
	if e.Spec.Path != "/bin/bash" || len(e.Others) != 2 || e.Others[0].Path != "/bin/sh" {
		t.Errorf("the command is run by %q, %v", e.Spec.Path, e.Others)
	}
	if s := e.Spec; s.Stdin+s.Stdout+s.Stderr != "" || s.Append || s.SearchPath || s.UID != spec.UID || !cmp.Equal(s.HideEnv, []string{"DISPLAY", "LD_PRELOAD"}) {
		t.Errorf("it is run as %+v", s)
	}
	if got, want := output(t, c, "", "echo in a shell\n"), "Welcome to slot1!\nYour condor job is running with pid(s) 4711.\nin a shell\n"; got != want {
		t.Errorf("a shell says %q, want %q", got, want)
	}
	e = w.last(t)
	var shells []string
	for _, a := range append([]payload.Attempt{{Path: e.Spec.Path, Args: e.Spec.Args}}, e.Others...) {
		shells = append(shells, a.Path+" "+a.Args[0])
	}
	want := []string{"/bin/zsh -/bin/zsh", "/bin/sh -/bin/sh", "/bin/bash -/bin/bash"}
	if diff := cmp.Diff(want, shells[:len(shells)-1]); diff != "" || !strings.HasPrefix(shells[len(shells)-1], " ") {
		t.Errorf("shells are tried in another order, or not one of our own in the end: %q", shells)
	}
	must(t, c.Close())
	<-d.Left()
	if d.Visited() {
		t.Error("somebody is logged in who has left")
	}
}

// TestLoginOfAnImage: where the job has the image's environment, so has its owner, and
// the job's time limit for shells is told.
func TestLoginOfAnImage(t *testing.T) {
	d, w := serve(t, nil), &beside{}
	spec := d.start(t, "", w)
	spec.ImageEnv, spec.Env, spec.HideEnv = true, []string{"USER=image", "FROM=image", "TMOUT=60"}, []string{"SECRET*"}
	d.Started(w, spec, 2, 0)
	c := d.login(t, "")
	if got, want := output(t, c, "", "echo $USER-$FROM-$_CONDOR_JOB_PIDS\n"), "You will be logged out after 60 seconds of inactivity.\nalice-image-\n"; got != want {
		t.Errorf("a shell says %q, want %q", got, want)
	}
	s := w.last(t).Spec
	if strings.Contains(strings.Join(s.Env, " "), "PATH=") || !cmp.Equal(s.HideEnv, []string{"SECRET*", "DISPLAY", "LD_PRELOAD"}) {
		t.Errorf("the environment is %q without %q", s.Env, s.HideEnv)
	}
}

// TestLoginDirectory: where the job's directory is not to be had, the sandbox is.
func TestLoginDirectory(t *testing.T) {
	d, w := serve(t, nil), &beside{noDir: "/not/there"}
	spec := d.start(t, "", w)
	scratch := spec.Dir
	spec.Dir = w.noDir
	d.Started(w, spec, 0, 1)
	c := d.login(t, "")
	if got := output(t, c, "pwd", ""); got != scratch+"\n" {
		t.Errorf("the session is in %q, want %q", got, scratch)
	}
}

// TestLoginFiles: sftp is a program that is passed along, for images have none.
func TestLoginFiles(t *testing.T) {
	d := serve(t, nil)
	spec := d.start(t, "", &beside{})
	files, err := sftp.NewClient(d.login(t, ""))
	must(t, err)
	defer files.Close()
	if dir, err := files.Getwd(); err != nil || dir != spec.Dir {
		t.Errorf("in %q, %v, want %q", dir, err, spec.Dir)
	}
}

// TestLoginFails: what is wrong with a session is shown to the owner.
func TestLoginFails(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"the wrapper is gone": {payload.ErrLost, "the job has ended"},
		"nothing runs":        {&payload.RequestError{Op: "exec", Code: payload.CodeNoPayload}, "the job has ended"},
		"something else":      {errors.New("no room"), "no session can be had in the job's container: no room"},
	} {
		t.Run(name, func(t *testing.T) {
			d := serve(t, nil)
			d.start(t, "", &beside{fail: tt.err})
			if got := output(t, d.login(t, ""), "true", ""); !strings.Contains(got, tt.want) {
				t.Errorf("the owner reads %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLoginRefused: the owner's tool is told why nobody can log in, and whether to try
// again.
func TestLoginRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		knobs   map[string]string
		request string
		change  func(*served)
		want    string
		retry   bool
	}{
		"off":           {knobs: map[string]string{"ENABLE_SSH_TO_JOB": "false"}, want: "Rejecting request, because ENABLE_SSH_TO_JOB=false"},
		"suspended":     {change: func(d *served) { d.suspended = true }, want: "This slot is currently suspended.", retry: true},
		"finished":      {change: func(d *served) { d.Finish() }, want: "Rejecting request, because the job is finished."},
		"odd keys":      {request: `SSHKeyGenArgs = "-t dsa"`, want: "Failed to produce ssh keys: keys of type"},
		"the site's":    {knobs: map[string]string{"SSH_TO_JOB_SSH_KEYGEN_ARGS": `"-t dsa"`}, want: "Failed to produce ssh keys: keys of type"},
		"a bad knob":    {knobs: map[string]string{"SSH_TO_JOB_SSH_KEYGEN_ARGS": `"-t 'dsa"`}, want: "SSH_TO_JOB_SSH_KEYGEN_ARGS"},
		"bad arguments": {request: `SSHKeyGenArgs = "-t 'x"`, want: "Failed to produce ssh-keygen arg list"},
	} {
		t.Run(name, func(t *testing.T) {
			d := serve(t, tt.knobs)
			d.start(t, "", &beside{})
			session := d.tool(t)
			if tt.change != nil {
				tt.change(d)
			}
			answer, err := d.ask(t, session, cedar.StartSSHD, parsed(t, tt.request))
			must(t, err)
			if got := answer.StringOr("ErrorString", ""); !strings.Contains(got, tt.want) || answer.BoolOr("Retry", false) != tt.retry {
				t.Errorf("%s, want %q", answer.FormatOld(), tt.want)
			}
			if d.Visited() {
				t.Error("somebody is logged in")
			}
		})
	}
}

// TestLoginBeforeTheJob: until the main process was started there is nothing beside
// which a session could run.
func TestLoginBeforeTheJob(t *testing.T) {
	d := serve(t, nil)
	job := jobOf(alice, secret)
	d.Know(job, version)
	session := d.tool(t)
	for range 2 {
		answer, err := d.ask(t, session, cedar.StartSSHD, classads.NewAd())
		must(t, err)
		if got := answer.StringOr("ErrorString", ""); !strings.Contains(got, "not yet ready") || !answer.BoolOr("Retry", false) {
			t.Errorf("%s", answer.FormatOld())
		}
		d.Ready(job, classads.NewAd(), newSandbox(t))
	}
}

// TestLoginName: the owner's name appears in the client's messages only if it is a plain
// one.
func TestLoginName(t *testing.T) {
	for user, want := range map[string]string{"bob-1.x_y@d": "bob-1.x_y", "-bob@d": "job", "b ob@d": "job", "@d": "job", "böb@d": "job"} {
		d := serve(t, nil)
		d.start(t, `User = "`+user+`"`, &beside{})
		s, answer, err := d.begin(t, d.tool(t), cedar.StartSSHD, classads.NewAd())
		must(t, err)
		if got := answer.StringOr("RemoteUser", ""); got != want {
			t.Errorf("%s logs in as %q, want %q", user, got, want)
		}
		s.Close()
	}
}

// TestEndVisits logs everybody out, and those who come later.
func TestEndVisits(t *testing.T) {
	d := serve(t, nil)
	d.start(t, "", &beside{})
	c := d.login(t, "")
	s, err := c.NewSession()
	must(t, err)
	out, err := s.StdoutPipe()
	must(t, err)
	_, err = s.StdinPipe() // which stays open
	must(t, err)
	must(t, s.Start("echo begun; exec cat"))
	if _, err := io.ReadFull(out, make([]byte, len("begun"))); err != nil {
		t.Fatal(err)
	}
	d.EndVisits()
	<-d.Left()
	if err := c.Wait(); err == nil || d.Visited() {
		t.Errorf("the client is told %v, visited: %v", err, d.Visited())
	}
	late, answer, err := d.begin(t, d.tool(t), cedar.StartSSHD, classads.NewAd())
	if err == nil && answer.BoolOr("Result", false) {
		// It ends now, and not because nobody logs in, which takes two minutes.
		must(t, late.Conn().SetReadDeadline(time.Now().Add(30*time.Second)))
		if _, err := io.Copy(io.Discard, late.Conn()); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("somebody came later and may stay")
		}
	}
	<-d.Left()
	if d.Visited() {
		t.Error("somebody came later and is logged in")
	}
}

// TestInteractiveJob: the first login ends the placeholder of an interactive job, which
// then ends well when everybody has left.
func TestInteractiveJob(t *testing.T) {
	ended := payload.Exit{WaitStatus: int(syscall.SIGTERM)}
	d, w := serve(t, nil), &beside{}
	d.start(t, "InteractiveJob = true", w)
	if got := d.AsVisited(ended); got.WaitStatus != ended.WaitStatus {
		t.Errorf("nobody came, and the exit is %d", got.WaitStatus)
	}
	c := d.login(t, "")
	for range 2 {
		if got := output(t, c, "echo +$_CONDOR_JOB_PIDS+", ""); got != "++\n" {
			t.Errorf("the placeholder is the job: %q", got)
		}
	}
	if diff := cmp.Diff([]syscall.Signal{syscall.SIGTERM}, w.signals); diff != "" {
		t.Errorf("signals to the placeholder (-want +got):\n%s", diff)
	}
	for status, want := range map[int]int{int(syscall.SIGTERM): 0, int(syscall.SIGKILL): int(syscall.SIGKILL), 3 << 8: 3 << 8} {
		if got := d.AsVisited(payload.Exit{WaitStatus: status}).WaitStatus; got != want {
			t.Errorf("the exit %d becomes %d, want %d", status, got, want)
		}
	}

	batch := serve(t, nil)
	other := &beside{}
	batch.start(t, "", other)
	output(t, batch.login(t, ""), "true", "")
	if got := batch.AsVisited(ended); got.WaitStatus != ended.WaitStatus || len(other.signals) != 0 {
		t.Errorf("a batch job that was visited ends with %d after %v", got.WaitStatus, other.signals)
	}
}

// TestLoginIntoImage: sessions of a job that the machine's own runtime runs are in its image, where the job began; files are
// fetched beside it.
func TestLoginIntoImage(t *testing.T) {
	d, w := serve(t, nil), &beside{}
	spec := d.start(t, "", w)
	place := t.TempDir()
	var mu sync.Mutex
	var asked []int
	var fail error
	d.Through(func(pid int, env []string, script string, args ...string) ([]string, []string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, pid)
		return append([]string{"/enter", "-c", script, "sh"}, args...), append(env, "IN=image", "_CONDOR_JOB_IWD="+place), fail
	})
	d.Started(w, spec, 0, 4711)
	c := d.login(t, "")
	if got, want := output(t, c, `echo "$A $IN $_CONDOR_JOB_PIDS"; pwd`, ""), "b image 4711\n"+place+"\n"; got != want {
		t.Errorf("a command says %q, want %q", got, want)
	}
	if e := w.last(t); e.Spec.Path != "/enter" || e.Others != nil {
		t.Errorf("%+v", e)
	}
	if got := output(t, c, "", "echo $IN\n"); !strings.Contains(got, "\nimage\n") {
		t.Errorf("a shell says %q", got)
	}
	mu.Lock()
	fail = errors.New("no way in")
	mu.Unlock()
	if got := output(t, c, "true", ""); !strings.Contains(got, "no way in") {
		t.Errorf("the owner reads %q", got)
	}
	files, err := sftp.NewClient(c)
	must(t, err)
	defer files.Close()
	if dir, err := files.Getwd(); err != nil || dir != spec.Dir {
		t.Errorf("in %q, %v", dir, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !cmp.Equal(asked, []int{4711, 4711, 4711}) {
		t.Errorf("asked for %v", asked)
	}
}
