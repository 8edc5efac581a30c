package template

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Token says that each pod gets a token of its own.
type Token struct {
	// Secret is the name in the manifest that stands for the Secret of the pod, and
	// File the name of the token in it.
	Secret, File string
	// Key signs the tokens, here; empty lets the collector sign them, for the
	// provisioner's own identity.
	Key      string
	Identity string
	Lifetime time.Duration
	// Authorizations are all rights that the token has.
	Authorizations []string
}

// fileToken is its form in the file.
type fileToken struct {
	Secret         string   `json:"secret"`
	File           string   `json:"file"`
	Key            string   `json:"key"`
	Identity       string   `json:"identity"`
	Lifetime       string   `json:"lifetime"`
	Authorizations []string `json:"authorizations"`
}

// rights are those that an execution point can need. Whoever runs a job's payload
// beside a token must not hold more.
var rights = []string{"ADVERTISE_STARTD", "ADVERTISE_MASTER", "READ"}

// Limits of a token's lifetime: a pod has to come, and a stolen one should end.
const (
	shortestToken = 10 * time.Minute
	longestToken  = 31 * 24 * time.Hour
)

// token checks what a file says. pods is how long the pods of the template take
// jobs; 0 is for ever.
func (f fileToken) token(pods time.Duration) (*Token, error) {
	var wrong *multierror.Error
	note := func(format string, args ...any) {
		wrong = multierror.Append(wrong, fmt.Errorf("token: "+format, args...))
	}
	t := &Token{Secret: f.Secret, File: f.File, Key: f.Key, Identity: f.Identity, Authorizations: f.Authorizations}
	if msgs := validation.IsDNS1123Subdomain(f.Secret); len(msgs) > 0 {
		note("secret is %q; it must be the name of the Secret that a volume of the manifest has", f.Secret)
	}
	if t.File == "" {
		t.File = "token"
	}
	if msgs := validation.IsConfigMapKey(t.File); len(msgs) > 0 {
		note("file is %q; it must be a file name", f.File)
	}
	var err error
	if t.Lifetime, err = time.ParseDuration(f.Lifetime); err != nil || t.Lifetime < shortestToken || t.Lifetime > longestToken {
		note("lifetime is %q; it must be a duration from %s to %s", f.Lifetime, shortestToken, longestToken)
	} else if pods > t.Lifetime {
		note("lifetime is %s, and a pod takes jobs for %s; it could not report to the end", t.Lifetime, pods)
	}
	switch {
	case f.Key == "" && f.Identity != "":
		note("identity is %q; the collector signs tokens only for the provisioner's own identity, so take it out, or name the key that is to sign", f.Identity)
	case f.Key != "" && !strings.Contains(f.Identity, "@"):
		note("identity is %q; it must be that of the execution points, such as condor@example.org", f.Identity)
	}
	for _, text := range []string{f.Key, f.Identity} {
		if strings.HasPrefix(text, "-") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			note("%q is no name of a key or identity", text)
		}
	}
	if len(t.Authorizations) == 0 {
		t.Authorizations = rights[:2]
	}
	for _, a := range t.Authorizations {
		if !slices.Contains(rights, a) {
			note("authorizations has %q; an execution point needs none but %s", a, strings.Join(rights, ", "))
		}
	}
	return t, wrong.ErrorOrNil()
}
