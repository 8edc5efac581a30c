package localexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"podstarter/payload"
)

// container implements payload.Container: the wrapper of one activation.
type container struct {
	client  *payload.Client
	process *process
	lost    chan error
	stop    func() bool
}

func newContainer(client *payload.Client, p *process) *container {
	c := &container{client: client, process: p, lost: make(chan error, 1)}
	c.stop = context.AfterFunc(p.ended, func() { c.lost <- context.Cause(p.ended) })
	return c
}

// Client implements payload.Container.
func (c *container) Client() payload.Wrapper { return c.client }

// Image implements payload.Container. It is empty: there are no images.
func (c *container) Image() string { return "" }

// Command implements payload.Container. There are no images.
func (c *container) Command(context.Context) (payload.ImageCommand, error) {
	return payload.ImageCommand{}, errors.New("this execution point has no images")
}

// Lost implements payload.Container. It sends one error, the reason, if the wrapper ends
// during the activation.
func (c *container) Lost() <-chan error { return c.lost }

// Ending implements payload.Container. It is nil: only the starter ends the wrapper.
func (c *container) Ending() <-chan payload.Notice { return nil }

// Suspect implements payload.Container.
func (c *container) Suspect() {}

// Doom implements payload.Container, as Suspect does.
func (c *container) Doom(context.Context) (payload.Notice, bool) { return payload.Notice{}, false }

// leavePause is how long a wrapper may take to leave before it is killed. It
// takes at most a second to kill its payload.
const leavePause = 5 * time.Second

// end makes the wrapper leave, which kills the payload first.
func (c *container) end(ctx context.Context) error {
	c.stop()
	closed := c.client.Close()
	// Do not send a request: the connection may be lost or closed already.
	if err := c.process.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		closed = errors.Join(closed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, leavePause)
	defer cancel()
	select {
	case <-c.process.ended.Done():
		return closed
	case <-ctx.Done():
		c.process.kill()
		return errors.Join(closed, fmt.Errorf("the wrapper had to be killed: %w", context.Cause(ctx)))
	}
}

// PlatformEnv implements payload.Container. It is empty: the payload's environment comes
// only from the job.
func (c *container) PlatformEnv() []string { return nil }
