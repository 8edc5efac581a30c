package cedar

import (
	"io"
	"net"
	"time"
)

// fakeConn is a connection without a peer.
type fakeConn struct {
	in  io.Reader
	out io.Writer
}

func (c *fakeConn) Read(p []byte) (int, error)         { return c.in.Read(p) }
func (c *fakeConn) Write(p []byte) (int, error)        { return c.out.Write(p) }
func (c *fakeConn) Close() error                       { return nil }
func (c *fakeConn) LocalAddr() net.Addr                { return nil }
func (c *fakeConn) RemoteAddr() net.Addr               { return nil }
func (c *fakeConn) SetDeadline(time.Time) error        { return nil }
func (c *fakeConn) SetReadDeadline(t time.Time) error  { return nil }
func (c *fakeConn) SetWriteDeadline(t time.Time) error { return nil }
