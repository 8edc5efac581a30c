// Package agenttest helps tests that run real wrappers and real payloads. The
// test binary plays all parts: it executes itself as the wrapper, as the
// launcher and as the payload.
//
//nolint:forbidigo,errcheck // test programs, in temporary directories, with output to be read
package agenttest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"podstarter/wrapper/agent"
)

// JobName is the name (argv[0]) by which the test binary is a payload.
const JobName = "test-payload"

const jobName = JobName

// Variables that pass values to test processes.
const (
	programVariable = "AGENTTEST_PROGRAM" // path of a copy that everyone may execute
	userVariable    = "AGENTTEST_USER"    // set in the run as an ordinary user
)

// firstUID is the first user ID for tests: nothing else on the machine should use IDs from
// there on.
const firstUID = 2_000_000_000

// ordinaryUID is the user and group ID of the second run of a test binary that was started
// by root. Each test process has its own, since several packages' tests run at once and
// each kills all processes of its user IDs.
func ordinaryUID() int { return firstUID + 2*os.Getpid() }

// payloadUID is the user and group ID of payloads when the wrapper is root.
func payloadUID() int { return ordinaryUID() + 1 }

// Payloads gives n user IDs, from uid on, that nobody else has, for a backend with several
// slots. Without root it gives this process's own user, the only possible one.
func Payloads(t testing.TB, n int) (uid int) {
	t.Helper()
	if !Root() {
		return os.Geteuid()
	}
	given := payloadsGiven.Add(int64(n))
	if given > maxPayloads {
		t.Fatalf("more than %d user IDs for one test process", maxPayloads)
	}
	return firstOfMany + maxPayloads*os.Getpid() + int(given) - n
}

var payloadsGiven atomic.Int64

const (
	// maxPayloads is how many user IDs there are for one test process.
	maxPayloads = 128
	// firstOfMany leaves room below firstUID for every process ID, which are below
	// 2^22 (proc(5), pid_max).
	firstOfMany = 1_400_000_000
)

// Role is a part that the test binary plays when executed under a name.
type Role struct {
	Name string
	Run  func(args []string) int
}

// Tests are those of a package: a *testing.M, or one with checks around it.
type Tests interface{ Run() (code int) }

// Main runs the tests of a package, as root twice: as root and as an ordinary
// user.
func Main(m Tests, roles ...Role) { run(m, true, roles) }

// MainAsUser runs the tests of a package as an ordinary user only.
func MainAsUser(m Tests, roles ...Role) { run(m, false, roles) }

func run(m Tests, asRoot bool, roles []Role) {
	agent.Dispatch()
	for _, r := range append(roles, Role{jobName, job}) {
		if filepath.Base(os.Args[0]) == r.Name {
			// Not os.Exit, which reports on stderr that coverage data is lost.
			syscall.Exit(r.Run(os.Args[1:]))
		}
	}
	dir, err := shareProgram()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 0
	if asRoot || os.Geteuid() != 0 || fuzzing() {
		code = m.Run()
	}
	if os.Geteuid() == 0 && !fuzzing() {
		if userCode := runAsUser(); userCode != 0 {
			code = userCode
		}
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func fuzzing() bool {
	for _, arg := range os.Args {
		if strings.HasPrefix(arg, "-test.fuzz=") || strings.HasPrefix(arg, "-test.fuzzworker") {
			return true
		}
	}
	return false
}

// shareProgram copies the test binary to where other users may execute it; the go command
// builds it in a private directory of its user.
func shareProgram() (dir string, err error) {
	if os.Getenv(programVariable) != "" {
		return "", nil
	}
	if dir, err = os.MkdirTemp("", "agenttest"); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	program := filepath.Join(dir, jobName)
	if err := copyFile(program, "/proc/self/exe"); err != nil {
		return "", err
	}
	return dir, os.Setenv(programVariable, program)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// runAsUser runs the same tests again without root.
func runAsUser() int {
	var args []string
	// Flags that name the go command's files, in directories of its user.
	files := regexp.MustCompile(`^-test\.(coverprofile|gocoverdir|testlogfile|outputdir|fuzzcachedir)=`)
	for _, arg := range os.Args[1:] {
		if !files.MatchString(arg) {
			args = append(args, arg)
		}
	}
	tmp, err := os.MkdirTemp("", "agenttest")
	if err == nil {
		defer os.RemoveAll(tmp)
		err = os.Chown(tmp, ordinaryUID(), ordinaryUID())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(Program(), args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), userVariable+"=1", "TMPDIR="+tmp, "HOME="+tmp)
	cmd.Args[0] = "ordinary-user.test"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(ordinaryUID()), Gid: uint32(ordinaryUID())}}
	fmt.Println("again as an ordinary user:")
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "as an ordinary user:", err)
		return 1
	}
	return 0
}

// Program is the path of the test binary for payloads to execute.
func Program() string { return os.Getenv(programVariable) }

// Root tells whether the wrappers of this run are root.
func Root() bool { return os.Geteuid() == 0 }

// Payload gives the user and group ID of payloads in this run.
func Payload() (uid, gid int) {
	if Root() {
		return payloadUID(), payloadUID()
	}
	return os.Geteuid(), os.Getegid()
}
