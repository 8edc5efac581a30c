package sshtojob

import (
	"testing"

	"golang.org/x/crypto/ssh"
)

// FuzzAsked has a client send any requests for a session, in any order. The result
// is bounded.
func FuzzAsked(f *testing.F) {
	f.Add("env", ssh.Marshal(struct{ Name, Value string }{"LANG", "C"}), "exec", ssh.Marshal(struct{ Line string }{"ls"}))
	f.Add("pty-req", ssh.Marshal(struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}{"xterm", 80, 24, 0, 0, "\x00"}), "window-change", ssh.Marshal(struct{ Columns, Rows, Width, Height uint32 }{1 << 31, 0, 0, 0}))
	f.Add("subsystem", ssh.Marshal(struct{ Name string }{"sftp"}), "signal", ssh.Marshal(struct{ Name string }{"TERM"}))
	f.Fuzz(func(t *testing.T, first string, payload []byte, second string, more []byte) {
		r := &room{}
		for _, request := range []*ssh.Request{{Type: first, Payload: payload}, {Type: second, Payload: more}, {Type: "shell"}} {
			what, granted := r.asked(request, false)
			if what == nil {
				continue
			}
			if !granted || len(what.Command) > maxCommand || len(what.Env) > maxVariables || len(what.Term) > maxTerm {
				t.Errorf("%v %+v", granted, what)
			}
		}
	})
}
