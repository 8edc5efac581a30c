package sshtojob

import (
	"encoding/json"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"podstarter/payload"
)

func TestParseKeyType(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want KeyType
		bad  bool
	}{
		{nil, KeyType{Type: "ecdsa"}, false},
		{[]string{"-N", "", "-C", "", "-q", "-f", "%f", "-t", "rsa"}, KeyType{Type: "rsa"}, false},
		{[]string{"-t", "rsa", "-b", "4096"}, KeyType{"rsa", 4096}, false},
		{[]string{"-trsa", "-b4096", "-t", "ed25519"}, KeyType{Type: "ed25519"}, false},
		{[]string{"-b", "521"}, KeyType{"ecdsa", 521}, false},
		{[]string{"-b", "many"}, KeyType{Type: "ecdsa"}, true},
		{[]string{"-t", "dsa"}, KeyType{Type: "dsa"}, true},
		{[]string{"-t", "rsa", "-b", "1000000"}, KeyType{"rsa", 1000000}, true},
		{[]string{"-t"}, KeyType{}, true},
	} {
		got, err := ParseKeyType(tt.args)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.bad {
			t.Errorf("%q: %v %s", tt.args, err, diff)
		}
	}
}

func TestMakePair(t *testing.T) {
	for _, k := range []KeyType{{Type: "ecdsa"}, {"ecdsa", 384}, {Type: "ed25519"}, {"rsa", 2048}} {
		p, keys, err := makePair(k)
		if err != nil {
			t.Fatal(err)
		}
		if len(keys.Client) == 0 || string(p.host.PublicKey().Marshal()) == string(p.client.Marshal()) {
			t.Errorf("%+v: %+v", k, keys)
		}
	}
}

func TestRequestCheck(t *testing.T) {
	many := make([][]byte, maxVariables+1)
	for i := range many {
		many[i] = []byte("A=b")
	}
	for name, tt := range map[string]struct {
		r  Request
		ok bool
	}{
		"shell":           {Request{Kind: KindShell, Env: [][]byte{[]byte("LANG=C"), []byte("_x1=")}, Term: "xterm-256color"}, true},
		"kind":            {Request{Kind: "root"}, false},
		"NUL":             {Request{Kind: KindCommand, Command: []byte("a\x00b")}, false},
		"long":            {Request{Kind: KindCommand, Command: make([]byte, maxCommand+1)}, false},
		"many":            {Request{Kind: KindShell, Env: many}, false},
		"name of a shell": {Request{Kind: KindShell, Env: [][]byte{[]byte("BASH_FUNC_x%%=() { :; }")}}, false},
		"no value":        {Request{Kind: KindShell, Env: [][]byte{[]byte("NAME")}}, false},
		"digit":           {Request{Kind: KindShell, Env: [][]byte{[]byte("1A=x")}}, false},
		"terminal":        {Request{Kind: KindShell, Term: "x\x1b]0;"}, false},
	} {
		if err := tt.r.check(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFromErrand has the ssh server send anything.
func FuzzFromErrand(f *testing.F) {
	for _, m := range []fromErrand{
		{Keys: &Keys{Host: []byte("ecdsa x\n")}},
		{ID: 1, Request: &Request{Kind: KindShell, Term: "xterm", Terminal: &payload.Terminal{Rows: 24, Columns: 80}}},
		{ID: 2, Request: &Request{Kind: KindCommand, Command: []byte("ls"), Env: [][]byte{[]byte("A=b")}}},
		{ID: 2, Signal: 15},
	} {
		line, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var m fromErrand
		if json.Unmarshal(line, &m) != nil || m.Request == nil {
			return
		}
		if m.Request.check() == nil && len(m.Request.Command) > maxCommand {
			t.Error("a command beyond the bound")
		}
		_ = m.Request.files()
	})
}

// FuzzModes has a client ask for any modes of its terminal.
func FuzzModes(f *testing.F) {
	f.Add([]byte{53, 0, 0, 0, 0, 3, 0, 0, 0, 127, 0})
	f.Add([]byte{3, 0, 0, 0, 255, 42, 0, 0, 0, 1, 128, 0, 0, 0x96, 0})
	f.Fuzz(func(t *testing.T, modes []byte) {
		before := unix.Termios{Cflag: unix.CS8 | unix.CREAD, Lflag: unix.ECHO}
		if after := withModes(before, modes); after.Cflag != before.Cflag {
			t.Error("the input has changed")
		}
	})
}

func TestModes(t *testing.T) {
	before := unix.Termios{Lflag: unix.ECHO | unix.ICANON, Iflag: unix.ICRNL}
	after := withModes(before, []byte{53, 0, 0, 0, 0 /* no echo */, 42, 0, 0, 0, 1 /* UTF-8 */, 3, 0, 0, 0, 8 /* erase */, 1, 0, 0, 0, 255 /* no interrupt */, 0, 51, 0, 0, 0, 0})
	want := unix.Termios{Lflag: unix.ICANON, Iflag: unix.ICRNL | unix.IUTF8}
	want.Cc[unix.VERASE] = 8
	if diff := cmp.Diff(want, after); diff != "" {
		t.Error(diff)
	}
}
