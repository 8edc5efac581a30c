// Package facts is what the probe reports and the tests read.
package facts

// Facts is what the process sees of itself and its surroundings.
type Facts struct {
	Image      string // content of /image-name
	Layer      string // upper directory of the root file system: one per container
	Args       []string
	Env        []string
	Dir        string
	UID, GID   int
	Groups     []int
	Status     map[string]string // lines of /proc/self/status that are about rights and signals
	Session    bool              // leads a session of its own
	Umask      int
	Nice       int
	OOMScore   string
	Limits     map[string]string // soft limits of /proc/self/limits
	Descriptor map[string]string // open files, by number
	Stdin      string
	Files      map[string]string // below Dir: mode and size
	Peeks      map[string]string
	Setuid     map[string]Setuid
}

// Ready is the name in the process table of a probe that waits and has done all
// before that.
const Ready = "probe-ready"

// Setuid is the result of running a setuid program.
type Setuid struct {
	Mode      string // of the file
	Owner     int    // of the file
	Effective int    // user id of the process that ran it
	Error     string
}
