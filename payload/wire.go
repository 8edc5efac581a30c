package payload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Requests of the starter.
const (
	OpStart  = "start"
	OpSignal = "signal"
	OpUsage  = "usage"
	OpSweep  = "sweep"
	OpLeave  = "leave"
	OpExec   = "exec"
)

// Request is one line from the starter to the wrapper.
type Request struct {
	// ID is chosen by the starter, above 0, and repeated in the answer.
	ID int64 `json:"id"`
	// Op is one of the Op constants.
	Op string `json:"op"`
	// Spec belongs to [OpStart].
	Spec *Spec `json:"spec,omitempty"`
	// Signal and Whole belong to [OpSignal].
	Signal int  `json:"signal,omitempty"`
	Whole  bool `json:"whole,omitempty"`
	// Of makes a signal go to the process of the exec request with this ID.
	Of int64 `json:"of,omitempty"`
	// Exec belongs to [OpExec].
	Exec *Exec `json:"exec,omitempty"`
	// Files is the number of open files that come with the line.
	Files int `json:"files,omitempty"`
}

// Message is one line from the wrapper to the starter. ID is that of the request it
// answers, or 0 for Hello, Memory and the ends of processes, which nobody requests. Exactly one
// of the other fields is set.
type Message struct {
	ID         int64           `json:"id,omitempty"`
	Hello      *Hello          `json:"hello,omitempty"`
	Started    *Started        `json:"started,omitempty"`
	StartError *StartError     `json:"start_error,omitempty"`
	Usage      *ContainerUsage `json:"usage,omitempty"`
	Done       bool            `json:"done,omitempty"`
	Error      *RequestError   `json:"error,omitempty"`
	Exit       *Exit           `json:"exit,omitempty"`
	// Stopping comes without a request, with ID 0: the wrapper got a stop signal and stays
	// until this connection ends.
	Stopping bool `json:"stopping,omitempty"`
	// Executing answers an exec request; ExecExit comes without a request at the end of its
	// process.
	Executing *Executing `json:"executing,omitempty"`
	ExecExit  *ExecExit  `json:"exec_exit,omitempty"`
	// Memory comes without a request, with ID 0, after the Hello and before any answer.
	Memory *MemoryFiles `json:"memory,omitempty"`
}

// MemoryFiles announces the open files of the container's memory control group, which come
// with the line ([memcg.Names]): with them the starter can look at the group after the kernel
// has killed everything in it.
type MemoryFiles struct {
	// Version of the control groups, 1 or 2.
	Version int `json:"version"`
	// Files names the files, in their order.
	Files []string `json:"files"`
	// LimitAbove is the least limit of the groups above that the wrapper can see, in bytes; -1
	// without one.
	LimitAbove int64 `json:"limit_above_bytes"`
}

// ErrLineTooLong is returned by [LineReader] for a line above its bound. The rest of the
// stream is then useless.
var ErrLineTooLong = errors.New("line too long")

// LineReader reads newline-terminated lines of bounded length.
type LineReader struct {
	r   *bufio.Reader
	max int
}

// NewLineReader reads lines of at most max bytes, newline not counted, from r.
func NewLineReader(r io.Reader, max int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 4096), max: max}
}

// Next returns the next line without its newline. A stream that ends inside a
// line gives io.ErrUnexpectedEOF.
func (l *LineReader) Next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if len(line)+len(part) > l.max {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrLineTooLong, l.max)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// DecodeRequest decodes one line strictly: unknown fields and anything after the object are
// errors. It fills in the ID even of a bad request if it can, so that the error can be
// answered.
func DecodeRequest(line []byte) (Request, error) {
	var r Request
	err := unmarshalStrict(line, &r)
	return r, err
}

// DecodeMessage decodes one line of the wrapper, as strictly.
func DecodeMessage(line []byte) (Message, error) {
	var m Message
	err := unmarshalStrict(line, &m)
	return m, err
}

// EncodeLine encodes v, a [Request] or a [Message], with its newline.
func EncodeLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(line) > MaxLine {
		return nil, fmt.Errorf("%w: %d bytes, at most %d allowed", ErrLineTooLong, len(line), MaxLine)
	}
	return append(line, '\n'), nil
}

func unmarshalStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value in a line")
	}
	return nil
}

// wireSpec is Spec as it goes over the socket.
type wireSpec struct {
	Activation string      `json:"activation"`
	UID        int         `json:"uid"`
	GID        int         `json:"gid"`
	Groups     []int       `json:"groups,omitempty"`
	Path       raw         `json:"path"`
	Args       []raw       `json:"args,omitempty"`
	Env        []raw       `json:"env,omitempty"`
	ImageEnv   bool        `json:"image_env,omitempty"`
	HideEnv    []raw       `json:"hide_env,omitempty"`
	SearchPath bool        `json:"search_path,omitempty"`
	Dir        raw         `json:"dir"`
	Links      [][2]raw    `json:"links,omitempty"`
	Mounts     *wireMounts `json:"mounts,omitempty"`
	Program    []byte      `json:"program,omitempty"`
	Itself     bool        `json:"itself,omitempty"`
	AsRoot     bool        `json:"as_root,omitempty"`
	Capture    int         `json:"capture,omitempty"`
	Umask      int         `json:"umask"`
	Stdin      raw         `json:"stdin,omitempty"`
	Stdout     raw         `json:"stdout,omitempty"`
	Stderr     raw         `json:"stderr,omitempty"`
	Append     bool        `json:"append,omitempty"`
	Passed     []string    `json:"passed,omitempty"`
	Rehearse   bool        `json:"rehearse,omitempty"`
	Nice       int         `json:"nice,omitempty"`
	CPUs       []int       `json:"cpus,omitempty"`
	MaxTasks   int         `json:"max_tasks,omitempty"`
	NoNetwork  bool        `json:"no_network,omitempty"`
	Limits     []Limit     `json:"limits,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s Spec) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireSpec{
		Activation: s.Activation, UID: s.UID, GID: s.GID, Groups: s.Groups,
		Path: raw(s.Path), Args: rawList(s.Args), Env: rawList(s.Env),
		ImageEnv: s.ImageEnv, HideEnv: rawList(s.HideEnv), SearchPath: s.SearchPath, Dir: raw(s.Dir), Links: rawLinks(s.Links), Mounts: rawMounts(s.Mounts),
		Program: s.Program, Itself: s.Itself, AsRoot: s.AsRoot, Capture: s.Capture, Umask: s.Umask,
		Stdin: raw(s.Stdin), Stdout: raw(s.Stdout), Stderr: raw(s.Stderr),
		Append: s.Append, Passed: s.Passed, Rehearse: s.Rehearse, Nice: s.Nice, CPUs: s.CPUs, MaxTasks: s.MaxTasks, NoNetwork: s.NoNetwork, Limits: s.Limits,
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Spec) UnmarshalJSON(data []byte) error {
	var w wireSpec
	if err := unmarshalStrict(data, &w); err != nil {
		return err
	}
	*s = Spec{
		Activation: w.Activation, UID: w.UID, GID: w.GID, Groups: w.Groups,
		Path: string(w.Path), Args: stringList(w.Args), Env: stringList(w.Env),
		ImageEnv: w.ImageEnv, HideEnv: stringList(w.HideEnv), SearchPath: w.SearchPath, Dir: string(w.Dir), Links: linkList(w.Links), Mounts: mountsOf(w.Mounts),
		Program: w.Program, Itself: w.Itself, AsRoot: w.AsRoot, Capture: w.Capture, Umask: w.Umask,
		Stdin: string(w.Stdin), Stdout: string(w.Stdout), Stderr: string(w.Stderr),
		Append: w.Append, Passed: w.Passed, Rehearse: w.Rehearse, Nice: w.Nice, CPUs: w.CPUs, MaxTasks: w.MaxTasks, NoNetwork: w.NoNetwork, Limits: w.Limits,
	}
	return nil
}

func rawLinks(links []Link) [][2]raw {
	var out [][2]raw
	for _, l := range links {
		out = append(out, [2]raw{raw(l.At), raw(l.To)})
	}
	return out
}

func linkList(pairs [][2]raw) []Link {
	var out []Link
	for _, p := range pairs {
		out = append(out, Link{At: string(p[0]), To: string(p[1])})
	}
	return out
}

// wireStartError is StartError as it goes over the socket.
type wireStartError struct {
	Stage       string `json:"stage"`
	Path        raw    `json:"path,omitempty"`
	Errno       uint   `json:"errno,omitempty"`
	Interpreter string `json:"interpreter,omitempty"`
	Detail      string `json:"detail,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (e StartError) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireStartError{Stage: e.Stage, Path: raw(e.Path), Errno: uint(e.Errno), Interpreter: e.Interpreter, Detail: e.Detail})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *StartError) UnmarshalJSON(data []byte) error {
	var w wireStartError
	if err := unmarshalStrict(data, &w); err != nil {
		return err
	}
	*e = StartError{Stage: w.Stage, Path: string(w.Path), Errno: syscall.Errno(w.Errno), Interpreter: w.Interpreter, Detail: w.Detail}
	return nil
}
