package visitors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"podstarter/condor/job"
	"podstarter/condor/owner"
	"podstarter/internal/cedar"
	"podstarter/payload"
	"podstarter/sshtojob"
)

// login is START_SSHD, by which condor_ssh_to_job begins: the tool gets a
// key, and what follows on the connection is between its ssh and an ssh server of
// ours (starter.cpp:startSSHD).
func (d *Desk) login(ctx context.Context, c *cedar.Call) error {
	login, err := owner.ReadLogin(c.Stream)
	if err != nil {
		return err
	}
	if err := d.permitted("ENABLE_SSH_TO_JOB"); err != nil {
		return err
	}
	if d.Suspended() {
		return &owner.Refusal{Reason: "This slot is currently suspended.", Retry: true}
	}
	if _, spec, _ := d.main(); spec == nil {
		return &owner.Refusal{Reason: "Retrying request, because the job execution environment is not yet ready.", Retry: true}
	}
	keys, err := d.keyType(login)
	if err != nil {
		return &owner.Refusal{Reason: "Failed to produce ssh keys: " + err.Error()}
	}
	v, err := sshtojob.Begin(ctx, sshtojob.Options{
		Conn: c.Stream.Conn(), Keys: keys, Log: d.Log,
		Run: func(ctx context.Context, r sshtojob.Request, files payload.ExecFiles) (sshtojob.Process, string, error) {
			return d.enter(ctx, login, r, files)
		},
	})
	if err != nil {
		d.Log.Error("Cannot let the job's owner log in", "error", err)
		return &owner.Refusal{Reason: err.Error()}
	}
	if err := owner.SendLogin(c.Stream, loginName(d.ownerName()), v.Keys().Host, v.Keys().Client); err != nil {
		v.Close()
		return err
	}
	// The ssh server has a copy of the connection, and the tool says nothing on
	// it before it has read the answer.
	if err := v.Open(); err != nil {
		v.Close()
		return err
	}
	d.Log.Info("The job's owner logs in", "owner", d.ownerName(), "from", c.Stream.Peer())
	d.visits.add(v)
	return nil
}

// keyType is what site and user want as keys. No ssh-keygen is run for it.
func (d *Desk) keyType(login owner.Login) (sshtojob.KeyType, error) {
	var args []string
	if text := d.KeygenArg; text != "" {
		raw, err := job.UnquoteV2(text)
		if err == nil {
			args, err = job.SplitV2(raw)
		}
		if err != nil {
			return sshtojob.KeyType{}, fmt.Errorf("SSH_TO_JOB_SSH_KEYGEN_ARGS: %w", err)
		}
	}
	return sshtojob.ParseKeyType(append(args, login.KeygenArgs...))
}

// ownerName is who the job's owner is, user@domain.
func (d *Desk) ownerName() string {
	_, user, _ := d.owner.secrets()
	return user
}

// loginName is the name with which the tool's ssh logs in. Our server takes any
// name; this one shows in messages of the client.
func loginName(owner string) string {
	name, _, _ := strings.Cut(owner, "@")
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && c != '.' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return "job"
		}
	}
	if name == "" || name[0] == '-' {
		return "job"
	}
	return name
}

// enter runs a process of a session in the job's container.
func (d *Desk) enter(ctx context.Context, login owner.Login, r sshtojob.Request, files payload.ExecFiles) (sshtojob.Process, string, error) {
	wrapper, spec, pid := d.main()
	if spec == nil {
		return nil, "", errors.New("the job has not begun")
	}
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, "", fmt.Errorf("open this program, the shell of images without one: %w", err)
	}
	defer program.Close()
	files.Program = program
	if d.endPlaceholder(ctx, wrapper) {
		pid = 0
	}
	e := payload.Exec{Spec: d.sessionSpec(*spec, pid, login, r), Terminal: r.Terminal}
	choose(&e, login.Shells, r)
	if err := d.intoImage(&e, pid, login.Shells, r); err != nil {
		return nil, "", sessionFailure(err)
	}
	execution, err := d.execute(ctx, wrapper, e, files)
	if err != nil {
		return nil, "", sessionFailure(err)
	}
	d.Log.Debug("A session of the job's owner", "kind", r.Kind, "pid", execution.PID())
	if r.Kind != sshtojob.KindShell {
		return execution, "", nil
	}
	return execution, welcome(login.Slot, pid, e.Spec.Env), nil
}

// execute starts in the job's own directory; if it cannot, in the sandbox; else
// in /.
func (d *Desk) execute(ctx context.Context, client payload.Wrapper, e payload.Exec, files payload.ExecFiles) (payload.Execution, error) {
	var execution payload.Execution
	var err error
	for _, dir := range []string{e.Spec.Dir, d.sandbox().Scratch(), "/"} {
		e.Spec.Dir = dir
		execution, err = client.Exec(ctx, e, files)
		if failure := (*payload.StartError)(nil); !errors.As(err, &failure) || failure.Stage != payload.StageChdir {
			break
		}
	}
	return execution, err
}

// sessionSpec is the job's own spec with the environment of a login
// (condor_ssh_to_job_shell_setup; sshd(8), "login process").
func (d *Desk) sessionSpec(s payload.Spec, pid int, login owner.Login, r sshtojob.Request) payload.Spec {
	s.Links, s.Mounts, s.Stdin, s.Stdout, s.Stderr, s.Append = nil, nil, "", "", "", false
	s.Passed, s.Program, s.Capture, s.SearchPath = nil, nil, 0, false
	name := loginName(d.ownerName())
	d.mu.Lock()
	image := s.Env[:min(d.ofImage, len(s.Env))]
	d.mu.Unlock()
	s.Env = s.Env[len(image):]
	env := append(slices.Clone(image), "USER="+name, "LOGNAME="+name, "SHELL=/bin/sh")
	if !s.ImageEnv {
		env = append(env, "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	for _, v := range r.Env {
		env = append(env, string(v))
	}
	if r.Term != "" {
		env = append(env, "TERM="+r.Term)
	}
	// A session has neither the client's display nor the job's preloads.
	const display, preload = "DISPLAY", "LD_PRELOAD"
	s.HideEnv = append(slices.Clone(s.HideEnv), display, preload)
	for _, entry := range s.Env {
		if v, _, _ := strings.Cut(entry, "="); v != display && v != preload {
			env = append(env, entry)
		}
	}
	pids := ""
	if pid > 0 {
		pids = strconv.Itoa(pid)
	}
	env = append(env, "_CONDOR_JOB_PIDS="+pids)
	if login.Slot != "" {
		env = append(env, "_CONDOR_SLOT_NAME="+login.Slot)
	}
	s.Env = env
	return s
}

// choose says which programs to try. Commands are run by the shell of stock's
// own scripts if it is there. Where there is no shell, this program is one.
func choose(e *payload.Exec, preferred []string, r sshtojob.Request) {
	var list []payload.Attempt
	switch r.Kind {
	case sshtojob.KindSFTP:
		list = []payload.Attempt{{Args: []string{sshtojob.SFTPName}}}
	case sshtojob.KindCommand:
		for _, shell := range []string{"/bin/bash", "/bin/sh"} {
			list = append(list, payload.Attempt{Path: shell, Args: []string{path.Base(shell), "-c", string(r.Command)}})
		}
		list = append(list, payload.Attempt{Args: []string{sshtojob.ShellName, "-c", string(r.Command)}})
	default:
		for _, shell := range append(slices.Clone(preferred), "/bin/sh", "/bin/bash") {
			if path.IsAbs(shell) {
				list = append(list, payload.Attempt{Path: shell, Args: []string{"-" + shell}}) // exec -l of bash
			}
		}
		list = append(list, payload.Attempt{Args: []string{sshtojob.ShellName}})
	}
	e.Spec.Path, e.Spec.Args, e.Others = list[0].Path, list[0].Args, list[1:]
}

const (
	// commandInside and shellInside run in the job's image, where the job began.
	commandInside = `cd "${_CONDOR_JOB_IWD:-/}" 2>/dev/null; exec /bin/sh -c "$1"`
	shellInside   = `cd "${_CONDOR_JOB_IWD:-/}" 2>/dev/null; for s in "$@" /bin/bash; do [ -x "$s" ] && exec "$s" -l; done; exec /bin/sh -l`
)

// intoImage leads a session into the image in which the machine's own runtime runs the job. Files are fetched and brought
// beside it, since the sandbox is the same.
func (d *Desk) intoImage(e *payload.Exec, pid int, shells []string, r sshtojob.Request) error {
	d.mu.Lock()
	through := d.through
	d.mu.Unlock()
	if through == nil || r.Kind == sshtojob.KindSFTP {
		return nil
	}
	script, args := commandInside, []string{string(r.Command)}
	if r.Kind == sshtojob.KindShell {
		script, args = shellInside, shells
	}
	argv, env, err := through(pid, e.Spec.Env, script, args...)
	if err != nil {
		return err
	}
	e.Spec.Path, e.Spec.Args, e.Spec.Env, e.Others = argv[0], argv, env, nil
	return nil
}

// welcome is what a login shell begins with.
func welcome(slot string, pid int, env []string) string {
	var b strings.Builder
	if slot != "" {
		fmt.Fprintf(&b, "Welcome to %s!\n", slot)
	}
	if pid > 0 {
		fmt.Fprintf(&b, "Your condor job is running with pid(s) %d.\n", pid)
	}
	for _, entry := range env {
		if seconds, ok := strings.CutPrefix(entry, "TMOUT="); ok && seconds != "" {
			fmt.Fprintf(&b, "You will be logged out after %s seconds of inactivity.\n", seconds)
		}
	}
	return b.String()
}

// sessionFailure tells the user why a session could not begin.
func sessionFailure(err error) error {
	refusal := (*payload.RequestError)(nil)
	switch {
	case errors.Is(err, payload.ErrLost), errors.As(err, &refusal) && refusal.Code == payload.CodeNoPayload:
		return errors.New("the job has ended")
	}
	return fmt.Errorf("no session can be had in the job's container: %w", err)
}

// endPlaceholder ends the main process of an interactive job, which only waits
// for somebody to log in (condor_ssh_to_job_shell_setup). It tells whether there
// was one.
func (d *Desk) endPlaceholder(ctx context.Context, client payload.Wrapper) bool {
	ad, _ := d.ads()
	if !ad.BoolOr("InteractiveJob", false) {
		return false
	}
	d.mu.Lock()
	first := !d.entered
	d.entered = true
	d.mu.Unlock()
	if first {
		d.Log.Info("Somebody has logged in to this interactive job; its placeholder is ended")
		if err := client.Signal(ctx, syscall.SIGTERM, false); err != nil {
			d.Log.Warn("Failed to end the placeholder", "error", err)
		}
	}
	return true
}
