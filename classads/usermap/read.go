package usermap

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"podstarter/classads/internal/pattern"
)

// Options say how a map is read.
type Options struct {
	Prefix bool           // names are beginnings of names
	Skip   *regexp.Regexp // files of an included directory that are left out; nil: none
}

// Bounds of a map with all that it includes.
const (
	maxBytes    = 16 << 20
	maxLines    = 1 << 20
	maxPatterns = 64 << 20 // bytes of memory
	maxFiles    = 1000
	maxProblems = 20
)

// Read reads a map from a file. The problems are lines and included files that count for
// nothing, as with HTCondor, which tells of them in its log. With an error there is no map.
func Read(path string, o Options) (*Map, []error, error) {
	r := newReader(o)
	if err := r.file(path, o.Prefix, true); err != nil {
		return nil, nil, err
	}
	return r.m, r.problems, nil
}

// Parse reads a map from a text, whose name is for problems and, if it is a path, for
// files that are included.
func Parse(name, text string, o Options) (*Map, []error, error) {
	r := newReader(o)
	r.bytes += len(text)
	if err := r.text(name, text, o.Prefix, true); err != nil {
		return nil, nil, err
	}
	return r.m, r.problems, nil
}

// reader reads a map.
type reader struct {
	o                             Options
	m                             *Map
	problems                      []error
	bytes, lines, patterns, files int
}

func newReader(o Options) *reader {
	return &reader{o: o, m: &Map{methods: map[string][]entry{}}}
}

func (r *reader) problem(format string, args ...any) {
	switch len(r.problems) {
	case maxProblems:
	case maxProblems - 1:
		r.problems = append(r.problems, errors.New("and more problems with this map"))
	default:
		r.problems = append(r.problems, fmt.Errorf(format, args...))
	}
}

// file reads a file.
func (r *reader) file(path string, prefix, includes bool) error {
	if r.files++; r.files > maxFiles {
		return fmt.Errorf("%s: the map has more than %d files", path, maxFiles)
	}
	// A pipe must not hold anybody up.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo // the admin's path, which no job names
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(maxBytes-r.bytes+1)))
	if err != nil {
		return err
	}
	r.bytes += len(text)
	return r.text(path, string(text), prefix, includes)
}

// text reads lines (MapFile.cpp:ParseCanonicalization).
func (r *reader) text(name, text string, prefix, includes bool) error {
	if r.bytes > maxBytes {
		return fmt.Errorf("%s: the map has more than %d bytes", name, maxBytes)
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if r.lines++; r.lines > maxLines {
			return fmt.Errorf("%s: the map has more than %d lines", name, maxLines)
		}
		at := fmt.Sprintf("%s:%d", name, number)
		method, rest := word(line)
		switch {
		case method == "@include":
			if err := r.include(at, name, rest, includes); err != nil {
				return err
			}
		case method == "" || method[0] == '#':
		default:
			if err := r.line(at, method, rest, prefix); err != nil {
				return err
			}
		}
	}
	return nil
}

// include reads another file, or those of a directory, in which nothing more is included.
func (r *reader) include(at, from, rest string, allowed bool) error {
	path, _ := word(rest)
	switch {
	case !allowed:
		r.problem("%s: an included file cannot include another", at)
		return nil
	case path == "":
		r.problem("%s: @include names no file", at)
		return nil
	case !filepath.IsAbs(path) && strings.Contains(from, "/"):
		path = filepath.Join(filepath.Dir(from), path)
	}
	paths := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		paths = nil
		entries, err := readDir(path)
		if err != nil {
			r.problem("%s: %w", at, err)
			return nil
		}
		for _, name := range entries {
			full := filepath.Join(path, name)
			if info, err := os.Stat(full); err == nil && info.IsDir() || r.o.Skip != nil && r.o.Skip.MatchString(name) {
				continue
			}
			paths = append(paths, full)
		}
		slices.Sort(paths)
	}
	for _, path := range paths {
		err := r.file(path, false, false) // sic: an included file is no prefix map
		if err != nil && r.full() {
			return err
		}
		if err != nil {
			r.problem("%s: %w", at, err)
		}
	}
	return nil
}

// readDir lists a directory that is not absurdly large.
func readDir(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(10 * maxFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return names, nil
}

// full reports whether a bound is exceeded.
func (r *reader) full() bool {
	return r.bytes > maxBytes || r.lines > maxLines || r.files > maxFiles || r.patterns > maxPatterns
}

// line reads the fields after the method.
func (r *reader) line(at, method, rest string, prefix bool) error {
	var name, options string
	var isExpr bool
	if prefix {
		name, rest = word(rest)
	} else {
		name, options, isExpr, rest = nameOrExpr(rest)
	}
	becomes, _ := word(rest)
	if name == "" || becomes == "" {
		r.problem("%s: a field is missing; a line has a method, a name and what it becomes", at)
		return nil
	}
	method = lower(method)
	entries := r.m.methods[method]
	if isExpr {
		flags := pattern.Flags(0)
		if strings.Contains(options, "i") {
			flags |= pattern.IgnoreCase
		}
		expr := name
		if strings.Contains(options, "U") {
			expr = "(?U)" + expr
		}
		p, err := pattern.Compile(expr, flags)
		if err != nil {
			r.problem("%s: %w", at, err)
			return nil
		}
		if r.patterns += p.Size(); r.patterns > maxPatterns {
			return fmt.Errorf("%s: the map's expressions take more than %d bytes of memory", at, maxPatterns)
		}
		r.m.methods[method] = append(entries, entry{expr: p, becomes: becomes})
		return nil
	}
	last := len(entries) - 1
	if last < 0 || entries[last].expr != nil || entries[last].longest > 0 != prefix {
		entries = append(entries, entry{names: map[string]string{}})
		last++
	}
	e := &entries[last]
	if _, exists := e.names[name]; !exists { // the first line counts
		e.names[name] = becomes
	}
	if prefix {
		e.longest = max(e.longest, len(name))
	}
	r.m.methods[method] = entries
	return nil
}
