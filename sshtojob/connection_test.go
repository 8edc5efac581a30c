package sshtojob

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"podstarter/payload"
)

// TestNoSession: the user can read why there is no session.
func TestNoSession(t *testing.T) {
	client, _ := enter(t, "", func(context.Context, Request, payload.ExecFiles) (Process, string, error) {
		return nil, "", errors.New("the job has ended")
	})
	s := newSession(t, client)
	var errs bytes.Buffer
	s.Stderr = &errs
	if code := exitStatus(t, s.Run("true")); code != exitFailed || !strings.Contains(errs.String(), "the job has ended") {
		t.Errorf("exit code %d and %q", code, errs.String())
	}
}

// TestClosed: the end of a visit ends the connection.
func TestClosed(t *testing.T) {
	client, v := enter(t, t.TempDir(), nil)
	s := newSession(t, client)
	if _, err := s.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start("cat"); err != nil { // it ends with its input, and nothing is left of the test
		t.Fatal(err)
	}
	v.Close()
	if err := client.Wait(); err == nil {
		t.Error("the connection continues")
	}
}

// TestDone: a client that leaves ends the visit.
func TestDone(t *testing.T) {
	client, v := enter(t, t.TempDir(), nil)
	client.Close()
	select {
	case <-v.Done():
	case <-time.After(patience):
		t.Error("the visit continues")
	}
}

// TestStrangers: nobody gets in with another key, or without one.
func TestStrangers(t *testing.T) {
	_, keys, err := makePair(defaultKeys)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.ParsePrivateKey(keys.Client)
	if err != nil {
		t.Fatal(err)
	}
	for name, auth := range map[string][]ssh.AuthMethod{
		"no key":      nil,
		"other key":   {ssh.PublicKeys(other)},
		"a password":  {ssh.Password("")},
		"interactive": {ssh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) { return nil, nil })},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := connected(t)
			v, err := Begin(t.Context(), Options{Conn: far, Keys: defaultKeys, Run: runLocal("")})
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			far.Close()
			if err := v.Open(); err != nil {
				t.Fatal(err)
			}
			_, _, _, err = ssh.NewClientConn(near, "job", &ssh.ClientConfig{User: "root", Auth: auth, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
			if err == nil {
				t.Error("let in")
			}
		})
	}
}
