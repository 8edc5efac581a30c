package agent_test

import (
	"bytes"
	"encoding/json"
	"net"
	"path/filepath"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// FuzzClient sends anything to a running wrapper, which must neither die nor start a
// process.
func FuzzClient(f *testing.F) {
	w := agenttest.StartWrapper(f, nil)
	w.Dial(f).Close() // it is up
	good, err := payload.EncodeLine(payload.Request{ID: 1, Op: payload.OpStart, Spec: &payload.Spec{
		Activation: "a", Path: "/nonexistent", Dir: "/", UID: 1, GID: 1,
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"id":2,"op":"signal","signal":9,"whole":true}` + "\n" + `{"id":3,"op":"sweep"}` + "\n" + `{"id":4,"op":"usage"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Skip requests that are meant to have an effect.
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if r, err := payload.DecodeRequest(line); err == nil && (r.Op == payload.OpLeave || r.Op == payload.OpStart && r.Spec != nil && r.Spec.Validate() == nil && (r.Spec.Path != "/nonexistent" || len(r.Spec.Links) > 0 || len(r.Spec.Program) > 0 || r.Spec.Rehearse)) {
				t.Skip()
			}
		}
		conn, err := net.Dial("unix", filepath.Join(w.Dir, payload.SocketName))
		if err != nil {
			t.Fatalf("%v; the wrapper's log:\n%s", err, w.Log)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		lines := payload.NewLineReader(conn, payload.MaxLine)
		if _, err := lines.Next(); err != nil {
			t.Fatalf("no greeting: %v; the wrapper's log:\n%s", err, w.Log)
		}
		if _, err := conn.Write(append(data, "\n"+`{"id":77,"op":"usage"}`+"\n"...)); err != nil {
			return // busy with the connection before
		}
		for {
			line, err := lines.Next()
			if err != nil {
				return
			}
			var m payload.Message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if m.Started != nil {
				t.Fatalf("started something: %s", line)
			}
			if m.ID == 77 {
				return
			}
		}
	})
}
