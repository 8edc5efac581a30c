package payload

import (
	"errors"
	"fmt"
	"path"
)

// Mounts are what a payload has in place of directories of the machine. They are mounted once, before the first process of
// the payload starts, and end with the wrapper. Only for a wrapper with [Hello.OwnMounts].
type Mounts struct {
	// Sandbox is a directory that belongs to the payload's user. In place of the machine's directory DIR the payload has
	// Sandbox/DIR, which must be there.
	Sandbox string
	// Dirs are absolute paths, none below another.
	Dirs []string
	// SharedMemory gives the payload an empty /dev/shm of its own.
	SharedMemory bool
}

// MaxMounts bounds the directories of [Mounts].
const MaxMounts = 64

// Validate checks what it can without access to the system.
func (m *Mounts) Validate() error {
	if m == nil {
		return nil
	}
	isPath := func(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }
	if !isPath(m.Sandbox) {
		return fmt.Errorf("the directory %.200q of what is to be mounted is not an absolute path without '.', '..' and extra slashes", m.Sandbox)
	}
	if len(m.Dirs) > MaxMounts {
		return fmt.Errorf("%d directories to mount, at most %d are allowed", len(m.Dirs), MaxMounts)
	}
	if len(m.Dirs) == 0 && !m.SharedMemory {
		return errors.New("nothing is to be mounted")
	}
	for i, dir := range m.Dirs {
		if !isPath(dir) || Below(dir, m.Sandbox) || Below(m.Sandbox, dir) {
			return fmt.Errorf("cannot mount a directory of %.200q at %.200q, which must be an absolute path without '.', '..' and extra slashes, and neither above nor below", m.Sandbox, dir)
		}
		for _, other := range m.Dirs[:i] {
			if Below(dir, other) || Below(other, dir) {
				return fmt.Errorf("cannot mount directories at both %.200q and %.200q", other, dir)
			}
		}
	}
	return nil
}

// Below tells whether a path is another one or below it; both are clean.
func Below(a, b string) bool {
	return b == "/" || a == b || len(a) > len(b) && a[:len(b)] == b && a[len(b)] == '/'
}

// wireMounts is Mounts as it goes over the socket.
type wireMounts struct {
	Sandbox      raw   `json:"sandbox"`
	Dirs         []raw `json:"dirs,omitempty"`
	SharedMemory bool  `json:"shared_memory,omitempty"`
}

func rawMounts(m *Mounts) *wireMounts {
	if m == nil {
		return nil
	}
	return &wireMounts{Sandbox: raw(m.Sandbox), Dirs: rawList(m.Dirs), SharedMemory: m.SharedMemory}
}

func mountsOf(w *wireMounts) *Mounts {
	if w == nil {
		return nil
	}
	return &Mounts{Sandbox: string(w.Sandbox), Dirs: stringList(w.Dirs), SharedMemory: w.SharedMemory}
}
