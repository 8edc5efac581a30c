package agent

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// elf makes the beginning of a 64-bit program.
func elf(machine uint16, loader string) []byte {
	b := make([]byte, 256)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(b[elfMachine:], machine)
	binary.LittleEndian.PutUint64(b[elfHeaders:], elfSize)
	binary.LittleEndian.PutUint16(b[elfHeaderSize:], programSize)
	binary.LittleEndian.PutUint16(b[elfHeaderNum:], 1)
	header := b[elfSize:]
	binary.LittleEndian.PutUint32(header, ptInterp)
	binary.LittleEndian.PutUint64(header[8:], elfSize+programSize)
	binary.LittleEndian.PutUint64(header[32:], uint64(len(loader)+1))
	copy(b[elfSize+programSize:], loader)
	return b
}

func TestExplainExec(t *testing.T) {
	dir := t.TempDir()
	here := machineNumbers[runtime.GOARCH]
	tests := map[string]struct {
		content string
		errno   unix.Errno
		want    string
	}{
		"musl program on glibc":          {string(elf(here, "/lib/ld-musl.so.1")), unix.ENOENT, `dynamic loader "/lib/ld-musl.so.1"`},
		"32 bits":                        {"\x7fELF\x01\x01\x01" + strings.Repeat("\x00", 11) + "\x03\x00", unix.ENOEXEC, "for 386"},
		"big-endian":                     {"\x7fELF\x02\x02\x01" + strings.Repeat("\x00", 11) + "\x00\x16", unix.ENOEXEC, "for s390x"},
		"unknown machine":                {string(elf(9999, "")), unix.ENOEXEC, "machine number 9999"},
		"damaged":                        {string(elf(here, "")), unix.ENOEXEC, "damaged"},
		"empty":                          {"", unix.ENOEXEC, "empty"},
		"nothing after #!":               {"#! \n", unix.ENOEXEC, "names no interpreter"},
		"interpreter that is no program": {"#!/etc/passwd x\n", unix.ENOEXEC, `interpreter "/etc/passwd"`},
		"unfit interpreter":              {"#!/etc/passwd\n", unix.EACCES, `interpreter "/etc/passwd" cannot be executed`},
		"noexec":                         {"\x7fELF", unix.EACCES, "noexec"},
		"terminal codes":                 {"#!/\x1b[31mred\n", unix.ENOENT, `"/\x1b[31mred"`},
		"long name":                      {"#!/" + strings.Repeat("a", 300) + "\n", unix.ENOENT, "aaa..."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(path, []byte(test.content), 0o755); err != nil {
				t.Fatal(err)
			}
			if _, got := explainExec(path, test.errno); !strings.Contains(got, test.want) {
				t.Errorf("%s", got)
			}
		})
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/nonexistent", link); err != nil {
		t.Fatal(err)
	}
	if _, got := explainExec(link, unix.ENOENT); !strings.Contains(got, `symbolic link to "/nonexistent"`) {
		t.Errorf("%s", got)
	}
}

// TestMissingInterpreter: what the stock starter calls an invalid interpreter.
func TestMissingInterpreter(t *testing.T) {
	for content, want := range map[string]string{
		"#!/no/sh\n":                            "/no/sh",
		"#! /no/sh -x\n":                        "/no/sh",
		"#!/no/sh\r\n":                          "/no/sh",
		"#!/no/sh\x00\n":                        "/no/sh",
		"#!/no/sh":                              "/no/sh",
		"#!\n":                                  "",
		"echo\n":                                "",
		"#!/\x1b[31mred\n":                      `/\x1b[31mred`,
		"#!/caf\xc3\xa9\n":                      "/caf\u00e9",
		"#!/caf\xe9\n":                          `/caf\xe9`,
		"#!/" + strings.Repeat("a", 300) + "\n": "/" + strings.Repeat("a", 300),
	} {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		for errno, want := range map[unix.Errno]string{unix.ENOENT: want, unix.EACCES: "", unix.ENOEXEC: ""} {
			if got, _ := explainExec(path, errno); got != want {
				t.Errorf("%q, %v: %q, want %q", content, errno, got, want)
			}
		}
	}
}

func FuzzElfFacts(f *testing.F) {
	f.Add(elf(62, "/lib/ld.so"))
	f.Add([]byte("#!/bin/sh\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if len(head) > headSize {
			head = head[:headSize]
		}
		for _, errno := range []unix.Errno{unix.ENOENT, unix.ENOEXEC, unix.EACCES} {
			if interpreter := missingInterpreter(head); len(interpreter) > 4*headSize || strings.ContainsAny(interpreter, "\n\x1b ") {
				t.Errorf("%q", interpreter)
			}
			if text := explainFormat(head, errno); len(text) > 2000 || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("%q", text)
			}
		}
		explainDenied(head)
	})
}
