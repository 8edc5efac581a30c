package condortest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/rescue"
)

// Schedd is a schedd with the queue of one job, which it has run as one of the local universe. It says what
// condor_schedd.V6/qmgmt_receivers.cpp says.
type Schedd struct {
	Address string         // in angle brackets
	Session *cedar.Session // of the starter with it

	mu      sync.Mutex
	queue   map[string]string // what was committed
	refused map[string]syscall.Errno
	fail    int // so many connections end in the middle
	users   []string

	private  string
	starter  *net.TCPListener
	sessions *cedar.Sessions
}

// Numbers of the calls of the job queue.
const (
	queueWrite     = 1112
	queueSet       = 10006
	queueCommit    = 10007
	queueGetInt    = 10009
	queueGetExpr   = 10011
	queueSetQuiet  = 10027
	queueClose     = 10028
	queueEffective = 10030
)

// NewSchedd starts one, until the test ends. queue is what it has of the job.
func NewSchedd(t testing.TB, queue map[string]string) *Schedd {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d := &Schedd{Address: "<" + l.Addr().String() + ">", queue: map[string]string{}, refused: map[string]syscall.Errno{}, sessions: cedar.NewSessions()}
	for name, expr := range queue {
		d.queue[name] = expr
	}
	const policy = `[Integrity="YES";Encryption="YES";ShortVersion="25.14.1";CryptoMethods="AES";CryptoMethodsList="AES";]`
	parent, family := random(24)+"#"+policy+random(32), "family:"+random(24)+"#"+policy+random(32)
	d.private = privateInherit(parent, family)
	for _, id := range []string{parent, family} {
		s, err := cedar.ImportSession(id, "condor@child", cedar.Administrator, cedar.Daemon, cedar.Write)
		must(t, err)
		must(t, d.sessions.Add(s))
	}
	d.Session, err = cedar.ImportSession(family, "condor@family", cedar.Daemon)
	must(t, err)
	server := &cedar.Server{Sessions: d.sessions, Version: "$CondorVersion: 25.14.1 2026-01-01 $"}
	server.HandleSpeaking(queueWrite, cedar.Write, d.serve)
	server.Handle(cedar.DCChildAlive, cedar.Daemon, func(context.Context, *cedar.Call) error { return nil })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	rescue.Go(func() {
		defer close(done)
		_ = server.Serve(ctx, l)
	})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	starter, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d.starter = starter.(*net.TCPListener)
	return d
}

// Env is what a starter inherits, for one starter of this process.
func (d *Schedd) Env(t testing.TB) []string {
	t.Helper()
	port, err := descriptor(d.starter)
	must(t, err)
	must(t, d.starter.Close())
	return []string{
		fmt.Sprintf("CONDOR_INHERIT=%d %s 0 1 %d*2*0*0*0*0***1**0*0*0*0*0*0*0* 0", os.Getpid(), d.Address, port),
		"CONDOR_PRIVATE_INHERIT=" + d.private,
	}
}

// Signal sends the starter a signal of daemons, such as [cedar.DCSigSoftKill].
func (d *Schedd) Signal(t testing.TB, starter string, sig int) {
	t.Helper()
	client := &cedar.Client{Version: "$CondorVersion: 25.14.1 2026-01-01 $", Name: "SCHEDD"}
	s, err := client.Command(t.Context(), starter, cedar.DCRaiseSignal, d.Session)
	must(t, err)
	defer s.Close()
	s.PutInt(int64(sig))
	must(t, s.EndMessage())
	must(t, s.Flush())
}

// Queue is what the queue has of an attribute.
func (d *Schedd) Queue(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue[name]
}

// Users are in whose names the queue was changed.
func (d *Schedd) Users() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.users
}

// Refuse makes it refuse to set or tell an attribute.
func (d *Schedd) Refuse(name string, errno syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused[name] = errno
}

// Fail makes it hang up on the next n connections.
func (d *Schedd) Fail(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = n
}

// serve is one connection, which is one transaction.
func (d *Schedd) serve(_ context.Context, c *cedar.Call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail > 0 {
		d.fail--
		return nil
	}
	s, changes, refused := c.Stream, map[string]string{}, syscall.Errno(0)
	for {
		call, err := s.GetInt()
		if err != nil {
			return err
		}
		if call == queueClose {
			return s.EndOfMessage()
		}
		text, answer, errno, err := d.call(s, call, changes)
		if err == nil {
			err = s.EndOfMessage()
		}
		if err != nil {
			return err
		}
		if call == queueSetQuiet { // the commit tells
			if errno != 0 {
				refused = errno
			}
			continue
		}
		if call == queueCommit && refused != 0 {
			errno = refused
		}
		if errno != 0 {
			s.PutInt(-1)
			s.PutInt(int64(errno))
		} else {
			s.PutInt(0)
			if call == queueCommit {
				for name, expr := range changes {
					d.queue[name] = expr
				}
			}
			if answer {
				if call == queueGetInt {
					n, _ := strconv.ParseInt(text, 10, 64)
					s.PutInt(n)
				} else {
					s.PutString(text)
				}
			}
		}
		if err := s.EndMessage(); err != nil {
			return err
		}
	}
}

// call takes one call. text is its answer, if it has one.
func (d *Schedd) call(s *cedar.Stream, call int64, changes map[string]string) (text string, answer bool, errno syscall.Errno, err error) {
	switch call {
	case queueEffective:
		user, err := s.GetString()
		d.users = append(d.users, user)
		return "", false, d.refused["SetEffectiveOwner"], err
	case queueCommit:
		return "", false, 0, nil
	}
	for range 2 { // the job
		if _, err := s.GetInt(); err != nil {
			return "", false, 0, err
		}
	}
	expr := ""
	if call == queueSet || call == queueSetQuiet {
		if expr, err = s.GetString(); err != nil {
			return "", false, 0, err
		}
	}
	name, err := s.GetString()
	if err != nil {
		return "", false, 0, err
	}
	switch call {
	case queueSetQuiet:
		if _, err := s.GetBytes(1); err != nil {
			return "", false, 0, err
		}
		fallthrough
	case queueSet:
		if strings.ContainsAny(expr, "\n\r") { // compat_classad.cpp:IsValidAttrValue
			return "", false, syscall.EINVAL, nil
		}
		changes[name] = expr
		return "", false, d.refused[name], nil
	case queueGetInt, queueGetExpr:
		text, has := d.queue[name]
		if !has {
			return "", false, syscall.ENOENT, nil
		}
		return text, true, d.refused[name], nil
	}
	return "", false, 0, fmt.Errorf("call %d is unknown", call)
}

// Inherited takes over what the schedd hands down, for tests of parts.
func (d *Schedd) Inherited(t testing.TB) *startd.Inheritance {
	t.Helper()
	h, err := startd.InheritFromSchedd(d.Env(t))
	must(t, err)
	return h
}
