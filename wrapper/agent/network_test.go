package agent_test

import (
	"io"
	"strings"
	"testing"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

const (
	onlyUnix    = "1 ok\n2 EAFNOSUPPORT\n10 EAFNOSUPPORT\n16 EAFNOSUPPORT\n"
	allFamilies = "1 ok\n2 ok\n10 ok\n16 ok\n"
)

// TestNoNetwork: a payload without network, and a program of the site, can make no socket but Unix ones.
// The next run has one again.
func TestNoNetwork(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	for _, none := range []bool{false, true, false} {
		s := agenttest.Spec(t, "sockets")
		s.NoNetwork = none
		want := allFamilies
		if none {
			want = onlyUnix
		}
		start(t, c, s)
		if _, err := c.Wait(agenttest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if out := agenttest.Output(t, s); out != want && !(out != onlyUnix && !none) { // a machine may lack IPv6
			t.Errorf("without network: %v; it can make sockets:\n%s", none, out)
		}
	}
}

// TestNoNetworkAsRoot: the same for what runs as container-root.
func TestNoNetworkAsRoot(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("takes root")
	}
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "sockets")
	s.AsRoot, s.NoNetwork, s.Capture = true, true, 1000
	s.Dir, s.Stdin, s.Stdout, s.Stderr, s.Groups = "/", "", "", "", nil
	s.Program = []byte("#!/bin/sh\n/bin/bash -c 'exec 4<>/dev/tcp/127.0.0.1/9' 2>&1 | grep -o 'Address family[a-z ]*'\n")
	start(t, c, s)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || !strings.Contains(string(exit.Output), "Address family not supported by protocol") {
		t.Errorf("%q, %v", exit.Output, err)
	}
}

// TestNoNetworkBeside: a session in a container whose payload has no network has none either, though its
// request does not say so; with a terminal or without.
func TestNoNetworkBeside(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "sleep")
	s.NoNetwork = true
	start(t, c, s)
	for _, says := range []bool{false, true} {
		e := payload.Exec{Spec: agenttest.Spec(t, "sockets")}
		e.Spec.Stdin, e.Spec.Stdout, e.Spec.Stderr, e.Spec.NoNetwork = "", "", "", says
		p := newPipes(t)
		x := execute(t, c, e, p.ExecFiles)
		p.passed()
		out, err := io.ReadAll(p.out)
		if err != nil || string(out) != onlyUnix {
			t.Errorf("a process beside the payload, whose request says %v, can make sockets:\n%s%v", says, out, err)
		}
		execEnded(t, x)
	}
}
