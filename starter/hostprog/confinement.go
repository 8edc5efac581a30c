package hostprog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"podstarter/payload"
	"podstarter/sandbox/confine"
)

// A job can lead programs to any file: by links, its directory of tokens, or its ad.
// Where programs run as the payload's user, the files that this user may not read stay
// closed. A pilot without root has only its own user, who may read the pod's and the
// pool's tokens: there the kernel allows a program only the job's sandbox, the files
// of the pilot's image, and HTCondor's configuration.

// programTrees hold programs and their libraries. What is mounted below them is
// not included: secrets are mounted.
var programTrees = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/var/lib/ca-certificates",
}

// programFiles are mounted, and hold no secret of the pilot. In /proc, a confined
// process sees of the others only what everybody may see.
var programFiles = []string{
	"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/proc", "/sys/devices/system/cpu",
}

// programDevices may be written to. The payload has the same shared memory, with
// the same user.
var programDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"}

// authorities are the variables by which a site names certificates that it trusts.
var authorities = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "X509_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}

// confinement is what one program may use. The zero value restricts nothing.
type confinement struct {
	rules   confine.Rules
	sandbox *os.File // nil: no restriction
}

// confinement opens what a program for this job may use; where users are separate it
// restricts nothing. Each is for one run, which closes it. It must be made before the
// sandbox is removed.
func (j Job) confinement() (confinement, error) {
	if j.Host.separate {
		return confinement{}, nil
	}
	dir, err := j.Sandbox.OpenScratch()
	if err != nil {
		return confinement{}, err
	}
	c := confinement{sandbox: dir, rules: confine.Rules{
		Trees: programTrees, Write: programDevices, Change: []int{int(dir.Fd())},
		Read: append(append([]string(nil), programFiles...), j.Host.paths...),
	}}
	for _, entry := range j.Environ {
		for _, name := range authorities {
			if list, ok := strings.CutPrefix(entry, name+"="); ok {
				c.rules.Read = append(c.rules.Read, absolute(strings.Split(list, ":"))...)
			}
		}
	}
	c.configuration(j.Host.configuration)
	return c, nil
}

// configuration adds the files of HTCondor's configuration. HTCondor's Python bindings,
// and all its tools, end if one of them cannot be read. As elsewhere, secrets
// are in files that not everybody may read, and those stay closed.
func (c *confinement) configuration(paths []string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case !info.IsDir():
			c.public(path, info)
		default:
			// The directories below may hold tokens.
			c.rules.List = append(c.rules.List, path)
			entries, _ := os.ReadDir(path)
			for _, entry := range entries {
				file := filepath.Join(path, entry.Name())
				if info, err := os.Stat(file); err == nil {
					c.public(file, info)
				}
			}
		}
	}
}

// public adds a regular file that everybody may read.
func (c *confinement) public(path string, info fs.FileInfo) {
	if info.Mode().IsRegular() && info.Mode()&0o004 != 0 {
		c.rules.Read = append(c.rules.Read, path)
	}
}

func absolute(paths []string) (list []string) {
	for _, path := range paths {
		if strings.HasPrefix(path, "/") {
			list = append(list, path)
		}
	}
	return list
}

// takes reports whether it restricts anything.
func (c confinement) takes() bool { return c.sandbox != nil }

// apply confines the calling thread, on which a program is to be started.
func (c confinement) apply(program string) error {
	rules := c.rules
	rules.Read = append(rules.Read[:len(rules.Read):len(rules.Read)], program)
	return rules.Apply()
}

func (c confinement) close() {
	if c.sandbox != nil {
		c.sandbox.Close()
	}
}

// Confinable is nil if programs may run for jobs: as another user than the pilot's, or
// confined. Otherwise it says what to do.
func (h *Host) Confinable() error {
	if h.separate {
		return nil
	}
	if err := h.kernelConfines(); err != nil {
		return fmt.Errorf("the pilot is not root, and plugins and hooks would read its tokens for a job: %w; use nodes whose kernel has Landlock, or a pilot with root", err)
	}
	return nil
}

// Audit says whether plugins and hooks can be used.
func (h *Host) Audit() []payload.Finding {
	const what = "plugins and hooks"
	if h.separate {
		return nil
	}
	if err := h.Confinable(); err != nil {
		return []payload.Finding{{Grade: payload.Warn, What: what, Fix: "a kernel with Landlock on the node", Detail: "none are run for jobs: " + err.Error()}}
	}
	return []payload.Finding{{Grade: payload.OK, What: what, Detail: "the kernel keeps them from the pilot's files"}}
}

// Confine restricts a program that is to run for this job to what it may use. The
// program must then be run, once.
func (j Job) Confine(p *Program) error {
	err := j.Host.Confinable()
	if err == nil {
		p.confined, err = j.confinement()
	}
	if err != nil {
		return fmt.Errorf("%s %w: %w", p.Path, ErrNotRun, err)
	}
	p.threads = j.Host.threads
	return nil
}
