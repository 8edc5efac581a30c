package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"podstarter/integration/pool/controlplane"
)

// Who makes requests.
const (
	pilots    = "pilot"
	kubelets  = "kubelet"
	apiServer = "API server itself"
	others    = "others"
)

// request is a kind of request to the API server.
type request struct {
	who, verb, resource string
}

// calls are the requests of one kind.
type calls struct {
	n, failed int
	took      []time.Duration
}

// auditEvent is what is read of an event of audit.k8s.io/v1.
type auditEvent struct {
	Stage, Verb, UserAgent string
	User                   struct{ Username string }
	ObjectRef              struct{ Resource, Subresource string }
	ResponseStatus         struct{ Code int }

	RequestReceivedTimestamp, StageTimestamp time.Time
}

// who made the request.
func (e auditEvent) who() string {
	switch {
	case e.User.Username == "system:serviceaccount:"+controlplane.Namespace+":"+kubeletAccount:
		return kubelets
	case strings.HasPrefix(e.User.Username, "system:serviceaccount:"):
		return pilots
	case strings.HasPrefix(e.User.Username, "system:node:"), strings.HasPrefix(e.UserAgent, "kwok"):
		return kubelets
	case e.User.Username == "system:apiserver":
		return apiServer
	}
	return others
}

// readAudit counts the requests that the API server received from one moment to another. A watch counts when it begins, all
// else when it is answered.
func readAudit(log io.Reader, from, to time.Time) (map[request]*calls, error) {
	all := map[request]*calls{}
	in := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // the last line is being written
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w: %s", err, line)
		}
		began := e.RequestReceivedTimestamp
		if began.Before(from) || began.After(to) || (e.Verb == "watch") != (e.Stage == "ResponseStarted") {
			continue
		}
		kind := request{e.who(), e.Verb, e.ObjectRef.Resource}
		if e.ObjectRef.Subresource != "" {
			kind.resource += "/" + e.ObjectRef.Subresource
		}
		c := all[kind]
		if c == nil {
			c = &calls{}
			all[kind] = c
		}
		c.n++
		c.took = append(c.took, e.StageTimestamp.Sub(began))
		if e.ResponseStatus.Code >= 400 {
			c.failed++
		}
	}
}

// readAuditFile is readAudit of a file.
func readAuditFile(path string, from, to time.Time) (map[request]*calls, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAudit(f, from, to)
}
