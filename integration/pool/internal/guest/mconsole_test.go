package guest

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kernelConsole answers one request at the place where a kernel has its management console, and returns the request.
func kernelConsole(t *testing.T, m Machine, reply []byte) <-chan []byte {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(m.Dir, m.Name), 0o755); err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(m.Dir, m.Name, "mconsole"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	requests := make(chan []byte, 1)
	go func() {
		buf := make([]byte, 1<<10)
		n, from, err := conn.ReadFromUnix(buf)
		if err != nil {
			return
		}
		requests <- buf[:n]
		_, _ = conn.WriteToUnix(reply, from)
	}()
	return requests
}

func reply(failed uint32, text string) []byte {
	b := make([]byte, 12)
	binary.NativeEndian.PutUint32(b, failed)
	binary.NativeEndian.PutUint32(b[8:], uint32(len(text)))
	return append(b, text...)
}

func TestHalt(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply []byte
		err   string
	}{
		{"done", reply(0, ""), ""},
		{"refused", reply(1, "Unknown command\n"), "asking the guest one to cad: Unknown command"},
		{"nonsense", []byte("x"), "asking the guest one to cad: a reply of 1 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := Machine{Name: "one", Dir: shortDir(t)}
			requests := kernelConsole(t, m, tc.reply)
			err := m.Halt()
			if text := errorText(err); text != tc.err {
				t.Errorf("Halt: %q, want %q", text, tc.err)
			}
			request := <-requests
			// struct mconsole_request of the kernel has 524 bytes.
			if len(request) != 524 || binary.NativeEndian.Uint32(request) != 0xcafebabe || binary.NativeEndian.Uint32(request[4:]) != 2 ||
				binary.NativeEndian.Uint32(request[8:]) != 3 || !bytes.HasPrefix(request[12:], []byte("cad\x00")) {
				t.Errorf("the request is %q", request)
			}
		})
	}
	err := Machine{Name: "one", Dir: shortDir(t)}.Halt()
	if err == nil || !strings.HasPrefix(err.Error(), "asking the guest one to cad: ") {
		t.Errorf("Halt without a kernel: %v", err)
	}
}

// shortDir is short enough for the path of a socket (unix(7)).
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "guest-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
