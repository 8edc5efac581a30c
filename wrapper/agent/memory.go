package agent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/memcg"
)

// offerMemory sends the open files of the memory control group: the starter can look at them
// after the kernel has killed everything in the group, this process included. It comes
// before any answer to a request.
func (a *agent) offerMemory() {
	c := a.cgroup
	if c == nil || c.memoryDir() == "" {
		return
	}
	names, files := memcg.Open(c.version, c.memoryDir(), c.peak)
	defer closeFiles(files)
	if len(files) == 0 {
		return
	}
	err := a.conn.sendMemory(payload.MemoryFiles{Version: c.version, Files: names, LimitAbove: c.limitAbove()}, files)
	if err != nil {
		a.conn.close() // as with replies; some only ask who is there, and have hung up
	}
}

func (c *connection) sendMemory(m payload.MemoryFiles, files []*os.File) error {
	line, err := payload.EncodeLine(payload.Message{Memory: &m})
	if err != nil {
		return err
	}
	if err := c.sock.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	return payload.SendFiles(c.sock, line, files)
}

// openPeak opens memory.peak for beginning it anew, which needs Linux 6.12 and a control group
// file system that is not mounted read-only, as it is in most containers.
func (c *cgroup) openPeak() {
	if c.version != 2 || c.memoryDir() == "" {
		return
	}
	f, err := os.OpenFile(c.file("", memcg.Peak2), os.O_RDWR, 0) //nolint:forbidigo // the kernel's, as is checked below
	if err != nil {
		return
	}
	var at unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &at); err != nil || at.Type != unix.CGROUP2_SUPER_MAGIC {
		f.Close()
		return
	}
	c.peak = f
	if !c.renewPeak() {
		f.Close()
		c.peak = nil
	}
}

// renewPeak makes the kernel's peak that of the run to come. Only those who read through the
// same open file see that: this process, and the starter that it was passed to.
func (c *cgroup) renewPeak() bool {
	if c == nil || c.peak == nil {
		return false
	}
	_, err := c.peak.WriteAt([]byte("reset"), 0)
	return err == nil
}

func readAt(f *os.File) []byte {
	var buffer [32]byte
	n, _ := f.ReadAt(buffer[:], 0)
	return buffer[:n]
}
