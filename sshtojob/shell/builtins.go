package shell

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// builtin is a command that the shell has itself.
type builtin struct {
	usage string
	does  string
	own   bool // always the shell's, never a program
	do    func(s *state, args []string) error
}

var builtins map[string]builtin

func init() { // in init, because help reads the table
	builtins = map[string]builtin{
		"cat":    {"cat [FILE...]", "shows files", false, cat},
		"cd":     {"cd [DIRECTORY]", "changes the directory", true, cd},
		"echo":   {"echo [WORD...]", "says something", false, echo},
		"env":    {"env", "shows the environment", false, env},
		"exit":   {"exit [CODE]", "ends the session", true, leave},
		"export": {"export NAME=VALUE...", "sets variables", true, export},
		"head":   {"head [-n LINES] [FILE...]", "shows the beginning of files", false, head},
		"help":   {"help", "shows this", true, help},
		"kill":   {"kill [-SIGNAL] PID...", "signals processes", false, kill},
		"ls":     {"ls [-l] [-a] [NAME...]", "lists files", false, ls},
		"ps":     {"ps", "lists processes", false, ps},
		"pwd":    {"pwd", "shows the directory", false, pwd},
		"rm":     {"rm FILE...", "removes files", false, rm},
		"tail":   {"tail [-n LINES] [FILE...]", "shows the end of files", false, tail},
	}
}

func help(s *state, _ []string) error {
	fmt.Fprintf(s.out, "Programs of the image are run by their names. Built in, where the image has no such program:\n")
	for _, name := range names() {
		fmt.Fprintf(s.out, "  %-28s%s\n", builtins[name].usage, builtins[name].does)
	}
	fmt.Fprintf(s.out, "Words can be quoted, $NAME and * are replaced; ; && and || join commands.\n")
	return nil
}

func cd(_ *state, args []string) error {
	dir := os.Getenv("HOME")
	if len(args) > 0 {
		dir = args[0]
	}
	return os.Chdir(dir)
}

func echo(s *state, args []string) error {
	fmt.Fprintf(s.out, "%s\n", strings.Join(args, " "))
	return nil
}

func env(s *state, _ []string) error {
	for _, entry := range os.Environ() {
		fmt.Fprintf(s.out, "%s\n", entry)
	}
	return nil
}

func leave(s *state, args []string) error {
	s.left = true
	if len(args) == 0 {
		return exitError(s.last)
	}
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("%q is not an exit code", args[0])
	}
	return exitError(code & 0xff)
}

func export(_ *state, args []string) error {
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" || nameLength(name) != len(name) {
			return fmt.Errorf("%q is not NAME=VALUE", arg)
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

func pwd(s *state, _ []string) error {
	dir, err := os.Getwd()
	if err == nil {
		fmt.Fprintf(s.out, "%s\n", dir)
	}
	return err
}

func rm(_ *state, args []string) error {
	var problems []error
	for _, name := range args {
		problems = append(problems, os.Remove(name))
	}
	return errors.Join(problems...)
}

// each calls show for each file, or for standard input.
func (s *state) each(files []string, show func(io.Reader) error) error {
	if len(files) == 0 {
		return show(s.in)
	}
	var problems []error
	for _, name := range files {
		f, err := os.Open(name)
		if err == nil {
			err = errors.Join(show(f), f.Close())
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func cat(s *state, args []string) error {
	return s.each(args, func(r io.Reader) error {
		_, err := io.Copy(s.out, r)
		return err
	})
}

// count takes -n LINES, or -LINES, from the front of args.
func count(args []string) (int, []string, error) {
	const usual = 10
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") || args[0] == "-" {
		return usual, args, nil
	}
	text := strings.TrimPrefix(args[0], "-")
	args = args[1:]
	if text == "n" {
		if len(args) == 0 {
			return 0, nil, errors.New("-n lacks its number")
		}
		text, args = args[0], args[1:]
	}
	n, err := strconv.Atoi(strings.TrimPrefix(text, "n"))
	if err != nil || n < 0 {
		return 0, nil, fmt.Errorf("%q is not a number of lines", text)
	}
	return n, args, nil
}

func head(s *state, args []string) error {
	n, files, err := count(args)
	if err != nil {
		return err
	}
	return s.each(files, func(r io.Reader) error {
		lines := bufio.NewReader(r)
		for left := n; left > 0; {
			part, err := lines.ReadSlice('\n')
			if _, e := s.out.Write(part); e != nil {
				return e
			}
			switch {
			case err == nil:
				left--
			case errors.Is(err, io.EOF):
				return nil
			case !errors.Is(err, bufio.ErrBufferFull):
				return err
			}
		}
		return nil
	})
}

// maxTail limits what tail keeps of a file in memory, in bytes.
const maxTail = 4 << 20

func tail(s *state, args []string) error {
	n, files, err := count(args)
	if err != nil {
		return err
	}
	return s.each(files, func(r io.Reader) error {
		if f, ok := r.(io.Seeker); ok {
			_, _ = f.Seek(-maxTail, io.SeekEnd) // a shorter file is read from its beginning
		}
		var kept []byte
		buf := make([]byte, 64<<10)
		for {
			got, err := r.Read(buf)
			kept = append(kept, buf[:got]...)
			if len(kept) > 2*maxTail {
				kept = append(kept[:0], kept[len(kept)-maxTail:]...)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		_, err := s.out.Write(lastLines(kept, n))
		return err
	})
}

func lastLines(data []byte, n int) []byte {
	if n == 0 {
		return nil
	}
	at := len(data)
	if at > 0 && data[at-1] == '\n' {
		at--
	}
	for ; n > 0; n-- {
		if at = bytes.LastIndexByte(data[:at], '\n'); at < 0 {
			return data
		}
	}
	return data[at+1:]
}

func kill(_ *state, args []string) error {
	sig := syscall.SIGTERM
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name := args[0][1:]
		if n, err := strconv.Atoi(name); err == nil {
			sig = syscall.Signal(n)
		} else if sig = unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")); sig == 0 {
			return fmt.Errorf("there is no signal %q", name)
		}
		args = args[1:]
	}
	var problems []error
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err == nil {
			err = syscall.Kill(pid, sig)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", arg, err))
		}
	}
	return errors.Join(problems...)
}

func ps(s *state, _ []string) error {
	proc, err := procfs.NewFS("/proc")
	if err != nil {
		return err
	}
	all, err := proc.AllProcs()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b procfs.Proc) int { return a.PID - b.PID })
	fmt.Fprintf(s.out, "%7s %6s %1s %10s %9s %s\n", "PID", "UID", "S", "RSS", "TIME", "COMMAND")
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		status, err := p.NewStatus()
		if err != nil {
			continue
		}
		words, _ := p.CmdLine()
		what := strings.Join(words, " ")
		if what == "" {
			what = "[" + stat.Comm + "]"
		}
		used := time.Duration(stat.CPUTime() * float64(time.Second)).Round(time.Second)
		fmt.Fprintf(s.out, "%7d %6d %1s %9dK %9s %s\n", p.PID, status.UIDs[0], stat.State, stat.ResidentMemory()/1024, used, what)
	}
	return nil
}

func ls(s *state, args []string) error {
	long, all := false, false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		long = long || strings.Contains(args[0], "l")
		all = all || strings.ContainsAny(args[0], "aA")
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	var problems []error
	for _, name := range args {
		info, err := os.Lstat(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if !info.IsDir() {
			s.show(name, info, long)
			continue
		}
		if len(args) > 1 {
			fmt.Fprintf(s.out, "%s:\n", name)
		}
		entries, err := os.ReadDir(name)
		problems = append(problems, err)
		for _, e := range entries {
			if !all && strings.HasPrefix(e.Name(), ".") {
				continue
			}
			info, err := e.Info()
			if err != nil {
				continue // it is gone
			}
			s.show(filepath.Join(name, e.Name()), info, long)
		}
	}
	return errors.Join(problems...)
}

func (s *state) show(path string, info fs.FileInfo, long bool) {
	name := info.Name()
	if !long {
		fmt.Fprintf(s.out, "%s\n", name)
		return
	}
	var uid, gid uint32
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		uid, gid = st.Uid, st.Gid
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Readlink(path); err == nil {
			name += " -> " + to
		}
	}
	fmt.Fprintf(s.out, "%s %5d %5d %10d %s %s\n", info.Mode(), uid, gid, info.Size(), info.ModTime().UTC().Format("2006-01-02 15:04"), name)
}
