package agent

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// headSize is how many bytes of a program file are read: more than the kernel reads to tell
// its type (BINPRM_BUF_SIZE, 256 bytes).
const headSize = 4096

// explainExec says why path cannot be executed: the interpreter that a script names and the
// container lacks, and a sentence, or "" if the file does not show it. It runs as the
// payload's user and trusts nothing that it reads.
func explainExec(path string, errno unix.Errno) (interpreter, detail string) {
	if detail := explainErrno(errno); detail != "" {
		return "", detail
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", explainMissing(path, err)
	}
	switch {
	case st.IsDir():
		return "", "it is a directory"
	case !st.Mode().IsRegular():
		return "", "it is not a regular file"
	case errno == unix.EACCES && unix.Access(path, unix.X_OK) != nil:
		return "", fmt.Sprintf("it is not executable by user %d (mode %v)", os.Geteuid(), st.Mode().Perm())
	}
	head, err := readHead(path)
	switch {
	case err != nil:
		return "", ""
	case errno == unix.EACCES:
		return "", explainDenied(head)
	case errno == unix.ENOENT:
		interpreter = missingInterpreter(head)
	}
	return interpreter, explainFormat(head, errno)
}

// explainErrno gives the sentence of an errno that says enough.
func explainErrno(errno unix.Errno) string {
	switch errno {
	case unix.E2BIG:
		return "arguments and environment together are too long"
	case unix.EAGAIN:
		return "the user has too many processes already"
	case unix.ENOMEM:
		return "not enough memory under the job's limits"
	case unix.ETXTBSY:
		return "the file is open for writing"
	case unix.ELOOP:
		return "the path has too many symbolic links, or scripts name each other as interpreter"
	}
	return ""
}

func explainMissing(path string, err error) string {
	if os.IsPermission(err) {
		return fmt.Sprintf("a directory above it cannot be entered by user %d", os.Geteuid())
	}
	if os.IsNotExist(err) {
		if target, err := os.Readlink(path); err == nil {
			return fmt.Sprintf("it is a symbolic link to %s, which does not exist in the container", clip(target))
		}
		return "there is no such file in the container"
	}
	return ""
}

func explainDenied(head []byte) string {
	if interpreter, ok := scriptInterpreter(head); ok {
		return fmt.Sprintf("its interpreter %s cannot be executed", clip(interpreter))
	}
	return "it may be on a file system mounted noexec"
}

func explainFormat(head []byte, errno unix.Errno) string {
	if interpreter, ok := scriptInterpreter(head); ok {
		switch {
		case interpreter == "":
			return "its first line names no interpreter after #!"
		case strings.HasSuffix(interpreter, "\r"):
			return fmt.Sprintf("its first line names the interpreter %s with a carriage return: the file has DOS line ends; convert it, for example with dos2unix", clip(interpreter))
		case errno == unix.ENOENT:
			return fmt.Sprintf("the interpreter %s is not in the container", clip(interpreter))
		case errno == unix.ENOEXEC:
			return fmt.Sprintf("its interpreter %s cannot be executed on this machine", clip(interpreter))
		}
		return ""
	}
	machine, loader, ok := elfFacts(head)
	switch {
	case ok && machine != machineNumbers[runtime.GOARCH]:
		return fmt.Sprintf("it is a program for %s, this machine is %s", machineName(machine), runtime.GOARCH)
	case ok && errno == unix.ENOENT && loader != "":
		return fmt.Sprintf("it needs the dynamic loader %s, which is not in the container: it was built for another distribution or C library", clip(loader))
	case ok:
		return "it is a damaged or unsuitable ELF file"
	case errno != unix.ENOEXEC:
		return ""
	case len(head) == 0:
		return "it is empty"
	case isText(head):
		return "it is a script without a first line such as #!/bin/sh"
	default:
		return "it is neither a program nor a script"
	}
}

func readHead(path string) ([]byte, error) {
	//nolint:forbidigo // as the payload's user
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, headSize))
}

// scriptInterpreter gives the program that a #! line names (execve(2)).
func scriptInterpreter(head []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return "", false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	line = bytes.Trim(line, " \t")
	if end := bytes.IndexAny(line, " \t"); end >= 0 {
		line = line[:end]
	}
	return string(line), true
}

// missingInterpreter gives the interpreter of a script as the stock starter names it in its
// hold reason, printable: white space is isspace(3)'s, and it looks at this much of the file
// (daemon_core.cpp:DaemonCore::Create_Process). "" if the file is no script.
func missingInterpreter(head []byte) string {
	const looked, space = 1024, " \t\n\v\f\r"
	rest, ok := bytes.CutPrefix(head[:min(len(head), looked)], []byte("#!"))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, space)
	if end := bytes.IndexAny(rest, space+"\x00"); end >= 0 {
		rest = rest[:end]
	}
	quoted := strconv.QuoteToGraphic(string(rest))
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// ELF machine numbers (elf(5), e_machine) by Go's name of the architecture.
var machineNumbers = map[string]uint16{
	"386": 3, "ppc64": 21, "ppc64le": 21, "s390x": 22, "arm": 40, "amd64": 62, "arm64": 183, "riscv64": 243, "loong64": 258,
}

func machineName(machine uint16) string {
	for name, number := range machineNumbers {
		if number == machine && name != "ppc64le" {
			return name
		}
	}
	return fmt.Sprintf("machine number %d", machine)
}

// Offsets and values in 64-bit ELF files (elf(5)).
const (
	elfClass      = 4
	elfData       = 5
	elfClass64    = 2
	elfLittle     = 1
	elfMachine    = 18
	elfHeaders    = 32 // e_phoff
	elfHeaderSize = 54 // e_phentsize
	elfHeaderNum  = 56 // e_phnum
	elfSize       = 64
	programSize   = 56
	ptInterp      = 3
)

// elfFacts gives the machine that an ELF file is for. It also gives the loader of a 64-bit
// file whose headers are at the beginning of the file, as usual.
func elfFacts(head []byte) (machine uint16, loader string, ok bool) {
	if len(head) < elfMachine+2 || !bytes.HasPrefix(head, []byte("\x7fELF")) {
		return 0, "", false
	}
	var order binary.ByteOrder = binary.BigEndian
	if head[elfData] == elfLittle {
		order = binary.LittleEndian
	}
	machine = order.Uint16(head[elfMachine:])
	if head[elfClass] != elfClass64 || len(head) < elfSize {
		return machine, "", true
	}
	at, size := order.Uint64(head[elfHeaders:]), uint64(order.Uint16(head[elfHeaderSize:]))
	for range order.Uint16(head[elfHeaderNum:]) {
		if size < programSize || at > uint64(len(head)) || uint64(len(head))-at < programSize {
			break
		}
		h := head[at:]
		if order.Uint32(h) == ptInterp {
			offset, length := order.Uint64(h[8:]), order.Uint64(h[32:])
			if offset < uint64(len(head)) && length <= uint64(len(head))-offset {
				loader = string(bytes.TrimRight(head[offset:offset+length], "\x00"))
			}
			break
		}
		at += size
	}
	return machine, loader, true
}

func isText(head []byte) bool {
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f' {
			return false
		}
	}
	return true
}

// clip makes a string from the job's files safe and short enough to show.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}
