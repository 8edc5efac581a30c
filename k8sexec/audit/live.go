package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"podstarter/internal/buildinfo"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// answerTime is how long a running wrapper may take to answer.
const answerTime = 5 * time.Second

// auditExecute checks the directory of sandboxes as the pilot sees it.
func (b *Inspector) auditExecute(r *report) {
	const what = "sandboxes"
	if b.Options.Execute == "" {
		r.bad(what, options.KnobExecute, "no directory is set for them")
		return
	}
	info, err := os.Lstat(b.Options.Execute)
	switch {
	case err != nil:
		r.bad(what, options.KnobExecute, "%v", err)
	case !info.IsDir():
		r.bad(what, options.KnobExecute, "%s is no directory", b.Options.Execute)
	case info.Mode().Perm()&0o001 == 0:
		r.bad(what, "chmod 0755 "+b.Options.Execute, "%s has mode %#o, so that jobs cannot get to their sandboxes in it", b.Options.Execute, info.Mode().Perm())
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0:
		r.bad(what, "chmod 0755 "+b.Options.Execute, "%s has mode %#o, so that one job could rename the sandbox of another", b.Options.Execute, info.Mode().Perm())
	default:
		owner := ""
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = fmt.Sprintf(", owner %d", stat.Uid)
		}
		r.ok(what, "%s has mode %#o%s", b.Options.Execute, info.Mode().Perm(), owner)
	}
}

// auditWrapper asks a wrapper who it is, and checks its process.
func (b *Inspector) auditWrapper(ctx context.Context, pod *corev1.Pod, container string, r *report) {
	what := "wrapper in " + container
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	dir := filepath.Join(b.Options.ControlDir, container)
	hello, err := payload.Peek(ctx, dir)
	if err != nil {
		r.bad(what, "kubectl describe pod "+b.Options.PodName, "does not answer in %s: %v; status of the container: %s", dir, err, stateOf(pod, container))
		return
	}
	before := len(r.found)
	if mine := buildinfo.Version(); hello.Version != mine {
		r.warn(what, line(container, "command, or the init container that copies the wrapper"), "has version %q, this program has %q", hello.Version, mine)
	}
	if want := pod.Annotations[podapi.NonceAnnotation+container]; hello.Nonce != want {
		r.warn(what, line(container, nonceLine("metadata.annotations['"+podapi.NonceAnnotation+container+"']")), "has nonce %q and the pod %q: a binding is going on, or the variable does not follow the annotation", hello.Nonce, want)
	}
	if !hello.NoNewPrivs {
		r.warn(what, line(container, "securityContext.allowPrivilegeEscalation: false"), "runs without no_new_privs; it sets that for jobs, but the container does not")
	}
	fence := "shares no processes with the pilot"
	if link, err := os.Readlink(filepath.Join(b.Proc, "self/ns/pid")); err == nil && link == hello.PIDNamespace {
		b.auditProcess(container, what, hello.PID, r)
		fence = "has fewer capabilities than the pilot"
	} else {
		auditUnseen(pod, container, what, r)
	}
	if !b.serves(ctx, container, hello, what, r) {
		return
	}
	if len(r.found) == before {
		r.ok(what, "answers, is of this version, and %s", fence)
	}
}

// serves tests whether the wrapper accepts orders, if it is free.
func (b *Inspector) serves(ctx context.Context, container string, hello payload.Hello, what string, r *report) bool {
	if hello.Busy {
		return true // it runs a job
	}
	tried := b.Try(ctx, container, hello.Nonce)
	if tried.Dialled != nil {
		r.bad(what, "the log of container "+container, "answers, but cannot be used: %v", tried.Dialled)
		return false
	}
	if tried.Container != nil {
		r.warn(what, "the container runtime", "its container cannot be identified, which makes restarts of the same image slower: %v", tried.Container)
	}
	if tried.Usage != nil {
		r.bad(what, "the log of container "+container, "cannot report what its payload uses: %v", tried.Usage)
		return false
	}
	return true
}

// stateOf is the state of a container as the kubelet reports it.
func stateOf(pod *corev1.Pod, container string) string {
	s := podapi.StatusOf(pod, container).State
	switch {
	case s.Waiting != nil:
		return "waiting, " + s.Waiting.Reason + " " + s.Waiting.Message
	case s.Terminated != nil:
		return fmt.Sprintf("terminated with exit code %d, %s", s.Terminated.ExitCode, s.Terminated.Reason)
	case s.Running != nil:
		return "running"
	}
	return "not known"
}

// rights of a process (proc(5), /proc/PID/status).
type processRights struct {
	permitted uint64 // CapPrm
	bounding  uint64 // CapBnd
	seccomp   int    // Seccomp: 0 none, 1 strict, 2 filter
}

// maxStatus bounds what is read of a status file; it has some 1.5 KiB.
const maxStatus = 64 << 10

func readRights(path string) (processRights, error) {
	var p processRights
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	if p, err = parseRights(io.LimitReader(f, maxStatus)); err != nil {
		return p, fmt.Errorf("read %s: %w", path, err)
	}
	return p, nil
}

// parseRights reads the text of a status file (proc_pid_status(5)).
func parseRights(r io.Reader) (p processRights, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "CapPrm":
			p.permitted, err = strconv.ParseUint(value, 16, 64)
		case "CapBnd":
			p.bounding, err = strconv.ParseUint(value, 16, 64)
		case "Seccomp":
			p.seccomp, err = strconv.Atoi(value)
		}
		if err != nil {
			return p, fmt.Errorf("field %s: %w", name, err)
		}
	}
	return p, lines.Err()
}

// capabilities of interest here (linux/capability.h).
var dangerous = map[int]string{
	unix.CAP_SYS_ADMIN: "SYS_ADMIN", unix.CAP_SYS_PTRACE: "SYS_PTRACE", unix.CAP_SYS_MODULE: "SYS_MODULE", unix.CAP_SYS_RAWIO: "SYS_RAWIO",
	unix.CAP_DAC_READ_SEARCH: "DAC_READ_SEARCH", unix.CAP_NET_ADMIN: "NET_ADMIN", unix.CAP_BPF: "BPF", unix.CAP_MKNOD: "MKNOD",
}

// auditProcess compares the wrapper's process with the pilot's.
func (b *Inspector) auditProcess(container, what string, pid int, r *report) {
	theirs, err := readRights(filepath.Join(b.Proc, strconv.Itoa(pid), "status"))
	if err != nil {
		r.warn(what, "spec.shareProcessNamespace: true", "its process cannot be inspected: %v", err)
		return
	}
	ours, err := readRights(filepath.Join(b.Proc, "self/status"))
	if err != nil {
		r.warn(what, "/proc of the pilot container", "%v", err)
		return
	}
	// ptrace(2), PTRACE_MODE_*: root may trace root if it has all of its
	// capabilities.
	if ours.permitted&^theirs.permitted == 0 {
		r.bad(what, "spec.containers[name=PILOT].securityContext.capabilities.add: (one that the payload container lacks, such as DAC_OVERRIDE)",
			"its root has every capability of the pilot, so an attacker who becomes that root can trace the pilot and read its token")
	}
	for _, need := range []struct {
		bit  int
		name string
	}{{unix.CAP_SETUID, "SETUID"}, {unix.CAP_SETGID, "SETGID"}} {
		if theirs.permitted&(1<<need.bit) == 0 {
			r.bad(what, line(container, "securityContext.capabilities.add: ["+need.name+"]"), "lacks capability %s, so that it cannot become the job's user", need.name)
		}
	}
	var extra []string
	for bit := range 64 {
		if name, ok := dangerous[bit]; ok && theirs.bounding&(1<<bit) != 0 {
			extra = append(extra, name)
		}
	}
	if len(extra) > 0 {
		r.warn(what, line(container, "securityContext.capabilities: {drop: [ALL], add: [KILL, SETGID, SETPCAP, SETUID]}"), "has capabilities that it does not need: %s", plural(extra))
	}
	if theirs.seccomp == 0 {
		r.warn(what, line(container, "securityContext.seccompProfile.type: RuntimeDefault"), "runs without a seccomp filter, and so will jobs")
	}
}

// auditUnseen goes by the manifest if the wrapper's process cannot be seen.
func auditUnseen(pod *corev1.Pod, container, what string, r *report) {
	c := podapi.SpecOf(pod, container)
	if c == nil {
		return // reported already
	}
	sc := c.SecurityContext
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	onPod := pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.SeccompProfile != nil
	if sc.SeccompProfile == nil && !onPod {
		r.warn(what, line(container, "securityContext.seccompProfile.type: RuntimeDefault"), "may run without a seccomp filter, and so may jobs")
	}
	if sc.Capabilities == nil || !slices.Contains(sc.Capabilities.Drop, "ALL") {
		r.warn(what, line(container, "securityContext.capabilities: {drop: [ALL], add: [KILL, SETGID, SETPCAP, SETUID]}"), "has the capabilities that the container runtime gives to everybody")
	}
}

// auditCgroups reports which version of control groups the pod has.
func auditCgroups(path string, r *report) {
	const what = "cgroups"
	var fs unix.Statfs_t
	switch err := unix.Statfs(path, &fs); {
	case err != nil:
		r.warn(what, "mount of "+path+" by the container runtime", "%v", err)
	case fs.Type == unix.CGROUP2_SUPER_MAGIC:
		r.ok(what, "version 2")
	default:
		r.ok(what, "version 1, which newer kubelets refuse by default")
	}
}
