package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"podstarter/testdata/streams"
)

// copyStreams copies what a starter has recorded, without secrets.
func copyStreams(from string, pid int, to string) error {
	paths, err := filepath.Glob(filepath.Join(from, strconv.Itoa(pid)+"-*"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("starter %d left no streams in %s (%v)", pid, from, err)
	}
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return err
	}
	for _, path := range paths {
		_, name, _ := strings.Cut(filepath.Base(path), "-")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Ext(name) == ".jsonl" {
			text, err = convert(string(text))
		} else {
			text = redact(text)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// convert makes a recording from what the tap has written.
func convert(taken string) ([]byte, error) {
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(taken))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var packet struct {
			Way          string
			Sealed, Last bool
			Data         []byte
		}
		if err := json.Unmarshal(lines.Bytes(), &packet); err != nil {
			return nil, err
		}
		line, err := streams.Packet{
			In: packet.Way == "in", Sealed: packet.Sealed, Last: packet.Last, Data: redact(packet.Data),
		}.Line()
		if err != nil {
			return nil, err
		}
		out.WriteString(line)
	}
	return []byte(out.String()), lines.Err()
}
