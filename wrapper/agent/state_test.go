package agent

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// TestFirstReasonStays: a later reason does not replace the first one for which a payload
// was killed.
func TestFirstReasonStays(t *testing.T) {
	a := &agent{log: logger{os.Stderr}, run: &run{spec: payload.Spec{Activation: "test"}}}
	for _, reason := range []string{payload.KilledTasks, payload.KilledSweep} {
		a.beginSweep(0, reason)
	}
	a.sweep.timer.Stop()
	if a.run.killed != payload.KilledTasks {
		t.Errorf("the recorded reason is %q", a.run.killed)
	}
}

// TestUncleanContainerIsRemembered: after a sweep that could not remove everything the
// container counts as unclean, until a sweep that can.
func TestUncleanContainerIsRemembered(t *testing.T) {
	a := &agent{log: logger{os.Stderr}, uid: 1}
	for _, left := range []string{"3 left: 17 (D)", ""} {
		a.sweep = &sweep{timer: time.NewTimer(time.Hour)}
		a.endSweep(left)
		if a.soiled != left || a.clean != (left == "") {
			t.Errorf("with %q left: clean %v, soiled %q", left, a.clean, a.soiled)
		}
	}
}

// TestSweepWaitsForExecutions: a process that has not been reaped is not gone.
func TestSweepWaitsForExecutions(t *testing.T) {
	a := &agent{log: logger{os.Stderr}, uid: 1, executions: map[int64]*execution{7: {id: 7}}}
	a.beginSweep(0, payload.KilledSweep)
	if a.sweep == nil {
		t.Fatal("the sweep ended although a process is left")
	}
	clear(a.executions)
	a.sweepStep()
	if a.sweep != nil {
		t.Error("the sweep goes on although nothing is left")
	}
}

// TestExecutionsAreBounded: the wrapper allows as many as the protocol, and not one more.
func TestExecutionsAreBounded(t *testing.T) {
	sock, conn := socketPair(t)
	a := &agent{log: logger{os.Stderr}, conn: newConnection(sock), executions: map[int64]*execution{},
		run: &run{launched: true, spec: payload.Spec{Activation: "test", UID: 7, GID: 7}}}
	lines := payload.NewLineReader(conn, payload.MaxLine)
	for n, wantCode := range map[int]string{payload.MaxExecutions - 1: "", payload.MaxExecutions: payload.CodeFailed} {
		clear(a.executions)
		for id := range int64(n) {
			a.executions[id] = &execution{id: id}
		}
		a.exec(payload.Request{ID: 1000, Exec: &payload.Exec{}}) // also invalid, so refused in any case
		line, err := lines.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := payload.DecodeMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		if wantCode == "" && m.StartError == nil || wantCode != "" && (m.Error == nil || m.Error.Code != wantCode) {
			t.Errorf("beside %d others: %s", n, line)
		}
	}
}

// TestExecutionHasThePayloadsGroups: a process beside the payload must have its groups.
func TestExecutionHasThePayloadsGroups(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = 1_990_000_000, 1_990_000_000
	}
	a := &agent{uid: os.Geteuid(), run: &run{spec: payload.Spec{UID: uid, GID: gid, Groups: []int{5}}}}
	for _, groups := range [][]int{{5}, {5, 6}, nil} {
		e := payload.Exec{Spec: payload.Spec{Activation: "test", UID: uid, GID: gid, Groups: groups, Path: "/bin/true", Dir: "/"}}
		failure := a.checkExec(&e, stdioFiles)
		if same := len(groups) == 1; same != (failure == nil) || failure != nil && failure.Stage != payload.StageIdentity {
			t.Errorf("groups %v: %+v", groups, failure)
		}
	}
}

// TestFilesOfALostConnection: files that came and were not used are closed, so that the
// reader of a pipe sees its end.
func TestFilesOfALostConnection(t *testing.T) {
	sock, conn := socketPair(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c := newConnection(sock)
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(write.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := c.files.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	c.close()
	if text, err := io.ReadAll(read); err != nil {
		t.Errorf("%q, %v: somebody still has the pipe open", text, err)
	}
}
