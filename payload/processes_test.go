package payload

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSeenPID: the starter sees a payload in its own PID namespace, and one that localexec has put into another; the kernel says under which number.
func TestSeenPID(t *testing.T) {
	own := pidNamespace()
	for name, tt := range map[string]struct {
		hello string
		peer  int32
		want  int
	}{
		"shared":               {hello: `"pid":7,"pid_namespace":"` + own + `"`, peer: 7, want: 7},
		"another's number":     {hello: `"pid":8,"pid_namespace":"` + own + `"`, peer: 7},
		"its own":              {hello: `"pid":1,"pid_namespace":"pid:[1]","own_processes":true`, peer: 7, want: 7},
		"its own, out of view": {hello: `"pid":1,"pid_namespace":"pid:[1]","own_processes":true`},
		"of a container":       {hello: `"pid":1,"pid_namespace":"pid:[1]"`, peer: 7},
	} {
		dir := t.TempDir()
		fakeWrapper(t, dir, say(`{"hello":{"protocol":2,`+tt.hello+`}}`+"\n"))
		c, err := Dial(soon(t, patience), Options{Dir: dir,
			peer: func(*net.UnixConn) (*unix.Ucred, error) {
				return &unix.Ucred{Pid: tt.peer, Uid: uint32(os.Geteuid())}, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.SeenPID(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
		c.Close()
	}
	if got := (Started{PID: 7}).Own(); got != 7 {
		t.Errorf("without a namespace, %d", got)
	}
	if got := (Started{PID: 7, OwnPID: 2}).Own(); got != 2 {
		t.Errorf("in a namespace, %d", got)
	}
}
