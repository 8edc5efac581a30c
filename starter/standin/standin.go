package standin

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/condor/userlog"
	"podstarter/internal/cedar"
	"podstarter/rescue"
	"podstarter/sandbox"
	"podstarter/starter/settings"
)

// Options are what is known of a job without a shadow.
type Options struct {
	Input    io.Reader // the job's ad, as lines
	Settings settings.Settings
	Log      *slog.Logger
}

// Shadow answers the calls of one activation.
type Shadow struct {
	opt  Options
	log  *slog.Logger
	ad   *classads.Ad
	over chan struct{} // closed when the last call was heard
	end  net.Conn      // the activation's end of the connection; nil before there is one

	mu     sync.Mutex
	events *userlog.Log                 // nil if the job has none, or before its user is known
	later  func() (*userlog.Log, error) // opens a log in the sandbox, which is made after the user is known

	// What follows belongs to the goroutine that serves.
	address   string // of the starter
	suspended bool
}

// New reads the job's ad. An error says why the job cannot be run.
func New(o Options) (*Shadow, error) {
	ad, err := readAd(o.Input, o.Settings, o.Log)
	if err != nil {
		return nil, err
	}
	return &Shadow{opt: o, log: o.Log, ad: ad, over: make(chan struct{})}, nil
}

// Inherit takes over what the startd handed down, and begins to answer calls on the connection that is to the shadow otherwise.
func (s *Shadow) Inherit(env []string) (*startd.Inheritance, error) {
	h, err := startd.InheritWithoutShadow(env)
	if err != nil {
		return nil, err
	}
	mine, theirs, err := pair()
	if err != nil {
		return nil, fmt.Errorf("make a connection for calls: %w", err)
	}
	s.end, h.Syscall = theirs, cedar.NewStream(theirs)
	rescue.Go(func() { s.serve(cedar.NewStream(mine)) })
	return h, nil
}

// pair are the two ends of a connection.
func pair() (a, b net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "calls")
		conn, e := net.FileConn(f) // a duplicate
		ends[i], err = conn, errors.Join(err, e, f.Close())
	}
	if err != nil {
		for _, end := range ends {
			if end != nil {
				end.Close()
			}
		}
		return nil, nil, err
	}
	return ends[0], ends[1], nil
}

// lastTime is how long the last event may take to be written: the file system of the log may not answer.
const lastTime = 10 * time.Second

// Wait waits until the last call was heard, which may have no answer. The activation has ended.
func (s *Shadow) Wait() {
	if s.end == nil {
		return
	}
	s.end.Close()
	timer := time.NewTimer(lastTime)
	defer timer.Stop()
	select {
	case <-s.over:
	case <-timer.C:
		s.log.Error("The job's event log is not written: its file system does not answer")
	}
}

// serve answers calls until the connection ends.
func (s *Shadow) serve(st *cedar.Stream) {
	defer close(s.over)
	defer st.Close()
	for {
		if err := s.call(st); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, errLast) && !errors.Is(err, syscall.ECONNRESET) {
				s.log.Error("A call that would go to a shadow failed", "error", err)
			}
			return
		}
	}
}

var errLast = errors.New("this was the last call")

// call hears one call and answers it.
func (s *Shadow) call(st *cedar.Stream) error {
	number, err := st.GetInt()
	if err != nil {
		return err
	}
	var status, reason int64
	var ad *classads.Ad
	if number == shadow.CallJobExit {
		if status, err = st.GetInt(); err == nil {
			reason, err = st.GetInt()
		}
	}
	if err == nil && number != shadow.CallGetJobInfo && number != shadow.CallBeginExecution {
		ad, err = st.GetAd()
	}
	if err == nil {
		err = st.EndOfMessage()
	}
	if err != nil {
		return fmt.Errorf("call %d: %w", number, err)
	}
	switch number {
	case shadow.CallGetJobInfo:
		st.PutInt(0)
		st.PutAd(s.ad)
		return st.EndMessage()
	case shadow.CallRegisterStarterInfo:
		s.address = ad.StringOr("StarterIpAddr", "")
	case shadow.CallBeginExecution:
		s.write(userlog.Execute{Host: s.address})
	case shadow.CallRegisterJobInfo:
		s.follow(ad)
	case shadow.CallJobTermination:
	case shadow.CallULog:
		return s.report(ad)
	case shadow.CallJobExit:
		s.exited(int(status), shadow.Reason(reason), ad)
	default:
		return fmt.Errorf("call %d needs a shadow, and the job has none", number)
	}
	st.PutInt(0)
	if err := st.EndMessage(); err != nil || number != shadow.CallJobExit {
		return err
	}
	return errLast
}

// files is as whom the log is written.
func files(uid, gid int) sandbox.Owner {
	if os.Getuid() != 0 {
		return sandbox.Self()
	}
	return sandbox.Owner{UID: uid, GID: gid}
}
