// Package token makes the token of one pod by HTCondor's own tools.
package token

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"podstarter/provisioner/condortools"
	"podstarter/provisioner/template"
)

// maxText is more than a token has, which is a few hundred bytes.
const maxText = 16 << 10

// form is that of a token: three parts in base64url (RFC 7519).
var form = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// Maker makes tokens.
type Maker struct {
	// Collector is the pool's, or empty for that of the configuration.
	Collector string
}

// Make makes a token. What the tool prints is in no error.
func (m Maker) Make(ctx context.Context, t template.Token) (string, error) {
	tool, args := Command(t, m.Collector)
	var text []byte
	err := condortools.Run(ctx, func(r io.Reader) error {
		var err error
		text, err = io.ReadAll(io.LimitReader(r, maxText+1))
		return err
	}, tool, args...)
	if err != nil {
		return "", fmt.Errorf("making a token for a pod: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(text) > maxText || !form.MatchString(token) {
		return "", fmt.Errorf("making a token for a pod: %s has printed %d bytes that are no token; %s must not send its messages to standard output", tool, len(text), tool)
	}
	return token, nil
}

// Command returns the tool and its arguments. condor_token_fetch has the collector
// sign a token for whoever asks, and needs no key; condor_token_create signs for
// anybody, with a key that must be here
// (HTCondor src/condor_tools/token_fetch.cpp, token_create.cpp).
func Command(t template.Token, collector string) (tool string, args []string) {
	if t.Key != "" {
		tool, args = "condor_token_create", []string{"-identity", t.Identity, "-key", t.Key}
	} else {
		tool, args = "condor_token_fetch", []string{"-type", "COLLECTOR"}
		if collector != "" {
			args = append(args, "-pool", collector)
		}
	}
	args = append(args, "-lifetime", strconv.FormatInt(int64(t.Lifetime/time.Second), 10))
	for _, a := range t.Authorizations {
		args = append(args, "-authz", a)
	}
	return tool, args
}
