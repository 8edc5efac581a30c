package main

import (
	"fmt"
	"os"
	"strings"

	"podstarter/payload"
	"podstarter/sandbox/confine"
	"podstarter/starter/settings"
)

// Programs of the site run for a job with files that the job may choose: links, a
// directory of tokens, what stands in its ad. Where they run as the payload's user, a
// file that this user may not read stays closed. A pilot without root has no other user
// than its own, who may read the pod's and the pool's tokens; there the kernel takes
// all from the program but the job's sandbox and what comes with the pilot's image.

// programTrees are what programs and their libraries are made of, less what is
// mounted there: secrets are.
var programTrees = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/var/lib/ca-certificates",
}

// programFiles are mounted, and hold no secret of the pilot's. What a process may
// learn of others in /proc the kernel decides, for which a confined one is nobody.
var programFiles = []string{
	"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/proc", "/sys/devices/system/cpu",
}

// programDevices may be written to. The payload has the same shared memory, with
// the same user.
var programDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"}

// authorities are the variables by which a site names certificates that it trusts.
var authorities = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "X509_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}

// confinement is what is left to one program. The zero value takes nothing.
type confinement struct {
	rules   confine.Rules
	sandbox *os.File // nil: nothing is taken
}

// confinement is what is left to a program that runs for this job. Each is for one
// run, which closes it; it is made by who could remove the sandbox, and before that.
func (a *activation) confinement() (confinement, error) {
	if a.set.SeparateUsers() {
		return confinement{}, nil
	}
	dir, err := a.sandbox.OpenScratch()
	if err != nil {
		return confinement{}, err
	}
	c := confinement{sandbox: dir, rules: confine.Rules{
		Trees: programTrees, Write: programDevices, Change: []int{int(dir.Fd())},
		Read: append(append([]string(nil), programFiles...), a.set.ProgramPaths...),
	}}
	for _, entry := range a.environ {
		for _, name := range authorities {
			if list, ok := strings.CutPrefix(entry, name+"="); ok {
				c.rules.Read = append(c.rules.Read, absolute(strings.Split(list, ":"))...)
			}
		}
	}
	return c, nil
}

func absolute(paths []string) (list []string) {
	for _, path := range paths {
		if strings.HasPrefix(path, "/") {
			list = append(list, path)
		}
	}
	return list
}

// takes reports whether it takes anything.
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

// confinable is nil if the site's programs may be run for jobs: as another user than
// the pilot's, or confined. Else it says what to do.
func confinable(set settings.Settings) error {
	if set.SeparateUsers() {
		return nil
	}
	if err := kernelConfines(); err != nil {
		return fmt.Errorf("the pilot is not root, and plugins and hooks would read its tokens for a job: %w; use nodes whose kernel has Landlock, or a pilot with root", err)
	}
	return nil
}

// kernelConfines is replaced in tests.
var kernelConfines = confine.Supported

// auditConfinement says whether plugins and hooks can be used.
func auditConfinement(set settings.Settings) []payload.Finding {
	const what = "plugins and hooks"
	if set.SeparateUsers() {
		return nil
	}
	if err := confinable(set); err != nil {
		return []payload.Finding{{Grade: payload.Warn, What: what, Fix: "a kernel with Landlock on the node", Detail: "none are run for jobs: " + err.Error()}}
	}
	return []payload.Finding{{Grade: payload.OK, What: what, Detail: "the kernel keeps them from the pilot's files"}}
}

// confine leaves a program that is to run for this job no more than it may have.
func (a *activation) confine(p *program) error {
	err := confinable(a.set)
	if err == nil {
		p.confined, err = a.confinement()
	}
	if err != nil {
		return fmt.Errorf("%s %w: %w", p.path, errNotRun, err)
	}
	return nil
}
