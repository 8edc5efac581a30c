package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// targets is the variable with the test's targets for the job: a line for each starter,
// with the port of its pod and the name of its abstract socket. A stranger finds both in
// /proc/net, among those of everybody else on this machine.
const targets = "PROBE_TARGETS"

// meet makes a named pipe, and saves what the test writes to it.
func meet(_ *state, name string) error {
	if err := syscall.Mkfifo(name, 0o644); err != nil {
		return err
	}
	said, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.Setenv(targets, string(said))
}

// visitProgram is the name in the process table of the ssh server of somebody who has
// logged in to the job.
const visitProgram = "condor_pod_visi"

// starters are those that the test has named.
func starters(a *attempt, each func(address, socket string) (string, error)) {
	for line := range strings.Lines(os.Getenv(targets)) {
		address, socket, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		what, err := each(address, socket)
		a.try(what+" by way of "+socket, err)
	}
}

// release is the HTCondor version that a stranger claims to have.
const release = "$CondorVersion: 25.14.1 2026-01-01 BuildID: 0 $"

// passConnections passes connections to starters as condor_shared_port does. It succeeds
// if the starter answers on them, even if only that it does not know the session.
func passConnections(a *attempt) {
	starters(a, func(_, socket string) (string, error) { return "answer of a starter", passConnection(socket) })
}

func passConnection(socket string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	mine, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer mine.Close()
	theirs, err := listener.Accept()
	if err != nil {
		return err
	}
	file, err := theirs.(*net.TCPConn).File()
	theirs.Close()
	if err != nil {
		return err
	}
	defer file.Close()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer conn.Close()
	// Packet header and command, and a byte with the descriptor.
	message := [13]byte{0: 1, 4: 8, 12: cedar.SharedPortPassSock}
	if _, err := conn.Write(message[:]); err != nil {
		return err
	}
	if _, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(file.Fd())), nil); err != nil {
		return err
	}
	file.Close()
	session, err := cedar.MintSession("stranger@nowhere", cedar.Daemon)
	if err != nil {
		return err
	}
	client := cedar.Client{Version: release, Dialer: func(context.Context, string, string) (net.Conn, error) { return mine, nil }}
	stream, err := client.Command(context.Background(), "<127.0.0.1:1>", cedar.StartSSHD, session)
	if err == nil {
		return stream.Close()
	}
	if errors.Is(err, cedar.ErrSessionUnknown) {
		return nil
	}
	return err
}

// logIn asks starters for a key to log in to their jobs, without a key of HTCondor's.
func logIn(a *attempt) {
	starters(a, func(address, socket string) (string, error) {
		return "key to log in", askForKey(fmt.Sprintf("<%s?sock=%s>", address, path.Base(socket)))
	})
}

func askForKey(address string) error {
	client := cedar.Client{Version: release}
	stream, err := client.Command(context.Background(), address, cedar.StartSSHD, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	stream.PutAd(classads.NewAd())
	if err := stream.EndMessage(); err != nil {
		return err
	}
	answer, err := stream.GetAd()
	if err != nil {
		return err
	}
	if answer.StringOr("SSHPrivateClientKey", "") == "" {
		return errors.New(answer.StringOr("ErrorString", "no key came"))
	}
	return nil
}

// forgeCookie sends a wrong cookie to the chirp proxy, and a request.
func forgeCookie(a *attempt) {
	a.try("answer of the chirp proxy", chirpWith(strings.Repeat("a", 31)))
}

func chirpWith(cookie string) error {
	config, err := os.ReadFile(os.Getenv("_CONDOR_CHIRP_CONFIG"))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(config))
	if len(fields) != 3 {
		return fmt.Errorf("the file that tells of the proxy has %d words", len(fields))
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(fields[0], fields[1]))
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &chirper{conn: conn, in: bufio.NewReader(conn)}
	for _, request := range []string{"cookie " + cookie, "get_job_attr_delayed ClusterId"} {
		if _, err := io.WriteString(conn, request+"\n"); err != nil {
			return err
		}
		verb, _, _ := strings.Cut(request, " ")
		code, _, err := c.answer(verb)
		if err != nil {
			return err
		}
		if code < 0 {
			return fmt.Errorf("%s: %d", verb, code)
		}
	}
	return nil
}
