package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"podstarter/testdata/streams"
)

const recordings = "../../testdata/streams"

// signs are patterns that give away secrets and other machines.
var signs = []*regexp.Regexp{
	regexp.MustCompile(`\](?:[1-9a-fA-F][0-9a-fA-F]*|0+[1-9a-fA-F][0-9a-fA-F]*)["\x00]`), // the key of a claim
	regexp.MustCompile(`(?i)password|passwd|bearer |authorization:|PRIVATE KEY-----\n[^0]`),
	regexp.MustCompile(`https?://`),
	regexp.MustCompile(`(?i)\b[a-z0-9-]+\.(?:com|org|net|io|dev|edu|gov|de|uk|ch|fr|eu|internal|local|lan|corp|cloud)\b`),
	regexp.MustCompile(`/(?:root|work|tmp|mnt|Users)/`),
}

var digits = regexp.MustCompile(`[0-9a-fA-F]{16,}`)

var address = regexp.MustCompile(`\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\b`)

func suspicious(data []byte) []string {
	var all []string
	for _, sign := range signs {
		if found := sign.Find(data); found != nil {
			all = append(all, string(found))
		}
	}
	for _, found := range digits.FindAll(data, -1) {
		// Else it is a decimal fraction, or zeros after the length of a string.
		if bytes.ContainsAny(found, "abcdefABCDEF") && len(bytes.ReplaceAll(found, []byte("0"), nil)) > 1 {
			all = append(all, string(found))
		}
	}
	for _, found := range address.FindAll(data, -1) {
		if a := string(found); a != "127.0.0.1" && a != "255.0.0.0" {
			all = append(all, a)
		}
	}
	return all
}

func TestSuspicious(t *testing.T) {
	for _, text := range []string{
		"#4#[Encryption=\"YES\";]1f\x00", "key 0123456789abcdef0123", "Password = 1", "https://x", "deb.example.org", "/root/x", "10.1.2.3:80",
	} {
		if suspicious([]byte(text)) == nil {
			t.Errorf("nothing is found in %q", text)
		}
	}
	for _, text := range []string{"0.001788676341166195", "127-0-0-1.pool.invalid", "]000000\x00", "<127.0.0.1:9618>"} {
		if found := suspicious([]byte(text)); found != nil {
			t.Errorf("%q is found in %q", found, text)
		}
	}
}

// TestNoSecrets reads all recordings: they contain nothing that would be redacted, and
// nothing that looks like a secret by other signs.
func TestNoSecrets(t *testing.T) {
	check := func(where string, data []byte) {
		if !bytes.Equal(redact(data), data) {
			t.Errorf("%s has something that must be redacted; record it again: %s", where, streams.Text(data))
		}
		if signs := suspicious(data); len(signs) > 0 {
			t.Errorf("%s has %q", where, signs)
		}
	}
	for _, c := range streams.Cases(t, recordings) {
		paths, err := filepath.Glob(filepath.Join(recordings, c[0], c[1], "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if filepath.Ext(path) != ".jsonl" {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				check(path, text)
				continue
			}
			packets, err := streams.Read(path)
			if err != nil {
				t.Error(err)
			}
			for _, in := range []bool{false, true} {
				check(path, bytes.Join(streams.Messages(packets, in), nil))
			}
		}
	}
}

// TestRecordingsAreSmall: people read them too.
func TestRecordingsAreSmall(t *testing.T) {
	const most = 1 << 20
	size := int64(0)
	for _, c := range streams.Cases(t, recordings) {
		paths, _ := filepath.Glob(filepath.Join(recordings, c[0], c[1], "*"))
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
	}
	if size > most {
		t.Errorf("they have %d bytes", size)
	}
}

// TestLines: a line is read as it was written.
func TestLines(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	if got, err := streams.Bytes(streams.Text(all)); err != nil || !bytes.Equal(got, all) {
		t.Errorf("%x, %v", got, err)
	}
	for _, c := range streams.All(t, recordings) {
		if len(c.Packets) == 0 {
			t.Errorf("the recording of %s with %s is empty", c.Case, c.Version)
		}
	}
}
