package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of sh (POSIX, Shell Command Language, 2.8.2).
const (
	exitUsage      = 2
	exitNotRunable = 126
	exitNotFound   = 127
)

// Main is the shell: with -c it runs a command line, without arguments it reads
// lines from in until it ends. The result is the exit code.
func Main(args []string, in *os.File, out, errs io.Writer) int {
	// These signals are for the programs that run on the same terminal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP)
	s := &state{in: in, out: out, errs: errs}
	switch {
	case len(args) == 2 && args[0] == "-c":
		return s.line(args[1])
	case len(args) > 0:
		fmt.Fprintf(errs, "usage: %s [-c COMMAND]\n", "condor_pod_sh")
		return exitUsage
	}
	return s.interact()
}

// state is one shell.
type state struct {
	in        *os.File
	out, errs io.Writer
	last      int // exit code of the last command
	left      bool
}

// interact reads lines and runs them.
func (s *state) interact() int {
	_, err := unix.IoctlGetTermios(int(s.in.Fd()), unix.TCGETS)
	atTerminal := err == nil
	if atTerminal {
		fmt.Fprintf(s.out, "This image has no shell; you get a small one. Type help to see what it can do.\n")
	}
	for !s.left {
		if atTerminal {
			dir, err := os.Getwd()
			if err != nil {
				dir = "?"
			}
			fmt.Fprintf(s.out, "%s$ ", dir)
		}
		line, err := s.readLine()
		if line != "" {
			s.last = s.line(line)
		}
		if err != nil {
			if atTerminal {
				fmt.Fprintf(s.out, "\n")
			}
			return s.last
		}
	}
	return s.last
}

// readLine reads only to the end of a line: the next bytes may be for the
// program that the line runs.
func (s *state) readLine() (string, error) {
	var line []byte
	var c [1]byte
	for len(line) <= maxLine { // a longer one is refused by parse
		n, err := s.in.Read(c[:])
		if n == 0 && err != nil {
			return string(line), err
		}
		if n > 0 && c[0] == '\n' {
			break
		}
		line = append(line, c[:n]...)
	}
	return string(line), nil
}

// line runs the commands of a line.
func (s *state) line(text string) int {
	commands, err := parse(text, func(name string) string { return os.Getenv(name) })
	if err != nil {
		fmt.Fprintf(s.errs, "sh: %v\n", err)
		return exitUsage
	}
	code := s.last
	for _, c := range commands {
		if c.after == and && code != 0 || c.after == or && code == 0 {
			continue
		}
		code = s.run(c.words)
		s.last = code
		if s.left {
			break
		}
	}
	return code
}

// run runs one command. Programs of the image take precedence over built-in
// commands, except those that only a shell itself can do.
func (s *state) run(words []string) int {
	b, builtIn := builtins[words[0]]
	if builtIn && b.own {
		return s.builtin(b, words)
	}
	path, err := exec.LookPath(words[0])
	switch {
	case err == nil:
		return s.program(path, words)
	case builtIn:
		return s.builtin(b, words)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(s.errs, "sh: %s: not found in this image, and not built in; built in are %s\n", words[0], strings.Join(names(), " "))
		return exitNotFound
	}
	fmt.Fprintf(s.errs, "sh: %v\n", err)
	return exitNotRunable
}

func (s *state) builtin(b builtin, words []string) int {
	if err := b.do(s, words[1:]); err != nil {
		if code := (exitError)(0); errors.As(err, &code) {
			return int(code)
		}
		fmt.Fprintf(s.errs, "%s: %v\n", words[0], err)
		return 1
	}
	return 0
}

// exitError is an exit code without a message.
type exitError int

func (e exitError) Error() string { return "exit code " + strconv.Itoa(int(e)) }

func (s *state) program(path string, words []string) int {
	c := exec.Command(path)
	c.Args = words
	c.Stdin, c.Stdout, c.Stderr = s.in, s.out, s.errs
	err := c.Run()
	if err == nil {
		return 0
	}
	ended := (*exec.ExitError)(nil)
	if !errors.As(err, &ended) {
		fmt.Fprintf(s.errs, "sh: %v\n", err)
		return exitNotRunable
	}
	status, ok := ended.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

func names() []string {
	var list []string
	for name := range builtins {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
