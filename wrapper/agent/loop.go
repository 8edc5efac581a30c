package agent

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// agent is the state of the wrapper. The loop owns everything except target, leaving and
// lost, which stop signals and the reader of conn also use.
type agent struct {
	station

	log      logger
	hello    payload.Hello
	control  *control
	imageEnv []string
	uid      int
	pilot    *pilot // the pilot's user, if that is neither root nor this one
	null     *os.File
	killer   *procfamily.Killer // nil without root
	cgroup   *cgroup            // nil if its figures are not the payload's
	events   chan event
	children chan os.Signal

	conn       *connection            // being served; nil when idle
	run        *run                   // latest of this connection; nil before the first
	executions map[int64]*execution   // processes beside the payload, by request
	sweep      *sweep                 // in progress; nil if none
	look       *look                  // in progress; nil if none
	tasks      *tasks                 // of the payload; nil if nobody watches them
	closed     bool                   // conn has ended, its sweep has not
	refused    bool                   // another starter came meanwhile
	going      bool                   // a stop signal came, and conn is waited for
	clean      bool                   // nothing was started since the last sweep
	links      []madeLink             // made for the payload
	mounts     *payload.Mounts        // made for the payload
	last       struct{ uid, gid int } // of the latest run of any connection; 0 before the first
	soiled     string                 // what the last sweep could not clean; empty if it could

	target  atomic.Pointer[procfamily.Family] // the payload, once there is one
	leaving atomic.Bool                       // the payload is being killed for good
	lost    atomic.Bool                       // conn has ended, and the payload was killed for it
}

// event is something that a goroutine outside the loop saw. Only one field is set, besides
// conn.
type event struct {
	accepted *connection
	line     []byte      // from conn
	lost     error       // conn has ended
	launched *launchEnd  // a launcher reported
	captured *captureEnd // all that is kept of a run's output is there
	looked   *look       // a look at the payload is over
	conn     *connection // whose line or loss it is
	stop     os.Signal   // to leave
}

// catchChildren tells the loop when children end.
func (a *agent) catchChildren() {
	a.children = make(chan os.Signal, 1)
	signal.Notify(a.children, syscall.SIGCHLD)
}

// loop serves connections for ever; leave ends the process.
func (a *agent) loop() int {
	for {
		var next <-chan time.Time
		if a.sweep != nil {
			next = a.sweep.timer.C
		}
		var count <-chan time.Time
		if a.tasks != nil {
			count = a.tasks.clock.C
		}
		select {
		case e := <-a.events:
			a.handle(e)
		case <-a.children:
			a.reap()
			if a.sweep != nil {
				a.sweepStep()
			}
		case <-next:
			a.sweepStep()
		case <-count:
			a.countTasks()
		}
	}
}

func (a *agent) handle(e event) {
	switch {
	case e.accepted != nil:
		a.welcome(e.accepted)
	case e.launched != nil:
		a.launchEnded(e.launched)
	case e.captured != nil:
		a.captureEnded(e.captured)
	case e.looked != nil:
		a.looked(e.looked)
	case e.stop != nil:
		a.stopped(e.stop)
	case e.conn != a.conn || a.closed:
		// The rest of a connection that is no longer served.
	case e.lost != nil:
		a.lose(e.lost)
	default:
		a.request(e.line)
	}
}

// welcome serves a new connection, or turns it away if there is one.
func (a *agent) welcome(c *connection) {
	hello := a.hello
	hello.Busy = a.conn != nil
	a.refused = a.refused || hello.Busy
	err := c.greet(hello)
	if hello.Busy || err != nil {
		c.close()
		return
	}
	a.conn = c
	go c.read(a.events, a.strike)
	a.openFigures() // only now: nobody waits for this, but a starter waits for the greeting
	a.offerMemory()
}

// strike kills the payload as soon as the reader of conn sees the end. The loop does the
// rest when the payload leaves it CPU time: each switch between threads may take seconds.
func (a *agent) strike() {
	f := a.target.Load()
	if f == nil || f.UID < 0 {
		return // a payload without its own user must be searched for
	}
	a.lost.Store(true)
	if err := f.Strike(syscall.SIGKILL, a.killer); err != nil {
		a.log.print("the connection has ended: %v", err)
	}
}

// lose is the dead-man's switch: the starter is gone, so the payload must go.
func (a *agent) lose(why error) {
	a.conn.close()
	a.closed = true
	a.stopLook("the connection has ended")
	if a.run == nil || a.clean && a.sweep == nil {
		a.free()
		return
	}
	a.log.print("connection lost (%v), killing the payload of %s", why, a.run.spec.Activation)
	a.beginSweep(0, payload.KilledLost)
}

// free stops serving a connection whose payload is gone.
func (a *agent) free() {
	a.unwatchTasks()
	a.conn, a.run, a.closed = nil, nil, false
	clear(a.executions)
	a.target.Store(nil)
	a.lost.Store(false)
	if a.going {
		a.end()
	}
	if a.refused {
		// And nobody else: a starter that found another nonce here would come again and again.
		a.refused = false
		a.control.announceAgain()
	}
	freeMemory()
}

// reply sends a message on the connection being served. A failure shows up as the loss of
// the connection.
func (a *agent) reply(m payload.Message) {
	if a.closed || a.conn == nil {
		return
	}
	if err := a.conn.send(m); err != nil {
		a.conn.close()
	}
}

func (a *agent) refuse(id int64, code, message string) {
	a.reply(payload.Message{ID: id, Error: &payload.RequestError{Code: code, Message: message}})
}

// reap collects the wait status of every child that has ended, and tells whether no
// children are left.
func (a *agent) reap() (childless bool) {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return true
		case err != nil || pid <= 0:
			return false
		}
		if a.run == nil {
			continue
		}
		a.run.addUsage(&usage)
		a.reapedExec(pid, status)
		if pid == a.run.pid {
			a.run.pid = 0
			a.run.status, a.run.ended = status, time.Now()
			a.run.capture.end()
			a.advance()
		}
	}
}
