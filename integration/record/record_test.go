package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	key := strings.Repeat("0123456789abcdef", 4)
	in := "\x00\x01Capability = \"<127.0.0.1:1?sock=a>#1795245440#4#[Encryption=\"YES\";]" + key + "\"\x00Iwd = \"/home/alice\""
	out := string(redact([]byte(in)))
	if len(out) != len(in) || strings.Contains(out, key) || !strings.Contains(out, `Iwd = "/home/alice"`) {
		t.Errorf("redacted to %q", out)
	}
}

// TestRedactKeepsLengths: a string of an encrypted stream has its length before it.
func TestRedactKeepsLengths(t *testing.T) {
	in := "\x00\x00\x00\x00\x00\x00\x00A" + strings.Repeat("5e", 32) + "\x00"
	if got, want := string(redact([]byte(in))), "\x00\x00\x00\x00\x00\x00\x00A"+strings.Repeat("0", 64)+"\x00"; got != want {
		t.Errorf("redacted to %q", got)
	}
}

func TestOverlayFollowsTheSource(t *testing.T) {
	source, err := os.ReadFile("../../internal/cedar/crypto.go")
	if err != nil {
		t.Fatal(err)
	}
	out, err := overlaid(source)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "func plainAEAD(") {
		t.Error("the cipher is not renamed")
	}
	if _, err := overlaid(out); err == nil {
		t.Error("a source without those functions is taken")
	}
}

func TestTheRecordingStarterRecords(t *testing.T) {
	program, err := build(t.Context(), "../..", t.TempDir(), "/where/streams/go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	// The linker drops the name of a directory that no code reads.
	if !bytes.Contains(text, []byte("/where/streams/go")) {
		t.Error("the starter was built without the recorder")
	}
}
