package agent_test

import (
	"bytes"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

func TestRawClient(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	tests := map[string]struct{ send, want string }{
		"not JSON":      {"hello\n", `"code":"bad-request"`},
		"unknown op":    {`{"id":7,"op":"dance"}` + "\n", `{"id":7,"error":{"code":"bad-request"`},
		"unknown field": {`{"id":7,"op":"usage","extra":1}` + "\n", `"code":"bad-request"`},
		"two values":    {`{"id":7,"op":"usage"} {}` + "\n", `{"id":7,"error":{"code":"bad-request"`},
		"no id":         {`{"op":"usage"}` + "\n", `"code":"bad-request"`},
		"no spec":       {`{"id":7,"op":"start"}` + "\n", `{"id":7,"error":{"code":"bad-request"`},
		"empty spec":    {`{"id":7,"op":"start","spec":{}}` + "\n", `{"id":7,"start_error":{"stage":"spec"`},
		"no signal":     {`{"id":7,"op":"signal","signal":99}` + "\n", `{"id":7,"error":{"code":"bad-request"`},
		"no payload":    {`{"id":7,"op":"signal","signal":15}` + "\n", `{"id":7,"error":{"code":"no-payload"`},
		"empty sweep":   {`{"id":7,"op":"sweep"}` + "\n", `{"id":7,"done":true}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, lines := rawDial(t, w)
			if _, err := conn.Write([]byte(test.send)); err != nil {
				t.Fatal(err)
			}
			line, err := lines.Next()
			if err != nil || !strings.Contains(string(line), test.want) {
				t.Errorf("%s, %v", line, err)
			}
		})
	}
	t.Run("endless line", func(t *testing.T) {
		conn, lines := rawDial(t, w)
		block := []byte(strings.Repeat("x", 1<<20))
		for range payload.MaxLine>>20 + 1 {
			if _, err := conn.Write(block); err != nil {
				break // it hung up already
			}
		}
		if line, err := lines.Next(); err == nil {
			t.Errorf("the wrapper answered an endless line: %s", line)
		}
	})
}

// answers are a wrapper's lines, without the files of the memory control group that it offers
// where it has one.
type answers struct{ lines *payload.LineReader }

func (a answers) Next() ([]byte, error) {
	line, err := a.lines.Next()
	if err == nil && bytes.HasPrefix(line, []byte(`{"memory":`)) {
		return a.lines.Next()
	}
	return line, err
}

// rawDial connects without a payload.Client as soon as the wrapper is free, and reads the
// greeting.
func rawDial(t *testing.T, w *agenttest.Wrapper) (net.Conn, answers) {
	t.Helper()
	w.Dial(t).Close()
	for {
		conn, err := net.Dial("unix", filepath.Join(w.Dir, payload.SocketName))
		if err != nil {
			t.Fatal(err)
		}
		lines := payload.NewLineReader(conn, payload.MaxLine)
		line, err := lines.Next()
		var m payload.Message
		if err != nil || json.Unmarshal(line, &m) != nil || m.Hello == nil {
			t.Fatalf("greeting %s, %v", line, err)
		}
		if !m.Hello.Busy {
			t.Cleanup(func() { _ = conn.Close() })
			return conn, answers{lines}
		}
		_ = conn.Close()
	}
}
