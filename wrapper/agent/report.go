package agent

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// Files of the launcher.
const (
	specFD    = 3 // the job, as JSON
	reportFD  = 4 // pipe to the wrapper
	programFD = 5 // the program, if it came with the request
	outputFD  = 6 // pipe for the program's output, if that is kept
	passedFD  = 7 // the first of the standard files that came with the request, or where the master side of a terminal goes
)

// job tells the launcher what to do.
type job struct {
	Spec payload.Spec `json:"spec"` // Env is final, ImageEnv is ignored
	// Parent is the wrapper's process ID; the launcher gives up without it.
	Parent int `json:"parent"`
	// HasProgram is set when the program is in programFD.
	HasProgram bool `json:"has_program,omitempty"`
	// Machine is the number of the open /proc of the machine; 0 if that is the wrapper's own.
	Machine int `json:"machine,omitempty"`
	// SwitchUser is set when the launcher starts as root.
	SwitchUser bool `json:"switch_user"`
	// Exec is set for a process beside the payload. Its own Spec is ignored.
	Exec *payload.Exec `json:"exec,omitempty"`
}

// A launcher's report is reportReady, the time in nanoseconds since 1970, its own
// largest resident set in KiB and its process ID on the machine (0 if that is the wrapper's namespace), in eight bytes each, written just before execve(2), and
// nothing more if it became the payload. A failed launcher's report ends with (or is only)
// reportFailed, the stage's index, the errno in two bytes, and, if the payload's resource
// limits leave memory for it, a reportDetail as JSON. The launcher writes the head with one
// system call and without allocation. Numbers are big-endian.
const (
	reportReady  = 'r'
	readySize    = 25
	maxKiB       = 1<<52 - 1 // of memory, more than any machine has
	maxPID       = 1<<22 - 1 // of Linux
	reportFailed = 'f'
	failedSize   = 4
)

// stages that a launcher reports.
var stages = []string{
	payload.StageSpec, payload.StageIdentity, payload.StageChdir, payload.StageStdin,
	payload.StageStdout, payload.StageStderr, payload.StageNice, payload.StageLimit, payload.StageExec, payload.StageTerminal,
}

type reportDetail struct {
	Path        []byte `json:"path"`
	Interpreter string `json:"interpreter,omitempty"`
	Detail      string `json:"detail"`
}

// report is the launcher's end of the pipe.
type report struct{ fd, onMachine int }

// failed reports a stage that failed. explain may be nil; it is called after the head is
// written.
func (r report) failed(stage string, path string, errno unix.Errno, explain func() (interpreter, detail string)) {
	head := [failedSize]byte{reportFailed, byte(slices.Index(stages, stage)), byte(errno >> 8), byte(errno)}
	_, _ = unix.Write(r.fd, head[:])
	// From here on a crash for lack of memory only spoils the job's stderr.
	if null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		_ = unix.Dup3(null, unix.Stderr, 0)
	}
	more := reportDetail{Path: []byte(path)}
	if explain != nil {
		more.Interpreter, more.Detail = explain()
	}
	if data, err := json.Marshal(more); err == nil {
		_, _ = unix.Write(r.fd, data)
	}
}

func (r report) ready() {
	head := [readySize]byte{reportReady}
	binary.BigEndian.PutUint64(head[1:], uint64(time.Now().UnixNano()))
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err == nil {
		binary.BigEndian.PutUint64(head[9:], uint64(usage.Maxrss))
	}
	binary.BigEndian.PutUint64(head[17:], uint64(r.onMachine))
	_, _ = unix.Write(r.fd, head[:])
}

// ready is what a launcher knows of itself just before execve(2).
type ready struct {
	time      time.Time
	resident  int64 // peak, in bytes
	onMachine int   // process ID there, 0 for the one that the wrapper knows
}

// decodeReport decodes a whole report.
func decodeReport(data []byte) (began ready, failure *payload.StartError) {
	if len(data) >= readySize && data[0] == reportReady {
		began.time = time.Unix(0, int64(binary.BigEndian.Uint64(data[1:9])))
		began.resident = int64(binary.BigEndian.Uint64(data[9:17])&maxKiB) << 10
		began.onMachine = int(binary.BigEndian.Uint64(data[17:readySize]) & maxPID)
		if data = data[readySize:]; len(data) == 0 {
			return began, nil
		}
	}
	failure = &payload.StartError{Stage: payload.StageFork, Detail: "the launcher ended without a report; was it killed for lack of memory?"}
	if len(data) < failedSize || data[0] != reportFailed || int(data[1]) >= len(stages) {
		return ready{}, failure
	}
	failure.Stage = stages[data[1]]
	failure.Errno = unix.Errno(binary.BigEndian.Uint16(data[2:failedSize]))
	failure.Detail = ""
	var more reportDetail
	if json.Unmarshal(data[failedSize:], &more) == nil {
		failure.Path, failure.Interpreter, failure.Detail = string(more.Path), more.Interpreter, more.Detail
	}
	return ready{}, failure
}
