// Package startd is a starter's side of its talk with the startd that spawned it:
// taking over what the startd handed down, sending it updates about the job and
// keep-alives, and reading its orders.
package startd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/internal/cedar"
)

// Environment variables by which daemons hand down shared objects
// (condor_daemon_core.V6/daemon_core.cpp:Create_Process, Inherit).
const (
	envInherit        = "CONDOR_INHERIT"
	envPrivateInherit = "CONDOR_PRIVATE_INHERIT"
	envCookie         = "CONDOR_PRIVATE_SHARED_PORT_COOKIE"
	envPrivatePrefix  = "CONDOR_PRIVATE_"
)

// Users of the sessions on which commands arrive.
const (
	userParent = "condor@parent"
	userFamily = "condor@family"
)

// maxInherit bounds the variables in bytes; the kernel allows 128 KiB for each
// (execve(2)).
const maxInherit = 256 << 10

// Inheritance is what a startd hands down to a starter.
type Inheritance struct {
	ParentPID int
	Parent    cedar.Sinful // the startd's address
	// Update is the socket for updates about the job; Syscall the one to the shadow, in
	// the middle of its talk.
	Update, Syscall *cedar.Stream
	// Listener accepts the starter's commands; EndpointID is its id behind the shared
	// port, empty if it has a port of its own. Second is that of the other protocol if it has
	// one for each, else nil.
	Listener, Second net.Listener
	EndpointID       string
	// ParentSession is shared only with the startd, FamilySession with all daemons
	// below one master. Either may be nil.
	ParentSession, FamilySession *cedar.Session
	// ParentID names the startd process, host:pid:birth.
	ParentID string
}

// Version returns the startd's $CondorVersion$ string from its session; empty if there
// is none. Stock's starter and startd come from one package.
func (h *Inheritance) Version() string {
	for _, s := range []*cedar.Session{h.ParentSession, h.FamilySession} {
		if s != nil && s.PeerVersion != "" {
			return s.PeerVersion
		}
	}
	return ""
}

// SecretVariables lists the variables that no child of the starter may see.
func SecretVariables() []string { return []string{envInherit, envPrivateInherit, envCookie} }

// ScrubEnv returns an environment without daemons' private variables.
func ScrubEnv(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if name != envInherit && !strings.HasPrefix(name, envPrivatePrefix) {
			kept = append(kept, entry)
		}
	}
	return kept
}

func getenv(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Inherit takes over what the startd handed down. The result owns the descriptors named
// in the environment, even after an error. The caller removes [SecretVariables] from
// the process's environment. No error shows a secret.
func Inherit(env []string) (*Inheritance, error) {
	text := getenv(env, envInherit)
	if text == "" {
		return nil, fmt.Errorf("%s is not set; a starter is started by condor_startd, through its STARTER knob", envInherit)
	}
	return takeOver(env, text, 2)
}

// InheritFromSchedd takes over what a schedd hands down to the starter of a job of the local universe: no connections, since
// there is no shadow (condor_schedd.V6/schedd.cpp:spawnLocalStarter).
func InheritFromSchedd(env []string) (*Inheritance, error) {
	text := getenv(env, envInherit)
	if text == "" {
		return nil, fmt.Errorf("%s is not set; a starter with -schedd-addr is started by condor_schedd, through its STARTER_LOCAL knob", envInherit)
	}
	return takeOver(env, text, 0)
}

// InheritWithoutShadow takes over what a startd hands down to a starter whose job has no shadow, since the startd fetched it itself: one
// connection, for updates (condor_startd.V6/Starter.cpp:execJobPipeStarter). The caller puts something in the place of Syscall.
func InheritWithoutShadow(env []string) (*Inheritance, error) {
	text := getenv(env, envInherit)
	if text == "" {
		return nil, fmt.Errorf("%s is not set; a starter with -job-input-ad is started by condor_startd, for work that a FETCH_WORK hook gave it", envInherit)
	}
	return takeOver(env, text, 1)
}

func takeOver(env []string, text string, connections int) (*Inheritance, error) {
	h := &Inheritance{ParentID: getenv(env, "CONDOR_PARENT_ID")}
	err := h.take(text, connections)
	if err == nil {
		err = h.sessions(getenv(env, envPrivateInherit))
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *Inheritance) close() {
	for _, s := range []*cedar.Stream{h.Update, h.Syscall} {
		if s != nil {
			s.Close()
		}
	}
	for _, l := range []net.Listener{h.Listener, h.Second} {
		if l != nil {
			l.Close()
		}
	}
}

// Tags before each socket in CONDOR_INHERIT.
const (
	tagEnd  = "0"
	tagTCP  = "1"
	tagUDP  = "2"
	tagPort = "SharedPort:"
)

// take reads
//
//	PPID PARENT { 1 SOCKET | 2 SOCKET } 0 [ SharedPort:... ] { 1 SOCKET | 2 SOCKET } 0
//
// The first list is the starter's two connections, update then syscall; the
// second its command sockets (daemon_core.cpp:Inherit,
// condor_starter.V6.1/jic_shadow.cpp:JICShadow::JICShadow).
func (h *Inheritance) take(text string, connections int) error {
	if len(text) > maxInherit {
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", envInherit, len(text), maxInherit)
	}
	t := &tokens{rest: strings.Fields(text)}
	pid, err := strconv.Atoi(t.next())
	if err != nil || pid <= 0 || pid > maxPID {
		return fmt.Errorf("%s does not begin with the process id of the parent", envInherit)
	}
	h.ParentPID = pid
	if h.Parent, err = cedar.ParseSinful(t.next()); err != nil {
		return fmt.Errorf("%s: address of the parent: %w", envInherit, err)
	}
	var streams []*cedar.Stream
	err = t.list(func(socket string) error {
		if len(streams) == connections {
			return fmt.Errorf("more than %d connections are handed down; a startd hands down two for a job with a shadow and one for work that it fetched, a schedd none", connections)
		}
		s, err := cedar.Adopt(socket)
		if err == nil {
			streams = append(streams, s)
		}
		return err
	})
	if len(streams) > 0 {
		h.Update = streams[0]
	}
	if len(streams) > 1 {
		h.Syscall = streams[1]
	}
	if err == nil && len(streams) < connections {
		err = fmt.Errorf("%d connections are handed down, %d were expected: to the startd, and to the shadow of a job that has one", len(streams), connections)
	}
	if err != nil {
		return fmt.Errorf("%s: connections: %w", envInherit, err)
	}
	if err := h.takeListeners(t); err != nil {
		return fmt.Errorf("%s: command sockets: %w", envInherit, err)
	}
	return nil
}

// maxPID is the largest process id of Linux (proc(5): pid_max).
const maxPID = 1 << 22

func (h *Inheritance) takeListeners(t *tokens) error {
	listen := func(text string) error {
		switch {
		case h.Listener == nil:
			l, id, err := cedar.ListenInherited(text)
			h.Listener, h.EndpointID = l, id
			return err
		case h.Second == nil && h.EndpointID == "": // one for each protocol
			l, _, err := cedar.ListenInherited(text)
			h.Second = l
			return err
		}
		return closeSocket(text)
	}
	if strings.HasPrefix(t.peek(), tagPort) {
		if err := listen(t.next()); err != nil {
			return err
		}
	}
	if err := t.list(listen); err != nil {
		return err
	}
	if h.Listener == nil {
		return errors.New("there is none; the startd could not reach this starter")
	}
	return nil
}

// tokens are the words of CONDOR_INHERIT that are left.
type tokens struct{ rest []string }

func (t *tokens) peek() string {
	if len(t.rest) == 0 {
		return ""
	}
	return t.rest[0]
}

func (t *tokens) next() string {
	word := t.peek()
	if len(t.rest) > 0 {
		t.rest = t.rest[1:]
	}
	return word
}

// list reads tagged sockets up to the end mark. It closes UDP sockets: all commands can
// come by TCP too.
func (t *tokens) list(take func(socket string) error) error {
	for {
		switch tag := t.next(); tag {
		case tagEnd:
			return nil
		case tagTCP:
			if err := take(t.next()); err != nil {
				return err
			}
		case tagUDP:
			if err := closeSocket(t.next()); err != nil {
				return err
			}
		case "":
			return errors.New("the list has no end")
		default:
			return errors.New("the list has a socket of an unknown kind")
		}
	}
}

// closeSocket closes the descriptor that a serialized socket begins with.
func closeSocket(text string) error {
	number, _, _ := strings.Cut(text, "*")
	fd, err := strconv.Atoi(number)
	const firstInherited = 3
	if err != nil || fd < firstInherited {
		return errors.New("a socket's descriptor is not a number above 2")
	}
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return fmt.Errorf("descriptor %d is not a socket: %w", fd, err)
	}
	return unix.Close(fd)
}

// sessions reads CONDOR_PRIVATE_INHERIT: words NAME:CLAIMID.
func (h *Inheritance) sessions(text string) error {
	if len(text) > maxInherit {
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", envPrivateInherit, len(text), maxInherit)
	}
	for _, word := range strings.Fields(text) {
		name, claim, _ := strings.Cut(word, ":")
		var err error
		switch name {
		case "SessionKey":
			h.ParentSession, err = cedar.ImportSession(claim, userParent, cedar.Administrator, cedar.Daemon, cedar.ClientLevel)
			if err == nil {
				h.ParentSession.Addr = h.Parent.String()
			}
		case "FamilySessionKey":
			h.FamilySession, err = cedar.ImportSession(claim, userFamily, cedar.Administrator, cedar.Daemon, cedar.Negotiator,
				cedar.AdvertiseStartd, cedar.AdvertiseSchedd, cedar.AdvertiseMaster, cedar.ClientLevel)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", envPrivateInherit, name, err)
		}
	}
	return nil
}

// LogValue shows what was inherited, without secrets.
func (h *Inheritance) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("parentPID", h.ParentPID), slog.String("parent", h.Parent.String()), slog.String("endpoint", h.EndpointID),
		slog.String("startdVersion", h.Version()),
		slog.Bool("parentSession", h.ParentSession != nil), slog.Bool("familySession", h.FamilySession != nil),
	)
}
