package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var fullSpec = Spec{
	Activation: "slot1_1.42", UID: 10001, GID: 10001, Groups: []int{5, 6},
	Path: "/bin/caf\xe9", Args: []string{"<&>", "\xff\x00"[:1], "ü"}, Env: []string{"A=\xfe"}, ImageEnv: true, SearchPath: true,
	Dir: "/x\xe9", Umask: 0o22, Stdin: "i\xe9", Stdout: "o", Stderr: "e", Append: true, Nice: 3, CPUs: []int{0, 3}, MaxTasks: 9, NoNetwork: true,
	Limits: []Limit{{"core", 0, Unlimited}},
}

func TestRequestRoundTrip(t *testing.T) {
	passed := fullSpec
	passed.Stdout, passed.Passed = "", []string{Stdout}
	for _, spec := range []*Spec{&passed, rehearsed()} {
		want := Request{ID: 7, Op: OpStart, Spec: spec}
		line, err := EncodeLine(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRequest(bytes.TrimSuffix(line, []byte("\n")))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if err := got.Spec.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// rehearsed is a rehearsal of fullSpec.
func rehearsed() *Spec {
	spec := fullSpec
	spec.Rehearse = true
	return &spec
}

func TestMessageRoundTrip(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	for _, want := range []Message{
		{Hello: &Hello{Protocol: 1, Nonce: "n", Boot: "b", PID: 2, PIDNamespace: "p", UID: 3, NoNewPrivs: true, Version: "v", Busy: true}},
		{ID: 1, Started: &Started{Activation: "a", PID: 3, Time: now}},
		{ID: 2, StartError: &StartError{Stage: StageExec, Path: "caf\xe9", Errno: syscall.ENOENT, Interpreter: "/no/sh", Detail: "d"}},
		{ID: 3, Usage: &ContainerUsage{Time: now, Processes: 1, UserCPU: time.Second, Cgroup: &CgroupUsage{Version: 2, MemoryPeak: 1 << 40}}},
		{ID: 4, Done: true},
		{Memory: &MemoryFiles{Version: 2, Files: []string{"memory.stat"}, LimitAbove: 1 << 40}},
		{ID: 5, Error: &RequestError{Code: CodeFailed, Message: "m"}},
		{Exit: &Exit{Activation: "a", WaitStatus: 139, Started: now, Ended: now, UserCPU: 1, MaxRSS: 2, OOMKills: 3, Killed: "sweep"}},
	} {
		line, err := EncodeLine(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeMessage(bytes.TrimSuffix(line, []byte("\n")))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

func TestStrictDecoding(t *testing.T) {
	for _, bad := range []string{"", "x", "[]", "1 2", `{"id":1}{}`, `{"id":"1"}`, `{"id":1,"what":2}`, `{"spec":{"path":null}}`, `{"spec":{"path":{"base64":"?"}}}`,
		`{"spec":{"path":{"base32":""}}}`, `{"spec":{"what":1}}`, `{"spec":{"limits":[{"what":1}]}}`, `{"id":99999999999999999999}`} {
		if r, err := DecodeRequest([]byte(bad)); err == nil {
			t.Errorf("%s gave %+v", bad, r)
		}
	}
	if r, err := DecodeRequest([]byte(`{"id":7,"op":"x","more":1}`)); err == nil || r.ID != 7 {
		t.Errorf("the ID of a bad request is lost: %+v, %v", r, err)
	}
}

func TestLineReader(t *testing.T) {
	in := "one\n\n" + strings.Repeat("x", 10_000) + "\nrest"
	lines := NewLineReader(iotest.HalfReader(strings.NewReader(in)), 10_000)
	for _, want := range []string{"one", "", strings.Repeat("x", 10_000)} {
		if got, err := lines.Next(); err != nil || string(got) != want {
			t.Errorf("%.20q, %v", got, err)
		}
	}
	if got, err := lines.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := lines.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := NewLineReader(strings.NewReader(in[5:]), 9_999).Next(); !errors.Is(err, ErrLineTooLong) {
		t.Error(err)
	}
	if _, err := EncodeLine(Request{Op: strings.Repeat("x", MaxLine)}); !errors.Is(err, ErrLineTooLong) {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]func(*Spec){
		"activation empty":  func(s *Spec) { s.Activation = "" },
		"activation hidden": func(s *Spec) { s.Activation = ".x" },
		"activation path":   func(s *Spec) { s.Activation = "a/b" },
		"activation long":   func(s *Spec) { s.Activation = strings.Repeat("a", 129) },
		"uid":               func(s *Spec) { s.UID = -1 },
		"gid":               func(s *Spec) { s.GID = 1<<32 - 1 },
		"group":             func(s *Spec) { s.Groups = []int{-1} },
		"groups":            func(s *Spec) { s.Groups = make([]int, 65537) },
		"no path":           func(s *Spec) { s.Path = "" },
		"NUL in path":       func(s *Spec) { s.Path = "a\x00b" },
		"relative dir":      func(s *Spec) { s.Dir = "a" },
		"long file":         func(s *Spec) { s.Stdin = strings.Repeat("a", 4096) },
		"passed unknown":    func(s *Spec) { s.Passed = []string{"stdlog"} },
		"passed twice":      func(s *Spec) { s.Passed = []string{"stdout", "stdout"} },
		"passed and named":  func(s *Spec) { s.Passed = []string{"stdin"} },
		"NUL in argument":   func(s *Spec) { s.Args = []string{"a\x00"} },
		"NUL in variable":   func(s *Spec) { s.Env = []string{"A=\x00"} },
		"no variable":       func(s *Spec) { s.Env = []string{"A"} },
		"nameless variable": func(s *Spec) { s.Env = []string{"=A"} },
		"umask":             func(s *Spec) { s.Umask = 0o1000 },
		"CPU":               func(s *Spec) { s.CPUs = []int{0, 1024} },
		"too many CPUs":     func(s *Spec) { s.CPUs = make([]int, 1025) },
		"nice":              func(s *Spec) { s.Nice = 20 },
		"resource":          func(s *Spec) { s.Limits = []Limit{{"speed", 1, 1}} },
		"limits":            func(s *Spec) { s.Limits = []Limit{{"core", 2, 1}} },
		"many limits":       func(s *Spec) { s.Limits = make([]Limit, 65) },
		"rehearsed program": func(s *Spec) { s.Rehearse, s.Program = true, []byte("#!") },
		"rehearsed capture": func(s *Spec) { s.Rehearse, s.Stdout, s.Stderr, s.Capture = true, "", "", 1 },
		"root's file":       func(s *Spec) { *s = asRoot(); s.Stdout = "out" },
		"root's groups":     func(s *Spec) { *s = asRoot(); s.Groups = []int{1} },
		"root's program":    func(s *Spec) { *s = asRoot(); s.Program = nil },
		"captured, passed":  func(s *Spec) { *s = asRoot(); s.Passed = []string{Stdin, Stderr} },
		"rehearsed files":   func(s *Spec) { s.Rehearse, s.Stdout, s.Passed = true, "", []string{Stdout} },
	}
	for name, spoil := range tests {
		s := fullSpec
		spoil(&s)
		if err := s.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if s := asRoot(); s.Validate() != nil {
		t.Errorf("as container-root: %v", s.Validate())
	}
	secret := fullSpec
	secret.Env = []string{"PASSWORD"}
	if err := secret.Validate(); err == nil || strings.Contains(err.Error(), "PASSWORD") {
		t.Errorf("the error reveals a secret: %v", err)
	}
}

// asRoot is a program for container-root whose input is passed to it.
func asRoot() Spec {
	return Spec{Activation: "a", UID: 1, GID: 1, Path: "p", Program: []byte("ELF"), AsRoot: true, Dir: "/", Capture: 1, Passed: []string{Stdin}}
}

func FuzzRequest(f *testing.F) {
	line, err := EncodeLine(Request{ID: 1, Op: OpStart, Spec: &fullSpec})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	if line, err = EncodeLine(Request{ID: 1, Op: OpStart, Spec: rehearsed()}); err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`{"id":2,"op":"signal","signal":15,"whole":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRequest(data)
		if err != nil || r.Spec == nil || r.Spec.Validate() != nil {
			return
		}
		// A valid request means the same after encoding and decoding.
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeRequest(again)
		if err != nil || !cmp.Equal(r, back, emptyIsNil[int](), emptyIsNil[string](), emptyIsNil[Limit]()) {
			t.Errorf("%+v became %+v, %v", r, back, err)
		}
	})
}

// emptyIsNil makes go-cmp treat an empty list as nil.
func emptyIsNil[T comparable]() cmp.Option {
	return cmp.Comparer(func(a, b []T) bool { return slices.Equal(a, b) })
}

func FuzzMessage(f *testing.F) {
	for _, m := range []Message{{Hello: &Hello{}}, {ID: 1, StartError: &StartError{Path: "\xff"}}, {Exit: &Exit{Cgroup: &CgroupUsage{}}}} {
		line, err := EncodeLine(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = DecodeMessage(data)
		_, _ = DecodeExit(data)
		lines := NewLineReader(bytes.NewReader(data), 16)
		for {
			if _, err := lines.Next(); err != nil {
				return
			}
		}
	})
}
